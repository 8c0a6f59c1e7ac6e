"""Catches an engine with other bits than a network's own library, and the wrong one of them serving."""

import ctypes
import gc
import json
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import nsc
from nsc.cli.main import main
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import cpp
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.errors import BuildError, LoweringError, PackageError
from nsc.runtime.relaxed.library import Engine, Library

# Networks that take different ways through the library: the narrow pass, and a factored merge.
WIRES = (12, 64)


def results(op, batch):
    """Return values and gradients of all that an operator does softly."""
    generator = torch.Generator().manual_seed(batch)
    x = torch.randn(batch, op.n, generator=generator, dtype=torch.float64, requires_grad=True)
    steepness = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    payload = torch.randn(batch, op.n, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    ranks = torch.rand(batch, op.n, generator=generator).argsort(-1)
    extreme = torch.where(x > 1, torch.inf, x).detach().requires_grad_()
    made = [op.sort(x, steepness), op.sort(extreme, steepness), *op.sort_with_permutation(x, steepness)]
    made += [op.cross_entropy(x, ranks, steepness), op.binary_cross_entropy(x, ranks, steepness)]
    made += [op.route(x, payload, steepness), op.topk(x, 1, steepness=steepness)[0]]
    total = sum((result * result.detach().cos()).nan_to_num(0).sum() for result in made)
    inputs = (x, steepness, payload, extreme)
    return [*made, *torch.autograd.grad(total, inputs, allow_unused=True)]


@pytest.mark.slow("kernels and engines are built as users build them")
@pytest.mark.parametrize("n", WIRES)
def test_the_engine_has_the_bits_of_the_kernel(n):
    op = nsc.compile("bitonic", n, dtypes="float64")
    for batch in (1, 3, 20):
        runs = []
        for kind in (Engine, Library):
            op.kernel.serving = op.kernel.engine() if kind is Engine else op.kernel.own_library()
            assert isinstance(op.kernel.library(), kind)
            runs.append(results(op, batch))
        for one, other in zip(*runs, strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.equal(one.nan_to_num(7), other.nan_to_num(7))


# Of the session: a process that has built the engine does not build it again.
@pytest.fixture(scope="session")
def engine(tmp_path_factory):
    """Return a cache folder that has the engine of the default relaxation, which the first call builds."""
    folder = tmp_path_factory.mktemp("engine") / "cache"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NSC_CACHE_DIR", str(folder))
        patch.setenv("NSC_CXXFLAGS", "-O0")
        op = nsc.compile("bitonic", 10, name="of_both_types_10", dtypes=("float32", "float64"))
        assert files(folder) == []
        op.sort(torch.ones(10))
    assert files(folder) == ["engine_logistic"]
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
    done = CliRunner().invoke(main, ["engine", "--dtype", "float32,float64"])
    first, second = done.output.splitlines()
    assert first == "the engine of logistic, ART λ = 0.25 in float32 is built before"
    assert second.startswith("the engine of logistic, ART λ = 0.25 in float64 is built in ")
    op = nsc.compile("bitonic", 10, name="of_both_types_10", dtypes=("float32", "float64"))
    op.sort(torch.ones(10, dtype=torch.float64))
    assert files(folder) == ["engine_logistic"] * 2


@pytest.mark.slow("kernels and engines are built")
def test_the_own_library_serves_who_asks_and_a_loaded_package_here_and_where_it_is_sent(folder, tmp_path):
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
    for name, text in op.kernel.files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    loaded = nsc.load(tmp_path)
    assert isinstance(loaded.kernel.library(), Library)
    program = "import pickle, sys\nfor op in pickle.load(sys.stdin.buffer): print(type(op.kernel.library()))"
    sent = pickle.dumps([loaded, nsc.compile("bitonic", 6, name="sent_6")])
    done = subprocess.run([sys.executable, "-c", program], input=sent, capture_output=True, check=True)
    assert [line.rpartition(".")[2] for line in done.stdout.decode().splitlines()] == [
        "Library'>",
        "Engine'>",
    ]


def test_a_build_that_fails_is_an_error(folder, monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0 -DNSC_API=?")
    with pytest.raises(BuildError, match="the compiler failed"):
        nsc.compile("bitonic", 8, name="unbuilt_8").sort(torch.ones(8))
    with pytest.raises(BuildError, match="the compiler failed"):
        nsc.compile("bitonic", 8, name="unbuilt_8", build=True)


def test_build_is_yes_or_no():
    with pytest.raises(LoweringError, match="build must be True or False, got 'wait'"):
        nsc.compile("bitonic", 3, build="wait")


@pytest.mark.slow("kernels and engines are built")
def test_a_call_outlives_the_engine(folder):
    op = nsc.compile("bitonic", 40)
    functions = op.kernel.engine().functions["float32"]
    gc.collect()
    overwritten = [np.full(size, 0x7FFF, np.int32) for size in range(8, 4000, 4)]
    x, values = torch.randn(2, 40), torch.empty(2, 40)
    steepness = torch.tensor([5.0])
    call = (0, 2, x.data_ptr(), steepness.data_ptr(), 0, None, 0, 0, values.data_ptr(), None, None)
    assert functions.forward(*call) == 0
    assert len(overwritten) == 998
    assert torch.equal(values, op.sort(x, 5.0))


@pytest.mark.slow("kernels and engines are built")
def test_a_library_may_be_prepared_again_and_by_many_threads():
    operator = nsc.compile("bitonic", 12, dtypes="float64")
    operator.kernel._library = operator.kernel.own_library()
    x = torch.randn(3, 12, dtype=torch.float64)
    expected = [*operator.sort_with_permutation(x), *operator.hard_sort(x)]
    library = ctypes.CDLL(str(operator.kernel.build().binary))
    with ThreadPoolExecutor(4) as pool:
        statuses = pool.map(lambda _: library.nsc_prepare(), range(4))
        actual = [*operator.sort_with_permutation(x), *operator.hard_sort(x)]
    assert [*statuses] == [0] * 4
    assert all(torch.equal(first, second) for first, second in zip(expected, actual, strict=True))


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
