"""The engine runs any network with the bits of the network's own kernel, until that is built."""

import gc
import json
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from click.testing import CliRunner

import nsc
from nsc.cli import main
from nsc.compiler.relaxed import cpp
from nsc.compiler.relaxed.relaxations import Relaxation
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.errors import BuildError, LoweringError, PackageError
from nsc.runtime.relaxed import engine as engines
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


def by_engine(op):
    """Return the engine with an operator's network."""
    paths = {
        real: engines.build(op.kernel.sigmoid, source, "0").binary
        for real, (_, source) in op.kernel.engine_sources.items()
    }
    return Engine(paths, NetworkTables.from_text(op.kernel.files[TABLES]))


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
            op.kernel._library = by_engine(op) if kind is Engine else op.kernel.own_library()
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


def sorted_and_built(op, x):
    """Return sorted values, when the build of their kernel has ended."""
    values = op.sort(x)
    for thread in threading.enumerate():
        if thread.name == f"build of {op.name}":
            thread.join()
    return values


@pytest.mark.slow("kernels and engines are built")
def test_the_engine_runs_a_new_network_until_its_kernel_takes_over(folder):
    assert files(folder) == ["engine_logistic"]
    op = nsc.compile("bitonic", 11, name="taken_over_11")
    x = torch.randn(3, 11)
    assert isinstance(op.kernel.library(), Engine)
    first = sorted_and_built(op, x)
    assert files(folder) == ["engine_logistic", "taken_over_11"]
    assert isinstance(op.kernel.library(), Library)
    assert torch.equal(op.sort(x), first)
    assert CliRunner().invoke(main, ["engine"]).output.endswith(" in float32 is built before\n")


@pytest.mark.slow("kernels and engines are built")
def test_a_build_is_waited_for_on_demand(folder, monkeypatch):
    monkeypatch.setenv("NSC_BUILD", "wait")
    op = nsc.compile("bitonic", 3, name="waited_for_3")
    op.sort(torch.randn(3))
    assert isinstance(op.kernel.library(), Library)
    monkeypatch.setenv("NSC_BUILD", "later")
    with pytest.raises(BuildError, match="NSC_BUILD must be auto, wait, background or engine, got 'later'"):
        nsc.compile("bitonic", 5, name="never_5").sort(torch.randn(5))


@pytest.mark.slow("kernels and engines are built")
def test_a_build_that_fails_leaves_the_engine(folder, monkeypatch):
    op = nsc.compile("bitonic", 6, name="unbuilt_6")
    monkeypatch.setattr(type(op.kernel), "build", failing)
    with pytest.warns(RuntimeWarning, match="unbuilt_6 stays with the engine: no space"):
        first = sorted_and_built(op, torch.ones(6))
    assert isinstance(op.kernel.library(), Engine)
    assert torch.equal(op.sort(torch.ones(6)), first)


@pytest.mark.slow("kernels and engines are built")
def test_the_engine_alone_is_built_where_a_network_is_left_to_it(folder, monkeypatch):
    for name in files(folder):
        for path in folder.glob(f"{name}*"):
            path.unlink()
    op = nsc.compile("bitonic", 7, name="never_built_7", build="engine")
    sorted_and_built(op, torch.ones(7))
    assert files(folder) == ["engine_logistic"]
    assert isinstance(op.kernel.library(), Engine)
    op.kernel.build()  # a kernel that is there is not taken either
    again = nsc.compile("bitonic", 7, name="never_built_7_again", build="engine")
    again.kernel.build()
    assert isinstance(again.kernel.library(), Engine)


def failing(kernel):
    raise BuildError("no space")


@pytest.mark.slow("kernels and engines are built")
@pytest.mark.parametrize(("build", "kind"), [("wait", Library), ("background", Engine)])
def test_a_call_says_whether_its_build_is_waited_for(build, kind, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("NSC_BUILD", {"wait": "background", "background": "wait"}[build])
    compiled = nsc.compile("bitonic", 3, name=f"{build}_compiled_3", build=build)
    package = tmp_path / "package"
    package.mkdir()
    for name, text in nsc.compile("bitonic", 5, name=f"{build}_loaded_5").kernel.files.items():
        (package / name).write_text(text, encoding="utf-8")
    for op in (compiled, nsc.load(package, build=build)):
        assert isinstance(op.kernel.library(), kind)
        sorted_and_built(op, torch.ones(op.n))


def test_another_way_to_build_is_refused(tmp_path):
    with pytest.raises(LoweringError, match="build must be auto, wait, background or engine, got 'later'"):
        nsc.compile("bitonic", 3, build="later")
    with pytest.raises(PackageError, match="build must be auto, wait, background or engine, got True"):
        nsc.load(tmp_path, build=True)


ENDING = """
import nsc, pathlib, sys, time, torch
op = nsc.compile("bitonic", 4, name="ending_4")
op.sort(torch.randn(4))
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.01)
print(time.time())
"""


@pytest.mark.slow("kernels and engines are built")
def test_a_process_that_ends_kills_its_builds(tmp_path, monkeypatch):
    started, cxx = tmp_path / "started", tmp_path / "slow-g++"
    cxx.write_text(f"""#!/bin/sh
case "$*" in *ending_4*) sleep 60 & echo $$ $! > {started}.part; mv {started}.part {started}; wait;; esac
exec g++ "$@"
""")
    cxx.chmod(0o700)
    monkeypatch.setenv("NSC_CXX", str(cxx))
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path / "cache"))
    assert CliRunner().invoke(main, ["engine"]).exit_code == 0
    done = subprocess.run(
        [sys.executable, "-c", ENDING, str(started)], check=True, timeout=120, capture_output=True, text=True
    )
    assert time.time() - float(done.stdout) < 10
    assert done.stderr == ""
    for process in started.read_text().split():
        assert not is_running(int(process))
    left = [path.name for path in (tmp_path / "cache").iterdir() if "ending_4" in path.name]
    assert [name for name in left if not name.endswith(".lock")] == []


def is_running(process):
    """Return whether a process runs: one that nobody has waited for yet does not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.slow("kernels and engines are built")
def test_a_call_outlives_the_engine(folder):
    op = nsc.compile("bitonic", 40)
    functions = by_engine(op).functions["float32"]
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
    assert one.engine_sources["float32"] == ("engine_cauchy", source)
