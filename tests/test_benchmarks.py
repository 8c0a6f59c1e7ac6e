"""The benchmark measures what it reports; no test depends on speed."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("diffsort")

from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import (
    accuracy,
    exact,
    growth,
    kernels,
    machine,
    measure,
    networks,
    peers,
    registers,
)
from benchmarks.arithmetic import Arithmetic
from benchmarks.cases import LOSS, Case, P
from benchmarks.measure import Timing
from benchmarks.peers import WORKS
from nsc.compiler.verify import Verdict, verify

pytestmark = pytest.mark.nightly("the benchmarks run")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Run few rounds, and call functions instead of compiling them, which takes torch.compile a minute."""
    monkeypatch.setattr(measure, "ROUNDS", 3)
    monkeypatch.setattr(measure, "ROUND_SECONDS", 0.001)
    monkeypatch.setattr(kernels, "ROUNDS", 2)
    monkeypatch.setattr(kernels, "ROUND_SECONDS", 0.001)
    monkeypatch.setattr(torch, "compile", lambda function, **options: function)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def names_of(case):
    return [peer.name for peer in WORKS[case.work].peers if peer.takes(case)]


def timed(case, threads, peer="nsc", seconds=1e-3):
    return Timing(case, peer, threads, seconds, seconds, seconds, 3)


def limit_of(forward, backward, registers="avx512", lanes=16):
    """Return a limit in nanoseconds; the form of three operations is the slower one."""
    return Arithmetic(registers, lanes, 2.0, forward, 2 * forward, backward, 2 * backward)


# ------------------------------------------------------------------------------------------ peers


@pytest.mark.parametrize("work", WORKS)
def test_peers_of_a_work_agree(work):
    case = Case(work, "odd_even", 9, 3)
    problem = peers.pose(case, networks.operator("odd_even", 9))
    torch.manual_seed(1)
    results = {name: call() for name, call in peers.calls(problem).items()}
    assert list(results) == names_of(case)
    ours = results.pop("nsc")
    assert results
    own_relaxation = {peer.name for peer in WORKS[work].peers if peer.own_relaxation}
    for name, theirs in results.items():
        for actual, expected in zip(ours, theirs, strict=True):
            assert actual.shape == expected.shape
            if name not in own_relaxation:
                scale = 1 + expected.abs().max()
                torch.testing.assert_close(actual / scale, expected / scale, rtol=0, atol=1e-4)


# ----------------------------------------------------------------------------------- exact sorting


FILTERS = {exact.FILTER, exact.COLOURS}
ROLLINGS = {exact.ROLLING, exact.ROLLING_NUMBERS}
STATISTICS = {exact.NUMBERS, exact.LEVEL, exact.WEIGHTED, exact.TRIMMED, *ROLLINGS}


def array_case(work, axis, dtype="float32"):
    shape = (9, 24) if axis == 0 else (24, 9)
    targets = tuple(map(exact.Target, exact.WORKS[work].peers))
    if work == exact.COLOURS:
        shape = (*shape, 3)
    if work in ROLLINGS:
        shape, axis = (24,), 0
    is_window = work in FILTERS | ROLLINGS
    return exact.ExactCase(work, dtype, shape, axis, targets, window=3 if is_window else 0)


def values_in(result):
    """Return the values of a result of NumPy or torch, which may have indices too."""
    return np.asarray(result if isinstance(result, np.ndarray | torch.Tensor) else result[0])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("work", sorted(exact.WORKS.keys() - FILTERS - STATISTICS))
def test_functions_of_an_exact_work_agree(work, axis):
    case = array_case(work, axis)
    arrays = exact.arrays_of(case)
    found = {name: call() for (name, _), call in exact.calls(arrays, [1]).items() if name != exact.MEMORY}
    assert {exact.ARRAYS, exact.TENSORS} < found.keys()
    for name, result in found.items():
        match work:
            case exact.VALUES:
                expected = np.sort(arrays.x, axis)
            case exact.INDICES:
                expected = np.argsort(arrays.x, axis)
            case exact.MEDIAN:
                expected = np.median(arrays.x, axis)
            case exact.LARGEST:
                # Those of torch.topk begin with the largest.
                expected = np.flip(np.sort(arrays.x, axis), axis).take(range(exact.K), axis)
        actual = values_in(
            result[1] if work == exact.INDICES and not isinstance(result, np.ndarray) else result
        )
        if work == exact.LARGEST:
            actual = np.flip(np.sort(actual, axis), axis)
        assert np.array_equal(np.squeeze(actual), expected), name


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("work", sorted(STATISTICS))
def test_statistics_agree(work, axis, monkeypatch):
    # Equal weights of an odd number: its median is a value, which NumPy's lower median is too.
    monkeypatch.setattr(exact, "_weights", lambda arrays: np.ones(arrays.case.n))
    found = {
        name: call() for (name, _), call in exact.calls(exact.arrays_of(array_case(work, axis)), [1]).items()
    }
    assert exact.ARRAYS in found
    for name, result in found.items():
        expected = found[exact.ARRAYS][: len(result)]
        assert np.allclose(result, expected, rtol=1e-6, equal_nan=True), name


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize(("work", "shape"), [(exact.FILTER, (48, 20)), (exact.COLOURS, (48, 20, 3))])
def test_filters_agree(work, shape, dtype):
    targets = tuple(map(exact.Target, exact.WORKS[work].peers))
    arrays = exact.arrays_of(exact.ExactCase(work, dtype, shape, 1, targets, window=5))
    found = {name: np.asarray(call()) for (name, _), call in exact.calls(arrays, [1]).items()}
    if work == exact.COLOURS:
        found[exact.PLANES] = np.moveaxis(found[exact.PLANES], 0, -1)
    assert exact.ARRAYS in found
    for name, result in found.items():
        # The last rows of one that has only some of them have other windows.
        rows = slice(len(result) - 2 if len(result) < 48 else 48)
        assert np.array_equal(result[rows], found[exact.ARRAYS][rows]), name


def test_lines_of_xarray_agree():
    named_arrays = pytest.importorskip("benchmarks.xarray")
    named = named_arrays.names((9, 12, 10), 5)
    inside = {"y": slice(2, -2), "x": slice(2, -2)}  # xarray cuts no window
    for line in named_arrays.LINES:
        recipe, *others = (call().isel(inside) for call in named_arrays.calls_of(line, named).values())
        assert recipe.chunks is None
        for own in others:
            assert recipe.dims == own.dims
            assert np.allclose(recipe, own, rtol=1e-6, equal_nan=True), line.own


def test_lines_of_windows_run():
    lines = pytest.importorskip("benchmarks.windows")
    named = lines.names(24, 300)
    for line in lines.LINES:
        ours, other = eval(line.ours, named), eval(line.other, named)
        assert ours.shape[1:] == other.shape[1:]
        if line.ours.startswith("moving"):
            assert np.allclose(ours[: len(other)], other, equal_nan=True), line.ours


# --------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("n", [1, 2, 5, 16, 33, 47])
def test_the_irregular_network_sorts(n):
    network = networks.random_merge(n)
    assert verify(network).verdict is Verdict.PROVED
    assert network == networks.random_merge(n)


# ------------------------------------------------------------------------------------ measurements


def test_the_limit_counts_the_columns_that_reach_a_comparator():
    # The first comparator is reached by two columns, the others by all three.
    assert growth.work_of("odd_even", 3).on_columns == pytest.approx((2 + 3 + 3) / 16)
    # Of bitonic 4 the first layer mixes 2 columns, the others 4.
    assert growth.work_of("bitonic", 4).on_columns == pytest.approx((2 * 2 + 4 * 4) / 16)
    wide = growth.work_of("bitonic", 128)
    assert 0 < wide.light_cone < 1
    assert wide.on_columns == pytest.approx(wide.comparators * wide.light_cone * 8)
    point = growth.point(timed(Case(P, "bitonic", 4, 10), threads=2), limit_of(1.0, 3.0))
    assert point.limit == pytest.approx(1.25 * 4e-9 / 2)
    assert point.ratio == pytest.approx(1e-4 / point.limit)


@pytest.mark.parametrize("work", [P, LOSS])
def test_kernels_are_timed_without_torch_for_each_set_of_registers(work):
    case = Case(work, "bitonic", 4, 2)
    times = kernels.measure_kernels(case, registers.available())
    assert [time.registers for time in times] == list(registers.available())
    for time in times:
        assert (time.forward is None) == (work == LOSS)
        assert min(time.keys, time.backward) > 0
        assert time.limit(limit_of(1.0, 3.0)) == pytest.approx(1.25 * 4e-9)
        assert time.nanoseconds == pytest.approx(time.seconds / 1.25 * 1e9)
    assert [time.operator is None for time in times] == [True] * (len(times) - 1) + [False]


# ---------------------------------------------------------------------------------------- reports


# ------------------------------------------------------------------------------------ the command


@pytest.fixture
def small(monkeypatch):
    """Set a benchmark of one case that starts no process and no compiler."""
    monkeypatch.setattr(command, "GROUPS", ((Case(P, "bitonic", 4, 2),),))
    monkeypatch.setattr(command, "CASES", ())
    monkeypatch.setattr(command, "MEMORY_CASES", ())
    monkeypatch.setattr(command, "BUILDS", ())
    monkeypatch.setattr(command, "AGAINST_LIMIT", (Case(P, "bitonic", 4, 2),))
    monkeypatch.setattr(command, "measure_arithmetic", lambda: limit_of(1.0, 3.0, registers.present()))


def written(folder):
    """Return the names of the files in a folder without this machine's part of them."""
    return sorted(file.name.removeprefix(machine.file_name(registers.present())) for file in folder.iterdir())


def test_a_run_prints_and_writes(small, tmp_path):
    result = CliRunner().invoke(command.main, ["--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "Against peers" in result.output
    assert "Kernels against the limit" in result.output
    # No picture shows its case.
    assert written(tmp_path) == [".json", ".md"]


def test_the_results_of_another_machine_are_never_replaced(small, tmp_path):
    results = tmp_path / f"{machine.file_name(registers.present())}.json"
    results.write_text('{"machine": "64 × Some CPU, torch 2"}')
    result = CliRunner().invoke(command.main, ["--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "64 × Some CPU" in result.output
    assert len(list(tmp_path.iterdir())) == 1


def test_the_accuracy_of_losses_is_compared_with_torchs(tmp_path, monkeypatch):
    monkeypatch.setattr(accuracy, "CASES", [("bitonic", 4, 2)])
    monkeypatch.setattr(accuracy, "RESULTS", tmp_path / "accuracy.md")
    result = CliRunner().invoke(accuracy.main)
    assert result.exit_code == 0, result.output
    lines = (tmp_path / "accuracy.md").read_text(encoding="utf-8").splitlines()
    ours = [line for line in lines if "| nsc, float" in line]
    assert len(ours) == 2 * 2 * len(accuracy.SPREADS)
    assert all(line.endswith(" | 0% |") for line in ours)
    assert CliRunner().invoke(accuracy.main, ["--only", "nonesuch"]).exit_code == 2
