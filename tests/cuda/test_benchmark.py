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
from device import NEWEST, SHARED_BYTES, CpuExactProgram, CpuProgram, OnTheCpu
from machine import ANYWHERE

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import building, checks, events, jobs, limits, peers, report, results, timing
from benchmarks.gpu.building import Architecture, Builds, Form, Mixes, Subject
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import LOSS_GRAD, NSC, P_GRAD, P, Peer
from benchmarks.gpu.results import Results
from nsc.contract.targets import TARGETS
from nsc.join.on_demand import exact_kernel
from nsc.operators import exact
from nsc.operators.exact import DTYPE_NAMES
from nsc.operators.sorter import Sorter
from nsc.runtime.build import nvrtc
from nsc.runtime.devices.launches import exact_launches
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
    """The programs of the kernels, run by the CPU.

    Attributes:
        edit: changes the text of kernels.
        after: called after each launch, with the function's name and its arguments.
        captured: launches of the graph in capture; None outside a capture.
    """

    def __init__(self):
        self.programs = {}
        self.reset()

    def reset(self):
        self.edit, self.after, self.captured = str, lambda function, arguments: None, None

    def program_of(self, kernel, device):
        key = kernel.spec, self.edit
        if key not in self.programs:
            self.programs[key] = CpuProgram(kernel, edit=self.edit)
        return self.programs[key]

    def exact_program_of(self, source, dtype, device):
        key = source.name, dtype
        if key not in self.programs:
            self.programs[key] = CpuExactProgram(source, dtype)
        return self.programs[key]

    def exact_worker(self, x, spec):
        source = exact._exact_kernel(spec).source
        return exact_cuda.CudaSort(source, exact_cuda.program_of(source, DTYPE_NAMES[x.dtype], x.device))

    def launch(self, launch, program, function, blocks, arguments):
        launch(program, function, blocks, arguments)
        self.after(function, arguments)
        if self.captured is not None:
            self.captured.append(partial(launch, program, function, blocks, arguments))

    @contextlib.contextmanager
    def graph(self, graph):
        self.captured = graph.launches
        yield
        self.captured = None


class Graph:
    """A captured graph: its launches, run again."""

    def __init__(self):
        self.launches = []

    def replay(self):
        for launch in self.launches:
            launch()


@pytest.fixture(scope="module")
def programs():
    """The device, whose programs serve all tests."""
    return Device()


@pytest.fixture
def device(programs, monkeypatch):
    """torch's CUDA, as far as the benchmark uses it."""
    device = programs
    device.reset()
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
    monkeypatch.setattr(Subject, "operator", property(lambda subject: Sorter(subject.files)))
    monkeypatch.setattr(cuda, "program_of", device.program_of)
    monkeypatch.setattr(exact_cuda, "program_of", device.exact_program_of)
    launch = OnTheCpu.launch
    monkeypatch.setattr(OnTheCpu, "launch", lambda *arguments: device.launch(launch, *arguments))
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
    # A type takes a second to build; test_exact has them all.
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


def test_every_way_to_launch_is_right(device, subject):
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
        exact_built = exact_cuda.build(source, "int8", "sm_90", exact_launches(source, 1, SHARED_BYTES))
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


def test_limits_are_measured(monkeypatch):
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
            name, value = options[0].removeprefix("-D").split("=")
            self.kernels = NEWEST.kernels(f"#define {name} {value}\n{code}")

        def get_function(self, name):
            def launch(grid, block, arguments):
                launched.append(name)
                self.kernels.launch(name, *grid, *block, arguments, memory=ANYWHERE)

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


def run(*options, code=0):
    done = CliRunner().invoke(command.main, [str(option) for option in options])
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
    assert "4 cases run, 0 failures" in run("--out", tmp_path)
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
    (path,) = tmp_path.glob("*.json")
    facts = json.loads(path.read_text())
    facts["outcomes"][0]["name"] = "a case of old"
    path.write_text(json.dumps(facts))
    run("--out", tmp_path)
    assert list(stored_files(tmp_path)[0].outcomes) == ALL


def test_variants_are_timed_in_turn_with_what_is_shipped(small, tmp_path):
    variants = [f"{NSC}, {name}" for name in building.VARIANTS]
    run("--out", tmp_path, "--only", P_GRAD, "--variant", "all")
    stored, text = stored_files(tmp_path)
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, *variants, "indexed torch"]
    assert {launch.peer for launch in stored.outcomes[ALL[2]].launches} == {NSC, *variants}
    assert {form.variant for form in stored.builds} == {"", *building.VARIANTS}
    assert "| nsc, 64 wires a warp |" in text


def test_kernels_are_built_for_another_machine(small, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    built = []
    monkeypatch.setattr(cubin, "build_all", lambda kernel, *target: built.append(target))
    assert "1 kernel built, 0 failures" in run("--build", "sm_80")
    assert built == [("sm_80", 163 << 10)]
    monkeypatch.setattr(cubin, "build_all", lambda *_: 1 / 0)
    assert "FAILED: bitonic 4: RuntimeError: bitonic 4 is not built" in run("--build", "sm_80", code=1)


def test_the_plan_names_cases_that_there_are():
    names = re.findall('--only "?([^"\n]+?)"?(?= |$)', run("--plan").replace("\\\n", ""), re.M)
    assert len(names) == 10
    for name in names:
        known = [name.replace("$1", n) for n in ("16", "128", "1024")] if "$1" in name else [name]
        assert all(any(each in job.name for job in jobs.JOBS) for each in known), name


def test_what_fails_is_kept_and_the_rest_runs(small, tmp_path):
    small.edit = edited
    line = "FAILED: check, bitonic 4: permutation"
    assert line in run("--out", tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL
    assert any("gradient of x off by" in failure for failure in stored.outcomes[ALL[0]].failures)
    assert "gradient of x off by" in text
    assert stored.outcomes[ALL[2]].timings
    assert line in run("--out", tmp_path, "--resume", code=1)
    small.edit = str
    run("--out", tmp_path)
    run("--out", tmp_path, "--resume")


def raising(error, calls=0):
    """Return a peer that fails: its start, or behind some calls."""
    left = [None] * calls

    def call():
        if not left:
            raise error
        left.pop()

    return Peer("other", lambda work, subject: 7, lambda work, subject, batch: call if calls else call())


@pytest.mark.parametrize(
    "peer",
    [
        raising(torch.OutOfMemoryError("CUDA out of memory")),
        raising(ValueError("no such distribution")),
        raising(torch.OutOfMemoryError("later"), calls=2),
    ],
    ids=["memory", "another error", "in a round"],
)
def test_a_peer_that_fails_leaves_the_others_their_times(small, tmp_path, peer):
    small.peers.insert(0, peer)
    output = run("--out", tmp_path, code=1)
    assert f"FAILED: {ALL[2]}: other, batch 7: " in output
    assert "4 cases run, 1 failure\n" in output
    stored, text = stored_files(tmp_path)
    assert [t.peer for t in stored.outcomes[ALL[2]].timings] == [NSC, "indexed torch"]
    assert "other, batch 7: " in text


@pytest.mark.parametrize("where", ["build", "limits", "job"])
def test_an_exception_fails_one_case(small, tmp_path, monkeypatch, where):
    def broken(*arguments):
        raise RuntimeError("the driver says no")

    if where == "build":
        monkeypatch.setattr(cubin, "build_all", broken)
    elif where == "limits":
        monkeypatch.setattr(limits, "measure", broken)
    else:
        monkeypatch.setattr(cuda, "relax_backward", broken)
    assert "the driver says no" in run("--out", tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL
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
    run("--out", tmp_path, code=1)
    stored, text = stored_files(tmp_path)
    assert list(stored.outcomes) == ALL[:3]
    assert f"Not run: {ALL[3]}; {ALL[4]}." in text
    monkeypatch.setattr(timing, "time_case", plain)
    monkeypatch.setattr(command, "versions", lambda: "torch 3")
    run("--out", tmp_path, "--resume")
    stored, text = stored_files(tmp_path)
    assert [outcome.versions for outcome in stored.outcomes.values()] == ["torch 2"] * 3 + ["torch 3"] * 2
    assert "with torch 2; or torch 3." in text


def test_a_part_of_it_replaces_its_own_cases_alone(small, tmp_path, monkeypatch):
    """Without a folder it writes nothing."""
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    output = run("--only", "strides")
    assert "check, strides, bitonic 4: right" in output
    assert "1 case run, 0 failures" in output
    assert not list(tmp_path.iterdir())
    run()
    before, _ = stored_files(tmp_path)
    monkeypatch.setattr(command, "versions", lambda: "torch 3")
    run("--out", tmp_path, "--only", "strides", "--only", "entropy")
    after, _ = stored_files(tmp_path)
    assert sorted(after.outcomes) == sorted(ALL)
    replaced = {name for name, outcome in after.outcomes.items() if outcome != before.outcomes[name]}
    assert replaced == {"limits", *ALL[3:]}
    assert all(after.outcomes[name].versions == "torch 3" for name in replaced)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "nsc-gpu-results/1"}'])
def test_files_of_something_else_are_refused(small, tmp_path, text):
    path = results.path_of(tmp_path, "Some GPU (1 GB)")
    path.write_text(text)
    assert "holds no results of this version" in run("--out", tmp_path, "--resume", code=2)
    assert path.read_text() == text


def test_a_gpu_that_no_longer_answers_is_left_to_a_new_process(small, tmp_path, monkeypatch):
    class ReplacedError(Exception):
        """The process is another one now."""

    def replaced(*arguments):
        started.append(arguments)
        raise ReplacedError

    def lost():
        raise RuntimeError("an illegal memory access was encountered")

    def losing(*arguments):
        try:
            return plain(*arguments)
        finally:
            monkeypatch.setattr(torch.cuda, "synchronize", lost)

    started, plain = [], timing.time_case
    monkeypatch.setattr(os, "execv", replaced)
    small.peers[:] = [raising(RuntimeError("illegal"))]
    monkeypatch.setattr(timing, "time_case", losing)
    options = ["--out", str(tmp_path), "--resume", "--only", "bitonic", "--only", "4"]
    options += ["--variant", "64 wires a warp"]
    done = CliRunner().invoke(command.main, [*options[:2], *options[3:]])
    assert isinstance(done.exception, ReplacedError)
    assert started == [(sys.executable, [sys.executable, "-m", "benchmarks.gpu", *options])]
    assert list(stored_files(tmp_path)[0].outcomes) == ALL[:3]
    # The new process.
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(timing, "time_case", plain)
    assert "4 cases run, 2 failures\n" in run(*options, code=1)  # and that of the variant
    assert list(stored_files(tmp_path)[0].outcomes) == ALL
    # Without files there is nothing to resume.
    monkeypatch.setattr(timing, "time_case", losing)
    output = run("--only", "bitonic", code=1)
    assert f"NOT RUN, because the GPU no longer answered: {ALL[4]}" in output
    assert "2 cases run, 1 failure\n" in output


def test_unknown_cases_and_lone_resumes_are_refused(small):
    unknown = run("--only", "nonesuch", code=2)
    assert "no case contains 'nonesuch'; there are: check, bitonic 4;" in unknown
    assert "state --out too" in run("--only", "bitonic", "--resume", code=2)


def test_names_tell_jobs_apart():
    names = [job.name for job in jobs.JOBS]
    assert len(set(names)) == len(names)
    assert {job.form.n for job in jobs.JOBS if job.is_timed} >= {4, 16, 128, 1024, 4096}
    assert [job.form.n for job in jobs.JOBS] == sorted(job.form.n for job in jobs.JOBS)


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
