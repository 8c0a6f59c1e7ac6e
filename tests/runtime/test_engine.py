"""The engine runs any network with the bits of the network's own library, which is built on demand."""

import gc
import json
import pickle
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from terminal import at_a_terminal

import nsc
from nsc.cli import main
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import cpp
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.errors import BuildError, LoweringError, PackageError
from nsc.runtime.relaxed.engine import Engine
from nsc.runtime.relaxed.library import Library

# Networks that take different ways through the library.
NETWORKS = {
    "narrow": {"network": "bitonic", "n": 12},
    "wide": {"network": "odd_even_merge", "n": 40},
    "flipped": {"network": "bitonic", "n": 64, "error_free": True},
    "selecting": {"network": "best", "n": 33, "select": nsc.top_k(3)},
    "of one wire": {"network": "bitonic", "n": 1},
}


def results(op, batch):
    """Return values and gradients of all that an operator does softly."""
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, op.n, generator=generator, dtype=torch.float64, requires_grad=True)
    steepness = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    payload = torch.randn(batch, op.n, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    ranks = torch.rand(batch, op.n, generator=generator).argsort(-1)
    extreme = torch.where(x > 1, torch.inf, x).detach().requires_grad_()
    if isinstance(op, nsc.Selector):
        made = [op.select(x, steepness), op.select(extreme, steepness), *op.select_with_rows(x, steepness)]
    else:
        made = [op.sort(x, steepness), op.sort(extreme, steepness), *op.sort_with_permutation(x, steepness)]
        made += [op.cross_entropy(x, ranks, steepness), op.binary_cross_entropy(x, ranks, steepness)]
        made += [op.route(x, payload, steepness), op.topk(x, 1, steepness=steepness)[0]]
    total = sum((result * result.detach().cos()).nan_to_num(0).sum() for result in made)
    inputs = (x, steepness, payload, extreme)
    return [*made, *torch.autograd.grad(total, inputs, allow_unused=True)]


@pytest.mark.slow("kernels and engines are built as users build them")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly("more engines are built as users build them"))
        if "error_free" in options
        else name
        for name, options in NETWORKS.items()
    ],
)
def test_the_engine_has_the_bits_of_the_kernel(name):
    options = {**NETWORKS[name], "dtypes": "float64"}
    op = nsc.compile(options.pop("network"), options.pop("n"), **options)
    for batch in (1, 3, 20):
        runs = []
        for kind in (Engine, Library):
            op.kernel._library = op.kernel.engine() if kind is Engine else op.kernel.own_library()
            assert isinstance(op.kernel.library(), kind)
            runs.append(results(op, batch))
        for one, other in zip(*runs, strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.equal(one.nan_to_num(7), other.nan_to_num(7))


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    """Return a cache folder that has the engine of the default relaxation, and nothing else."""
    folder = tmp_path_factory.mktemp("engine") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        patch.setenv("NSC_CXXFLAGS", "-O0")
        done = CliRunner().invoke(main, ["engine"])
    assert done.exit_code == 0, done.output
    assert "the engine of logistic, ART λ = 0.25 in float32 is built in " in done.output
    return folder


@pytest.fixture
def folder(engine, tmp_path, monkeypatch):
    """Return a copy of this folder that is the cache of one test."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")
    return shutil.copytree(engine, tmp_path / "cache")


def files(folder):
    return sorted(path.name.split("-")[0] for path in folder.glob("*.so"))


@pytest.mark.slow("kernels and engines are built")
def test_the_engine_runs_every_network_and_nothing_is_built_for_one(folder):
    for n in (11, 12):
        op = nsc.compile("bitonic", n, name=f"by_the_engine_{n}")
        op.sort(torch.randn(3, n))
        assert isinstance(op.kernel.library(), Engine)
    assert files(folder) == ["engine_logistic"]
    assert CliRunner().invoke(main, ["engine"]).output.endswith(" in float32 is built before\n")


@pytest.mark.slow("kernels and engines are built")
def test_the_first_call_on_a_machine_builds_the_engine(folder):
    for path in folder.glob("engine_logistic*"):
        path.unlink()
    op = nsc.compile("bitonic", 7, name="builds_the_engine_7")
    assert files(folder) == []
    op.sort(torch.ones(7))
    assert files(folder) == ["engine_logistic"]


@pytest.mark.slow("kernels and engines are built")
def test_an_engine_is_built_for_a_type_that_is_called(folder):
    op = nsc.compile("bitonic", 10, name="of_both_types_10", dtypes=("float32", "float64"))
    op.sort(torch.ones(10))
    assert files(folder) == ["engine_logistic"]
    op.sort(torch.ones(10, dtype=torch.float64))
    assert files(folder) == ["engine_logistic"] * 2


@pytest.mark.slow("kernels and engines are built")
def test_who_asks_gets_the_library_of_the_network_at_once(folder):
    op = nsc.compile("bitonic", 13, name="specialised_13", dtypes=("float32", "float64"))
    x = torch.randn(400, 13, requires_grad=True)
    p = op.sort_with_permutation(x, 3.0)[1]
    built = nsc.compile("bitonic", 13, name="specialised_13", dtypes=("float32", "float64"), build=True)
    assert built is op
    assert "specialised_13" in files(folder)
    assert isinstance(op.kernel.library(), Library)
    # The gradient of a result of the engine.
    (grad,) = torch.autograd.grad(p.square().sum(), x)
    (again,) = torch.autograd.grad(op.sort_with_permutation(x, 3.0)[1].square().sum(), x)
    assert torch.equal(grad, again)
    wider = nsc.api.serving(op, torch.float64, torch.device("cpu"))
    assert isinstance(wider.kernel.library(), Library)


@pytest.mark.slow("kernels and engines are built")
def test_a_loaded_package_has_its_own_library_here_and_where_it_is_sent(folder, tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    for name, text in nsc.compile("bitonic", 5, name="loaded_5").kernel.files.items():
        (package / name).write_text(text, encoding="utf-8")
    op = nsc.load(package)
    assert isinstance(op.kernel.library(), Library)
    program = "import pickle, sys; print(pickle.load(sys.stdin.buffer).kernel.library())"
    for sent, kind in ((op, Library), (nsc.compile("bitonic", 6, name="sent_6"), Engine)):
        done = subprocess.run(
            [sys.executable, "-c", program], input=pickle.dumps(sent), capture_output=True, check=True
        )
        assert f".{kind.__name__} object" in done.stdout.decode()


def test_a_build_that_fails_is_an_error(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0 -DNSC_API=?")
    with pytest.raises(BuildError, match="the compiler failed"):
        nsc.compile("bitonic", 8, name="unbuilt_8").sort(torch.ones(8))
    with pytest.raises(BuildError, match="the compiler failed"):
        nsc.compile("bitonic", 8, name="unbuilt_8", build=True)


def test_build_is_yes_or_no():
    with pytest.raises(LoweringError, match="build must be True or False, got 'wait'"):
        nsc.compile("bitonic", 3, build="wait")


@pytest.mark.slow("kernels are built")
@pytest.mark.parametrize(
    ("term", "is_shown"),
    [
        ("xterm-256color", True),
        pytest.param("dumb", False, marks=pytest.mark.nightly("more terminals see a build")),
    ],
)
def test_a_terminal_says_what_a_call_waits_for(term, is_shown, tmp_path, monkeypatch):
    go, cxx, cache = tmp_path / "go", tmp_path / "late-g++", tmp_path / "cache"
    cxx.write_text(f"""#!/bin/sh
case "$*" in *.cpp*) until test -e {go}; do sleep 0.02; done;; esac
exec g++ "$@"
""")
    cxx.chmod(0o700)
    monkeypatch.setenv("NSC_CACHE_DIR", str(cache))
    monkeypatch.setenv("NSC_CXX", str(cxx))
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")

    def wait_and_go():
        deadline = time.monotonic() + 60
        while not list(cache.glob(".engine_logistic*")):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        time.sleep(2.5)
        go.touch()

    program = (
        "import torch, nsc\n"
        'print(nsc.compile("bitonic", 4).sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), 1e6).tolist())'
    )
    code, printed, output = at_a_terminal([sys.executable, "-c", program], term, wait_and_go)
    assert (code, printed) == (0, b"[0.0, 1.0, 2.0, 3.0]\n")
    text = f"nsc: building engine_logistic, kept in {cache} …"
    assert output.decode() == (f"\r{text}\r{' ' * len(text)}\r" if is_shown else "")


@pytest.mark.slow("kernels and engines are built")
def test_a_call_outlives_the_engine(folder):
    op = nsc.compile("bitonic", 40)
    functions = op.kernel.engine().functions["float32"]
    gc.collect()
    overwritten = [np.full(size, 0x7FFF, np.int32) for size in range(8, 4000, 4)]
    x, values = torch.randn(2, 40), torch.empty(2, 40)
    steepness = torch.tensor([5.0])
    call = (0, 2, x.data_ptr(), steepness.data_ptr(), 0, None, 0, 0, values.data_ptr(), None, None, None)
    assert functions.forward(*call) == 0
    assert len(overwritten) == 998
    assert torch.equal(values, op.sort(x, 5.0))


def test_tables_are_read_back_and_others_refused():
    files = nsc.compile("bitonic", 20).kernel.files
    tables = NetworkTables.from_text(files[TABLES])
    assert tables.to_text() == files[TABLES]
    assert tables.comparators == nsc.network("bitonic", 20).size
    for text in ("", "[]", "{}", json.dumps({"wires": 4})):
        with pytest.raises(PackageError, match="no readable tables"):
            NetworkTables.from_text(text)


def test_the_engine_does_not_depend_on_a_network():
    one, other = (nsc.compile("bitonic", n, relaxation="cauchy").kernel for n in (4, 9))
    assert one.engine_sources == other.engine_sources
    source = cpp.engine(Relaxation("cauchy"), "float32")
    assert one.engine_sources["float32"] == source
