"""The GPU benchmark: its checks find wrong kernels, its files hold the results; its figures need a GPU."""

from __future__ import annotations

import contextlib
import json
import multiprocessing.dummy
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
from device import SHARED_BYTES, CpuExactProgram, CpuProgram, OnTheCpu

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import building, checks, events, jobs, limits, peers, report, timing
from benchmarks.gpu.building import Architecture, Form, Subject
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import LOSS_GRAD, NSC, P_GRAD
from benchmarks.gpu.results import Results
from nsc.contract.targets import TARGETS
from nsc.operators import exact
from nsc.operators.exact import DTYPE_NAMES
from nsc.operators.sorter import Sorter
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cubin, cuda
from nsc.runtime.relaxed.devices import BY_DEVICE

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
    changed = text.replace("products[c] = a - b;", "products[c] = b - a;")
    assert changed != text
    return changed


def test_every_way_to_launch_is_right(device, subject):
    for check, _, _, _ in jobs.LAUNCH_CHECKS.values():
        assert list(check(subject("bitonic", 4), 3)) == []


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
