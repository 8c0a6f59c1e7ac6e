"""The benchmark measures what it reports; no test depends on speed."""

from __future__ import annotations

import doctest
import json

import numpy as np
import pytest
import torch

pytest.importorskip("diffsort")

from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import (
    accuracy,
    bandwidth,
    cases,
    exact,
    growth,
    kernels,
    machine,
    measure,
    memory,
    networks,
    peers,
    pictures,
    registers,
    report,
    tables,
)
from benchmarks.arithmetic import Arithmetic, measure_arithmetic
from benchmarks.building import Build
from benchmarks.cases import LOSS, VALUES, Case, P
from benchmarks.kernels import KernelTime
from benchmarks.measure import Timing
from benchmarks.memory import Peak
from benchmarks.peers import WORKS
from benchmarks.tables import Results
from nsc.compiler.verify import Verdict, verify
from nsc.runtime.build.toolchain import find_toolchain

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


def test_peers_go_as_far_as_their_limits():
    assert names_of(Case(P, "bitonic", 16, 1)) == ["nsc", "diffsort", "indexed torch", "compiled torch"]
    assert names_of(Case(P, "bitonic", 32, 1)) == ["nsc", "diffsort", "indexed torch"]
    assert names_of(Case(P, "bitonic", 2048, 1)) == ["nsc"]
    assert names_of(Case(P, "bitonic", 16, 1, alone=True)) == ["nsc"]
    limited = [peer for work in WORKS.values() for peer in work.peers if peer.widest or peer.deepest]
    assert all(peer.why for peer in limited)


def test_a_peer_that_cannot_be_imported_is_left_out_and_named(monkeypatch):
    monkeypatch.setattr(peers, "importable", lambda module: False)
    case = Case(VALUES, "bitonic", 16, 1)
    assert "torchsort" not in names_of(case)
    assert "- torchsort is left out" in tables.against_peers(Results([timed(case, 1)])).text
    monkeypatch.setattr(peers, "importable", lambda module: True)
    assert "torchsort" in names_of(case)
    assert "left out" not in tables.against_peers(Results([timed(case, 1)])).text


def test_a_missing_module_is_not_importable():
    assert peers.importable("json")
    assert not peers.importable("no_such_module")


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


def test_results_of_exact_works_are_new():
    for work in exact.WORKS:
        for call in exact.calls(exact.arrays_of(array_case(work, 1)), [1]).values():
            first, second = values_in(call()), values_in(call())
            assert not np.shares_memory(first, second)


def test_memory_is_read_and_written_whole():
    x = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
    results = bandwidth.reading_and_writing(x, 0)()
    assert np.allclose(results, x.reshape(4, 5, bandwidth.LINE).sum(1).ravel(), atol=1e-6)


def test_exact_cases_name_works_and_peers():
    assert len({case.name for case in exact.CASES}) == len(exact.CASES)
    for case in exact.CASES:
        assert {target.peer for target in case.targets} <= exact.WORKS[case.work].peers.keys()


def test_exact_works_are_timed_on_the_threads_that_a_function_has():
    times = exact.measure_exact(array_case(exact.VALUES, 1), (1, 2))
    assert [(t.peer, t.threads) for t in times] == [
        *((name, threads) for name in (exact.ARRAYS, exact.TENSORS) for threads in (1, 2)),
        ("np.sort", 1),
        ("torch.sort", 1),
        ("torch.sort", 2),
    ]
    assert all(t.nanoseconds == pytest.approx(t.rounds.seconds / 24 * 1e9) for t in times)


def test_a_module_that_no_exact_work_has_is_named(monkeypatch):
    monkeypatch.setattr(exact, "importable", lambda module: False)
    case = array_case(exact.MEDIAN, 1)
    assert not any(name.startswith("bottleneck") for name, _ in exact.calls(exact.arrays_of(case), [1]))
    assert "- bottleneck is left out" in tables.exact_sorting(Results(exact=exact_times(case))).text


def exact_times(case):
    """Return invented times: one, two, three … nanoseconds a sample, half of it on two threads."""
    names = (exact.ARRAYS, exact.TENSORS, *(target.peer for target in case.targets))
    return [
        exact.ExactTime(case, name, threads, measure.Rounds(seconds, seconds, seconds, 3))
        for number, name in enumerate(names, 1)
        for threads in (1, 2)
        for seconds in [number * case.samples * 1e-9 / threads]
    ]


def map_all(function, arguments):
    return (result for argument in arguments for result in function(argument))


# --------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("n", [1, 2, 5, 16, 33, 47])
def test_the_irregular_network_sorts(n):
    network = networks.random_merge(n)
    assert verify(network).verdict is Verdict.PROVED
    assert network == networks.random_merge(n)


def test_examples_in_docstrings():
    assert doctest.testmod(networks).failed == 0


def test_cases_name_works_and_networks():
    for case in (case for group in cases.GROUPS for case in group):
        assert case.work in WORKS
        assert case.network in networks.NETWORKS


# ------------------------------------------------------------------------------------ measurements


def test_every_peer_is_timed_with_every_number_of_threads():
    group = (Case(P, "bitonic", 4, 2), Case(P, "random_merge", 5, 2, alone=True))
    timings = measure.measure(group, (1, 2))
    assert all(0 < t.low <= t.seconds <= t.high and t.rounds == 3 for t in timings)
    measured = [(t.case, t.peer, t.threads) for t in timings]
    assert measured == [(c, peer, threads) for c in group for peer in names_of(c) for threads in (1, 2)]


def test_the_arithmetic_takes_time():
    limit = measure_arithmetic()
    assert limit.lanes in (4, 8, 16)
    assert limit.registers == registers.present()
    assert 0 < limit.forward < 1000
    assert 0 < limit.backward < 1000
    assert 0.01 < limit.gigahertz < 10


def test_the_limit_is_that_of_the_quicker_form():
    limit = Arithmetic("avx2", 8, 2.0, forward_four=2, forward_three=1, backward_four=3, backward_three=4)
    assert (limit.forward, limit.backward) == (1, 3)
    assert limit.seconds(1e9) == pytest.approx(4)
    # 16 columns are two registers, so a register takes half of the time.
    assert limit.cycles(3.0) == pytest.approx(3.0 * 2.0 / 2)
    other = Arithmetic("avx2", 8, 3.0, forward_four=1, forward_three=2, backward_four=4, backward_three=3)
    assert limit.or_better(other) == Arithmetic("avx2", 8, 3.0, 1, 1, 3, 3)


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


def test_kernels_are_built_for_the_registers_that_are_asked_for(monkeypatch):
    monkeypatch.setenv("NSC_CXXFLAGS", "-O0")
    present = registers.present()
    assert registers.available()[-1] == present
    for name in registers.available():
        with registers.built_for(name):
            assert registers.present() == name
            assert find_toolchain().command[-1] == ("-O0" if name == present else registers.CHOICES[name][-1])
    assert find_toolchain().command[-1] == "-O0"


@pytest.mark.skipif(not memory.can_measure(), reason="no /proc/self/clear_refs")
def test_memory_is_measured_in_a_process_of_its_own(monkeypatch):
    monkeypatch.setattr(memory, "MEASURED", ("diffsort",))
    (peak,) = memory.measure_memory(Case(P, "bitonic", 256, 1), threads=1)
    # diffsort keeps a matrix of the size of P, 1/4 MB, for each of 36 layers.
    assert 4 < peak.call < 40
    assert peak.permutations == pytest.approx(4 * peak.call)


# ---------------------------------------------------------------------------------------- reports


def everything():
    """Return invented results of every kind."""
    bitonic = [case for case in cases.AGAINST_PEERS if case.network == "bitonic" and case.n <= 256]
    timings = [
        timed(case, threads, peer, 1e-4 * (index + 1))
        for case in (*bitonic, *cases.IRREGULAR[:3])
        for index, peer in enumerate(names_of(case))
        for threads in (1, 2)
    ]
    peaks = [Peak(case, "nsc", 2, case.n / 100) for case in memory.MEMORY_CASES[:3]]
    limits = {"avx2": limit_of(1.0, 3.0, "avx2", 8), "avx512": limit_of(0.5, 1.5)}
    times = [
        KernelTime(case, "avx2", 1e-5, 2e-5, 1e-6, None) for case in (bitonic[0], Case(LOSS, "bitonic", 8, 1))
    ] + [KernelTime(bitonic[0], "avx512", 5e-6, 1e-5, 1e-6, 3e-5)]
    exact_results = [*map_all(exact_times, exact.CASES[:4])]
    return Results(timings, limits, times, peaks, [Build("bitonic", 1024, 2.0, 3.0)], exact_results)


def test_results_are_written_as_json_markdown_and_pictures(tmp_path):
    results = everything()
    files = report.write(tmp_path / "new" / "results", "cpu-x-avx2", results)
    assert sorted(f.name for f in files) == sorted(f.name for f in (tmp_path / "new" / "results").iterdir())
    endings = (".json", ".md", ".png", "-growth.png", "-memory.png")
    assert [f.name for f in files] == ["cpu-x-avx2" + ending for ending in endings]
    assert all(f.read_bytes().startswith(b"\x89PNG") for f in files[2:])
    facts = json.loads(files[0].read_text())
    assert len(facts["timings"]) == len(results.timings)
    assert all(facts[part] for part in ("exact", "arithmetics", "kernels", "limits", "memory", "builds"))
    text = files[1].read_text()
    assert all(f"({f.name})" in text for f in files[2:])
    assert all(f"## {section.title}" in text for section in tables.sections(results))
    assert text.count("## ") == 8
    assert text.count("\n- avx") == 2
    drawn = {f: f.read_bytes() for f in files[2:]}
    for f in drawn:
        f.unlink()
    assert sorted(report.redraw(files[0].parent)) == sorted(drawn)
    assert files[4].read_bytes() == drawn[files[4]]
    assert len(files[2].read_bytes()) == pytest.approx(len(drawn[files[2]]), rel=0.05)  # times were rounded


def test_results_that_cannot_be_written_leave_the_old_ones(tmp_path, monkeypatch):
    (tmp_path / "cpu-x.md").write_text("old")
    monkeypatch.setattr(pictures, "draw_all", lambda *results: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        report.write(tmp_path, "cpu-x", everything())
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


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


def test_the_results_of_other_registers_have_other_names(small, tmp_path):
    other = registers.available()[0]
    if other not in registers.CHOICES:
        pytest.skip("this machine has other registers")
    result = CliRunner().invoke(command.main, ["--registers", other, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert (tmp_path / f"{machine.file_name(other)}.md").is_file()
    assert json.loads((tmp_path / f"{machine.file_name(other)}.json").read_text())["kernels"]


def test_registers_that_the_machine_lacks_are_refused(small, tmp_path, monkeypatch):
    monkeypatch.setattr(registers, "available", lambda: ("avx2",))
    result = CliRunner().invoke(command.main, ["--registers", "avx512", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "only for avx2" in result.output


def test_the_results_of_another_machine_are_never_replaced(small, tmp_path):
    results = tmp_path / f"{machine.file_name(registers.present())}.json"
    results.write_text('{"machine": "64 × Some CPU, torch 2"}')
    result = CliRunner().invoke(command.main, ["--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "64 × Some CPU" in result.output
    assert len(list(tmp_path.iterdir())) == 1


def test_examples_of_names_of_processors():
    assert doctest.testmod(machine).failed == 0


def test_a_part_of_a_run_prints_and_writes_nothing(small, tmp_path):
    result = CliRunner().invoke(command.main, ["--only", "bitonic 4", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "diffsort" in result.output
    assert not list(tmp_path.iterdir())


def test_an_interrupted_run_leaves_the_old_results(small, tmp_path, monkeypatch):
    def interrupted(group, threads):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure", interrupted)
    (tmp_path / "cpu.md").write_text("old")
    assert CliRunner().invoke(command.main, ["--out", str(tmp_path)]).exit_code == 1
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_an_unknown_case_is_refused():
    result = CliRunner().invoke(command.main, ["--only", "nonesuch"])
    assert result.exit_code == 2
    assert cases.AGAINST_PEERS[0].name in result.output
    assert exact.CASES[0].name in result.output
    assert "build of odd_even 1024" in result.output


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
