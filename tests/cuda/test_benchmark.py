"""The GPU benchmark: its checks find wrong kernels, its files hold the results; its figures need a GPU."""

from __future__ import annotations

import contextlib
import ctypes
import json
import multiprocessing.dummy
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from click.testing import CliRunner
from device import SHARED_BYTES, EmulatedExactProgram, EmulatedProgram
from emulated import Emulated

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import building, checks, events, jobs, limits, peers, report, results, timing
from benchmarks.gpu.building import Architecture, Builds, Form, Mixes, Subject
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import LOSS_GRAD, NSC, P_GRAD, P, Peer
from benchmarks.gpu.results import Results
from nsc.contract.targets import TARGETS
from nsc.join.exact import exact_kernel
from nsc.operators import exact
from nsc.operators.exact import DTYPE_NAMES
from nsc.operators.sorter import Sorter
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.launches import exact_launches
from nsc.runtime.exact import cubin as exact_cubin
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cubin, cuda
from nsc.runtime.relaxed.devices import BY_DEVICE
from nsc.runtime.relaxed.kernel import register_kernel

pytestmark = pytest.mark.nightly("the benchmarks run")

ROOT = Path(__file__).parents[2]
# Packages that the benchmark must run without.
ABSENT = ("rich", "platformdirs", "diffsort", "matplotlib", "sklearn", "mpmath", "scipy", "pysat", "ziglang")
H100 = Architecture("sm_90", SHARED_BYTES)
LIMITS = Limits(4e12, 3e13, 9e11, 2e-6, 3e-6)


# ------------------------------------------------------------------------- a device that is the CPU


class Event:
    """An event with the time of the host."""

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.seconds = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.seconds - self.seconds) * 1e3


class Device:
    """The programs of the kernels, run by the emulation.

    Attributes:
        edit: changes the text of kernels.
        after: called after each launch, with the function's name and its arguments.
        captured: launches of the graph in capture; None outside a capture.
    """

    def __init__(self, folder):
        self.folder = folder
        self.edit = str
        self.after = lambda function, arguments: None
        self.captured = None
        self.programs = {}

    def program_of(self, kernel, device):
        key = kernel.spec, self.edit
        if key not in self.programs:
            folder = self.folder / f"{len(self.programs)}"
            folder.mkdir()
            self.programs[key] = EmulatedProgram(kernel, folder, edit=self.edit)
        return Program(self, self.programs[key])

    def exact_program_of(self, source, dtype, device):
        key = source.name, dtype
        if key not in self.programs:
            folder = self.folder / f"{len(self.programs)}"
            folder.mkdir()
            self.programs[key] = EmulatedExactProgram(source, dtype, folder)
        return Program(self, self.programs[key])

    def exact_worker(self, x, spec):
        source = exact._exact_kernel(spec).source
        return exact_cuda.CudaSort(source, exact_cuda.program_of(source, DTYPE_NAMES[x.dtype], x.device))

    def graph(self, graph):
        @contextlib.contextmanager
        def capture():
            self.captured = graph.launches
            yield
            self.captured = None

        return capture()


class Program:
    """A program of the device, with launches that a graph may capture."""

    def __init__(self, device, program):
        self.device, self.program = device, program

    def __getattr__(self, name):
        return getattr(self.program, name)

    def launch(self, function, blocks, *rest):
        launch = partial(self.program.launch, function, blocks, *rest)
        launch()
        self.device.after(function, rest[-1])
        if self.device.captured is not None:
            self.device.captured.append(launch)


class Graph:
    """A captured graph: its launches, run again."""

    def __init__(self):
        self.launches = []

    def replay(self):
        for launch in self.launches:
            launch()


def operator_on_the_cpu(subject):
    """Return the operator for CUDA, by the table of targets that the fixture makes."""
    return Sorter(subject.files)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The device, whose programs serve all tests."""
    return Device(tmp_path_factory.mktemp("programs"))


@pytest.fixture
def device(programs, monkeypatch):
    """torch's CUDA, as far as the benchmark uses it."""
    device = programs
    device.edit, device.after, device.captured = str, lambda function, arguments: None, None
    properties = SimpleNamespace(
        major=9,
        minor=0,
        multi_processor_count=1,
        shared_memory_per_block_optin=SHARED_BYTES,
        total_memory=80 << 30,
    )
    for name, stand_in in {
        "is_available": lambda: True,
        "get_device_name": lambda: "Some GPU (1 GB)",
        "get_device_properties": lambda device: properties,
        "synchronize": lambda: None,
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda: None,
        "memory_allocated": lambda: 0,
        "max_memory_allocated": lambda: 1 << 20,
        "Event": Event,
        "Stream": lambda: None,
        "stream": lambda stream: contextlib.nullcontext(),
        "CUDAGraph": Graph,
        "graph": device.graph,
    }.items():
        monkeypatch.setattr(torch.cuda, name, stand_in)
    for module in (events, checks, limits, peers):
        monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(building, "pool", lambda: multiprocessing.dummy.Pool(1))
    monkeypatch.setattr(Subject, "operator", property(operator_on_the_cpu))
    monkeypatch.setattr(cuda, "program_of", device.program_of)
    monkeypatch.setattr(exact_cuda, "program_of", device.exact_program_of)
    monkeypatch.setattr(exact, "_worker", device.exact_worker)
    monkeypatch.setitem(TARGETS, "cuda", replace(TARGETS["cuda"], devices=("cpu",)))
    monkeypatch.setitem(BY_DEVICE, torch.device("cpu"), cuda)
    monkeypatch.setattr(peers, "MOST_SAMPLES", 3)
    monkeypatch.setattr(peers, "MOST_SMALL_SAMPLES", 5)
    monkeypatch.setattr(events, "ROUND_SECONDS", 0)
    monkeypatch.setattr(limits, "measure", lambda: LIMITS)
    monkeypatch.setattr(command, "versions", lambda: "torch 2")
    return device


@pytest.fixture(scope="module")
def subject():
    """Return a function that compiles a network, without a binary."""

    def compiled(network, n, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(cubin, "build_all", lambda *arguments: None)
            result = building.build(Form(network, n, **options), (), H100)
        assert isinstance(result, Subject), result
        return result

    return compiled


# ------------------------------------------------------------------------------------------ checks


@pytest.mark.parametrize(("network", "n", "batch"), [("bitonic", 4, 5), ("odd_even", 5, 1)])
def test_right_kernels_pass_the_check(device, subject, network, n, batch):
    assert list(checks.check(subject(network, n), batch)) == []


def test_wrong_kernels_do_not(device, subject):
    device.edit = edited
    problems = list(checks.check(subject("bitonic", 4), 3))
    assert any(p.startswith("permutation: the gradient of x off by") for p in problems)
    assert not any("values" in problem for problem in problems)


def edited(text):
    changed = text.replace("products[c] = difference(a, b, half...)", "products[c] = b - a")
    assert changed != text
    return changed


def test_only_what_float32_loses_may_be_lost():
    exact = {"gradient": torch.ones(3, dtype=torch.float64)}

    def reference_in(dtype):
        return {"gradient": exact["gradient"] + (1e-3 if dtype == torch.float32 else 0)}

    def problems(error):
        return list(checks._far({"gradient": exact["gradient"] + error}, reference_in))

    assert problems(1e-4) == problems(9e-3) == []
    assert problems(2e-2) == ["gradient off by 2.0e-02 of the largest, torch in float32 by 1.0e-03"]
    assert problems(torch.nan)


def test_bits_that_depend_on_the_run_or_on_company_are_found(device, subject):
    calls = []

    def one_bit_more_each_time(function, arguments):
        calls.append(function)
        if function.startswith("nsc_keys_f32"):
            values = arguments[-2]
            if values is not None:
                values.view(torch.int32)[-1, -1] += len(calls)

    device.after = one_bit_more_each_time
    problems = list(checks.check(subject("bitonic", 4), 3))
    assert any(p.startswith("none, a second run: 1 numbers of values have other bits") for p in problems)
    assert any(p.startswith("none, samples [0, 1, 2] alone: 3 numbers of values") for p in problems)
    assert not any(p.startswith("none: ") for p in problems)


def test_any_type_is_checked(device, subject, monkeypatch):
    subject = subject("bitonic", 4)
    # The emulation takes seconds to build a type; test_exact has them all.
    some = {torch.float64: "float64", torch.uint8: "uint8", torch.bool: "bool"}
    monkeypatch.setattr(checks, "DTYPE_NAMES", some)
    assert list(checks.check_any_type(subject, 5)) == []
    plain = exact_cuda.CudaSort.sorted

    def wrong(*arguments):
        values, indices = plain(*arguments)
        return values, None if indices is None else indices.flip(0)

    monkeypatch.setattr(exact_cuda.CudaSort, "sorted", wrong)
    problems = list(checks.check_any_type(subject, 5))
    assert any("of the indices are not torch.sort's" in problem for problem in problems)
    assert {problem.partition(",")[0] for problem in problems} >= {"torch.uint8", "torch.float64"}


def test_every_way_to_launch_is_right_in_the_emulation(device, subject):
    for check, _, _, _ in jobs.LAUNCH_CHECKS.values():
        assert list(check(subject("bitonic", 4), 3)) == []


def test_a_graph_that_captures_nothing_is_found(device, subject, monkeypatch):
    monkeypatch.setattr(torch.cuda, "graph", lambda graph: contextlib.nullcontext())
    problems = list(checks.check_graph(subject("bitonic", 4), 3))
    assert {p.partition("numbers of ")[2].partition(" have")[0] for p in problems} >= {
        "the routed output",
        "the gradient of x",
    }


def test_the_graphs_network_has_run_no_backward_before():
    _, network, n, _ = jobs.LAUNCH_CHECKS["a CUDA graph"]
    others = [job for job in jobs.JOBS if job.form == Form(network, n)]
    assert [job.name for job in others] == [f"check, a CUDA graph, {network} {n}"]


def test_what_a_thread_raises_is_raised(device, subject, monkeypatch):
    subject = subject("bitonic", 4)
    plain = cuda.relax_unchecked
    calls = []

    def relax(*arguments):
        calls.append(arguments)
        if len(calls) > 1:
            raise RuntimeError("no context")
        return plain(*arguments)

    monkeypatch.setattr(cuda, "relax_unchecked", relax)
    with pytest.raises(RuntimeError, match="no context"):
        list(checks.check_thread(subject, 3))


# ------------------------------------------------------------------------------------------ builds


def test_kernels_are_built_by_other_processes():
    form, unknown = Form("bitonic", 4), Form("nonesuch", 4)
    with Builds({form: {"int8"}, unknown: set()}, H100) as builds:
        subject = builds.subject(form)
        assert (subject.n, subject.mixes) == (4, Mixes(6, 24, 24))
        assert subject.build.text > 0
        assert subject.build.binary > 0
        built = cubin.build_all(subject.operator.kernel, "sm_90", SHARED_BYTES)
        source = exact_kernel(4).source
        exact_built = exact_cubin.build(source, "int8", "sm_90", exact_launches(source, 1, SHARED_BYTES))
        assert all(artifact.cached for artifact in (*built, exact_built))
        with pytest.raises(RuntimeError, match=r"(?s)nonesuch 4 is not built.*NetworkError"):
            builds.subject(unknown)


@pytest.mark.parametrize("variant", building.VARIANTS)
def test_a_variant_is_another_text(subject, variant):
    texts = {
        register_kernel(subject("bitonic", n, variant=each).files).sources["cuda"]
        for n in (64, 256)
        for each in ("", variant)
    }
    assert len(texts) > 2


# ------------------------------------------------------------------------------------------ limits


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_120"])
def test_the_kernels_of_the_limits_compile_without_a_warning(architecture):
    for multiply_adds in (1, 2):
        compiler = nvrtc.Nvrtc(architecture, "", (("MULTIPLY_ADDS", str(multiply_adds)),))
        _, log = compiler.compiled(limits.SOURCE.read_text())
        assert "Compiling entry function 'mixed_instructions'" in log
        assert "warning" not in log


def test_limits_are_measured(device, monkeypatch, tmp_path):
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "Event", Event)
    properties = SimpleNamespace(multi_processor_count=1)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    monkeypatch.setattr(limits, "DEVICE", "cpu")
    monkeypatch.setattr(limits, "COUNT", 1)
    monkeypatch.setattr(limits, "COPIED_BYTES", 1 << 16)
    monkeypatch.setattr(limits, "THREADS", 64)
    monkeypatch.setattr(events, "ROUNDS", 2)
    launched = []

    class Module:
        def __init__(self, code, options):
            (define,) = options
            folder = tmp_path / f"{len(list(tmp_path.iterdir()))}"
            folder.mkdir()
            name, value = define.removeprefix("-D").split("=")
            self.kernels = Emulated(f"#define {name} {value}\n{code}", folder)

        def get_function(self, name):
            def launch(grid, block, arguments):
                launched.append(name)
                self.kernels.launch(name, (*grid, 1, 1), (*block, 1, 1), arguments)

            return launch

    types = {name: getattr(ctypes, f"c_{name}") for name in ("uint64", "int32", "uint32")}
    stand_in = SimpleNamespace(RawModule=Module, float32=ctypes.c_float, **types)
    monkeypatch.setitem(sys.modules, "cupy", stand_in)
    measured = limits.measure()
    assert all(value > 0 for value in vars(measured).values())
    assert set(launched) == {"multiply_adds", "mixed_instructions", "empty"}


def test_limits_grow_with_the_work(subject):
    def seconds(work, n, batch=1):
        return limits.limit_seconds(work, n, batch, subject("bitonic", n).mixes, LIMITS)

    times = [seconds(P_GRAD, n) for n in (4, 16, 64, 128)]
    for limit in ("memory", "multiply-adds", "issue"):
        assert [t[limit] for t in times] == sorted(t[limit] for t in times)
        assert seconds(P, 64, 2)[limit] == 2 * seconds(P, 64)[limit]
        assert seconds(P, 64)[limit] < seconds(P_GRAD, 64)[limit]
    # All 80 comparators of 16 wires meet all 16 columns of P.
    assert seconds(P, 16)["multiply-adds"] == pytest.approx(4 * 80 * 16 / LIMITS.operations_per_second)


# ------------------------------------------------------------------------------------------- times


def test_kernels_are_timed_launch_by_launch(device, subject):
    subject = subject("bitonic", 4)
    launches = timing.time_launches(NSC, peers._nsc(P_GRAD, subject, 3))
    assert {launch.function for launch in launches} == {
        "nsc_keys_f32",
        "nsc_route_f32",
        "nsc_route_backward_f32",
        "nsc_keys_backward_f32",
    }
    assert sum(launch.share for launch in launches) == pytest.approx(1)
    assert [launch.seconds for launch in launches] == sorted(
        (launch.seconds for launch in launches), reverse=True
    )
    assert {launch.launches for launch in launches} == {1}  # weights are kept
    assert cuda.program_of == device.program_of
    assert exact_cuda.program_of == device.exact_program_of


@pytest.mark.parametrize("work", peers.PEERS)
def test_every_work_is_timed_of_every_peer(device, subject, work, monkeypatch):
    monkeypatch.setattr(timing, "ROUNDS", 2)
    monkeypatch.setattr(timing, "LAUNCH_CALLS", 1)
    pytest.importorskip("diffsort")
    options = {"real": peers.SOFT_WORKS[work].real} if work in peers.SOFT_WORKS else {}
    subject = subject("bitonic", 4, **options)
    timings, launches, failures = timing.time_case(work, peers.PEERS[work], subject, LIMITS)
    assert failures == []
    assert [t.peer for t in timings] == [peer.name for peer in peers.PEERS[work]]
    assert all(0 < t.low <= t.seconds <= t.high for t in timings)
    assert all(t.host > 0 for t in timings)
    assert [t.share is None for t in timings] == [t.peer != NSC for t in timings]
    assert launches


def test_a_slow_peer_has_fewer_rounds(monkeypatch):
    monkeypatch.setattr(torch.cuda, "Event", Event)
    rounds = [events.Seconds(timing.PEER_SECONDS, 0)] * timing.LEAST_ROUNDS
    slow = timing._Turn("slow", None, 1, lambda: None, 1, False, rounds)
    assert slow.is_over
    assert not replace(slow, rounds=rounds[1:]).is_over
    assert not replace(slow, rounds=[events.Seconds(1e-3, 0)] * timing.LEAST_ROUNDS).is_over


def test_batches_fit_the_memory(subject, monkeypatch):
    small = SimpleNamespace(total_memory=1 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: small)
    assert peers._fitting(P, subject("bitonic", 1024)) == 0
    for n in (4, 16, 128):
        for work, those in peers.PEERS.items():
            for peer in those:
                assert 0 <= peer.batch(work, subject("bitonic", n)) <= peers.MOST_SMALL_SAMPLES
    assert peers.batch_of(P, subject("bitonic", 8)) == 1 << 20
    assert peers.batch_of(P, subject("bitonic", 128)) * 4 * 128**2 == peers.P_BYTES


# -------------------------------------------------------------------------------------- whole runs


@pytest.fixture
def small(device, monkeypatch):
    """A benchmark of a few jobs on four wires; `peers` are those of P + gradient."""
    of_p_grad, of_loss = ([peer for peer in peers.PEERS[P_GRAD] if peer.name != "diffsort"] for _ in range(2))
    monkeypatch.setitem(peers.PEERS, P_GRAD, of_p_grad)
    monkeypatch.setitem(peers.PEERS, LOSS_GRAD, of_loss)
    jobs_of_four = (
        jobs._check("check, bitonic 4", checks.check, "bitonic", 4, 3),
        jobs._timed(P_GRAD, "bitonic", 4),
        jobs._timed(LOSS_GRAD, "bitonic", 4),
        jobs._check("check, strides, bitonic 4", checks.check_strides, "bitonic", 4, 3),
    )
    for module in (command, report):
        monkeypatch.setattr(module, "JOBS", jobs_of_four)
    monkeypatch.setattr(timing, "ROUNDS", 1)
    monkeypatch.setattr(timing, "LAUNCH_CALLS", 1)
    device.peers = of_p_grad
    return device


ALL = [
    "check, bitonic 4",
    "limits",
    f"{P_GRAD}, bitonic 4",
    f"{LOSS_GRAD}, bitonic 4",
    "check, strides, bitonic 4",
]


def run(folder, *options, code=0):
    done = CliRunner().invoke(command.main, ["--out", str(folder), *options])
    assert done.exit_code == code, done.output
    return done.output


def stored_files(folder):
    """Return the results and the report in the files; both must agree."""
    (data,) = folder.glob("*.json")
    (text,) = folder.glob("*.md")
    assert sorted(folder.iterdir()) == sorted((data, text))
    assert (data.name, text.name) == ("gpu-some_gpu_1_gb.json", "gpu-some_gpu_1_gb.md")
    stored = Results.from_json(data.read_text())
    assert text.read_text() == report.markdown(stored)
    return stored, text.read_text()


def test_a_run_writes_all_it_found(small, tmp_path):
    output = run(tmp_path)
    assert "4 cases run, 0 failures" in output
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL
    assert (stored.device, stored.limits) == ("Some GPU (1 GB)", LIMITS)
    assert list(stored.builds) == [Form("bitonic", 4)]
    assert {outcome.versions for outcome in stored.outcomes.values()} == {"torch 2"}
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, "indexed torch"]
    for heading in ("Limits", "Checks", "Times", "Kernels", "Builds"):
        assert f"\n## {heading}\n" in text
    assert "Failures" not in text
    assert "Not run" not in text


def test_a_new_process_has_the_options_of_the_first(small, tmp_path, monkeypatch):
    started = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append(arguments[3:]))
    monkeypatch.setattr(command.Run, "do", lambda run, left: False)
    run(tmp_path, "--variant", "64 wires a warp", code=1)
    assert started == [["--out", str(tmp_path), "--resume", "--variant", "64 wires a warp"]]


def test_variants_are_timed_in_turn_with_what_is_shipped(small, tmp_path):
    variants = [f"{NSC}, {name}" for name in building.VARIANTS]
    run(tmp_path, "--only", P_GRAD, "--variant", "all")
    stored, text = stored_files(tmp_path)
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, *variants, "indexed torch"]
    assert {launch.peer for launch in stored.outcomes[ALL[2]].launches} == {NSC, *variants}
    assert {form.variant for form in stored.builds} == {"", *building.VARIANTS}
    assert "| nsc, 64 wires a warp |" in text


def test_kernels_are_built_for_another_machine(small, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    built = []
    monkeypatch.setattr(cubin, "build_all", lambda kernel, *target: built.append(target))
    assert "1 kernel built, 0 failures" in run(tmp_path, "--build", "sm_80")
    assert built == [("sm_80", 163 << 10)]
    monkeypatch.setattr(cubin, "build_all", lambda *_: 1 / 0)
    output = run(tmp_path, "--build", "sm_80", code=1)
    assert "FAILED: bitonic 4: RuntimeError: bitonic 4 is not built" in output
    assert not list(tmp_path.iterdir())


def test_the_plan_names_cases_that_there_are(tmp_path):
    plan = run(tmp_path, "--plan")
    assert not list(tmp_path.iterdir())
    names = re.findall('--only "?([^"\n]+?)"?(?= |$)', plan.replace("\\\n", ""), re.M)
    assert len(names) == 10
    for name in names:
        known = [name.replace("$1", n) for n in ("16", "128", "1024")] if "$1" in name else [name]
        assert all(any(each in job.name for job in jobs.JOBS) for each in known), name


def test_what_fails_is_kept_and_the_rest_runs(small, tmp_path):
    small.edit = edited
    output = run(tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL
    assert any("gradient of x off by" in failure for failure in stored.outcomes[ALL[0]].failures)
    assert "gradient of x off by" in text
    assert "FAILED: check, bitonic 4: permutation" in output
    assert stored.outcomes[ALL[2]].timings


def peer_that_raises(error):
    def start(work, subject, batch):
        raise error

    return Peer("other", lambda work, subject: 7, start)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), ValueError("no such distribution")]
)
def test_a_peer_that_fails_leaves_the_others_their_times(small, tmp_path, monkeypatch, error):
    small.peers.insert(0, peer_that_raises(error))
    output = run(tmp_path, code=1)
    assert f"FAILED: {ALL[2]}: other, batch 7: {type(error).__name__}: {error}" in output
    assert "4 cases run, 1 failure\n" in output
    stored, text = stored_files(tmp_path)
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, "indexed torch"]
    assert str(error) in text


def test_a_peer_that_fails_in_a_round_leaves_the_others_their_times(small, tmp_path, monkeypatch):
    calls = []

    def call():
        calls.append(0)
        if len(calls) > 2:
            raise torch.OutOfMemoryError("later")

    peer = Peer("other", lambda work, subject: 7, lambda work, subject, batch: call)
    small.peers.insert(0, peer)
    assert "1 failure" in run(tmp_path, code=1)
    stored, _ = stored_files(tmp_path)
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, "indexed torch"]


@pytest.mark.parametrize("where", ["build", "limits", "job"])
def test_an_exception_fails_one_case(small, tmp_path, monkeypatch, where):
    def broken(*arguments):
        raise RuntimeError("the driver says no")

    if where == "build":
        monkeypatch.setattr(cubin, "build_all", broken)
    elif where == "limits":
        monkeypatch.setattr(limits, "measure", broken)
    else:
        monkeypatch.setattr(cuda, "relax_backward_unchecked", broken)
        monkeypatch.setattr(checks, "_run_reference", lambda kernel, samples: pytest.fail("not reached"))
    output = run(tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL
    assert "the driver says no" in output
    assert "the driver says no" in text
    failed = [name for name, outcome in stored.outcomes.items() if outcome.failures]
    expected = {"build": [name for name in ALL if name != "limits"], "limits": ["limits"]}
    assert failed == expected.get(where, [name for name in ALL if name != "limits" and "entropy" not in name])
    if where == "limits":
        assert stored.outcomes[ALL[2]].timings[0].share is None


def test_an_interrupted_run_keeps_what_it_found_and_is_resumed(small, tmp_path, monkeypatch):
    plain = timing.time_case

    def interrupted(work, *arguments):
        if work == LOSS_GRAD:
            raise KeyboardInterrupt
        return plain(work, *arguments)

    monkeypatch.setattr(timing, "time_case", interrupted)
    run(tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL[:3]
    assert f"Not run: {ALL[3]}; {ALL[4]}." in text
    monkeypatch.setattr(timing, "time_case", plain)
    monkeypatch.setattr(command, "versions", lambda: "torch 3")
    run(tmp_path, "--resume")
    stored, text = stored_files(tmp_path)
    assert [outcome.versions for outcome in stored.outcomes.values()] == ["torch 2"] * 3 + ["torch 3"] * 2
    assert "with torch 2; or torch 3." in text


def test_a_resumed_run_tells_of_failures_before_it(small, tmp_path):
    small.edit = edited
    run(tmp_path, code=1)
    assert "FAILED: check, bitonic 4: permutation" in run(tmp_path, "--resume", code=1)
    small.edit = str
    run(tmp_path)
    run(tmp_path, "--resume")


def test_a_part_of_it_writes_nothing_unless_told_where(small, tmp_path, monkeypatch):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    done = CliRunner().invoke(command.main, ["--only", "strides"])
    assert done.exit_code == 0, done.output
    assert "check, strides, bitonic 4: right" in done.output
    assert "1 case run, 0 failures" in done.output
    assert not list(tmp_path.iterdir())
    done = CliRunner().invoke(command.main, [])
    assert done.exit_code == 0, done.output
    assert list(stored_files(tmp_path)[0].outcomes) == ALL


def test_a_part_of_it_replaces_its_own_cases_alone(small, tmp_path, monkeypatch):
    run(tmp_path)
    before, _ = stored_files(tmp_path)
    monkeypatch.setattr(command, "versions", lambda: "torch 3")
    run(tmp_path, "--only", "strides", "--only", "entropy")
    after, _ = stored_files(tmp_path)
    assert sorted(after.outcomes) == sorted(ALL)
    replaced = {name for name, outcome in after.outcomes.items() if outcome != before.outcomes[name]}
    assert replaced == {"limits", *ALL[3:]}
    assert all(after.outcomes[name].versions == "torch 3" for name in replaced)


def test_a_whole_run_begins_anew(small, tmp_path):
    run(tmp_path)
    (path,) = tmp_path.glob("*.json")
    facts = json.loads(path.read_text())
    facts["outcomes"][0]["name"] = "a case of old"
    path.write_text(json.dumps(facts))
    run(tmp_path)
    assert list(stored_files(tmp_path)[0].outcomes) == ALL


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": "nsc-gpu-results/1"}', '{"format": "nsc-gpu-results/2"}']
)
def test_files_of_something_else_are_refused(small, tmp_path, text):
    path = results.path_of(tmp_path, "Some GPU (1 GB)")
    path.write_text(text)
    assert "holds no results of this version" in run(tmp_path, "--resume", code=2)
    assert path.read_text() == text


def test_a_gpu_that_no_longer_answers_is_left_to_a_new_process(small, tmp_path, monkeypatch):
    class ReplacedError(Exception):
        pass

    def lost():
        raise RuntimeError("an illegal memory access was encountered")

    def replaced(*arguments):
        started.append(arguments)
        raise ReplacedError

    started = []
    monkeypatch.setattr(os, "execv", replaced)
    small.peers[:] = [peer_that_raises(RuntimeError("illegal"))]
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(peers, "DEVICE", "cpu")
    plain = timing.time_case

    def losing(*arguments):
        try:
            return plain(*arguments)
        finally:
            monkeypatch.setattr(torch.cuda, "synchronize", lost)

    monkeypatch.setattr(timing, "time_case", losing)
    done = CliRunner().invoke(command.main, ["--out", str(tmp_path), "--only", "bitonic", "--only", "4"])
    assert isinstance(done.exception, ReplacedError)
    module = [sys.executable, "-m", "benchmarks.gpu"]
    options = ["--out", str(tmp_path), "--resume", "--only", "bitonic", "--only", "4"]
    assert started == [(sys.executable, [*module, *options])]
    assert list(stored_files(tmp_path)[0].outcomes) == ALL[:3]
    # The new process.
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(timing, "time_case", plain)
    assert "4 cases run, 1 failure\n" in run(tmp_path, *options[2:], code=1)
    assert list(stored_files(tmp_path)[0].outcomes) == ALL
    # Without files there is nothing to resume.
    monkeypatch.setattr(timing, "time_case", losing)
    done = CliRunner().invoke(command.main, ["--only", "bitonic"])
    assert done.exit_code == 1
    assert f"NOT RUN, because the GPU no longer answered: {ALL[4]}" in done.output
    assert "2 cases run, 1 failure\n" in done.output


def test_unknown_cases_and_lone_resumes_are_refused(small, tmp_path):
    assert "no case contains 'nonesuch'; there are: check, bitonic 4;" in run(
        tmp_path, "--only", "nonesuch", code=2
    )
    done = CliRunner().invoke(command.main, ["--only", "bitonic", "--resume"])
    assert done.exit_code == 2
    assert "state --out too" in done.output


def test_names_tell_jobs_apart():
    names = [job.name for job in jobs.JOBS]
    assert len(set(names)) == len(names)
    assert {job.form.n for job in jobs.JOBS if job.is_timed} >= {4, 16, 128, 1024, 4096}
    assert [job.form.n for job in jobs.JOBS] == sorted(job.form.n for job in jobs.JOBS)


# ----------------------------------------------------------------------------------------- reports


def test_without_a_gpu_it_says_so_and_imports_little(tmp_path):
    absent = "; ".join(f"sys.modules[{name!r}] = None" for name in ABSENT)
    program = (
        f"import sys; {absent}; from benchmarks.gpu.__main__ import main; main(['--out', {str(tmp_path)!r}])"
    )
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 2
    assert "torch sees no CUDA device" in done.stderr
    assert list(tmp_path.iterdir()) == []
