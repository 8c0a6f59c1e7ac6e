"""The GPU benchmark: its checks find wrong kernels, its files hold the results; its figures need a GPU."""

from __future__ import annotations

import multiprocessing.dummy
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benched import H100, LIMITS, Device, edited, stand_in
from click.testing import CliRunner

from benchmarks.gpu import __main__ as command
from benchmarks.gpu import building, carried, checks, jobs, report, running
from benchmarks.gpu.building import Form, Subject
from benchmarks.gpu.jobs import COUNTERS, JOB_OF, JOBS, STEP, Job, Tool
from benchmarks.gpu.jobs import FIRST as FIRST_PART
from benchmarks.gpu.peers import NSC, P_GRAD
from benchmarks.gpu.predictions import predicted
from benchmarks.gpu.results import Results
from benchmarks.gpu.tools import COUNTERS as COUNTED_NAMES
from benchmarks.gpu.worker import NoAnswerError, Worker
from nsc.runtime.build import nvrtc
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cubin

pytestmark = pytest.mark.nightly("the benchmarks run")

ROOT = Path(__file__).parents[2]
# Packages that the benchmark must run without.
ABSENT = ("rich", "platformdirs", "diffsort", "matplotlib", "sklearn", "mpmath", "scipy", "pysat", "ziglang")


@pytest.fixture(scope="module")
def programs():
    """The device, whose programs serve all tests."""
    return Device()


@pytest.fixture
def device(programs, monkeypatch):
    """torch's CUDA, as far as the benchmark uses it."""
    stand_in(programs, monkeypatch)
    return programs


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


def test_every_way_to_launch_is_right(device, subject):
    for check in (*jobs.FIRST_CHECKS.values(), *(check for check, *_ in jobs.LAUNCH_CHECKS.values())):
        assert list(check(subject("bitonic", 4), 3)) == []


def test_the_largest_values_of_every_type(device, subject):
    assert list(checks.check_top_k(subject("bitonic", 8, top_k=3), 5)) == []


# -------------------------------------------------------------------------------------- whole runs

FIRST = "first, P, bitonic 16"
LOSS = "first, loss and gradient, bitonic 16"
TIMED = f"{P_GRAD}, batch 100, bitonic 16"
COUNTED = "counters, nsc_route_f32, bitonic 16"
# ncu's output: what the program prints, and a table.
NCU = """#!/bin/sh
echo "==PROF== Connected"
echo '"ID",{names}'
echo '"",{units}'
echo '"0",{numbers}'
"""
SANITIZER = """#!/bin/sh
echo "========= COMPUTE-SANITIZER"
echo "========= Invalid __global__ read of size 4 bytes ($@)"
exit 9
"""


@pytest.fixture
def run(monkeypatch, tmp_path):
    """Return a function that runs jobs on the stand-in, and returns the output and the stored results."""
    chosen = [job for job in JOBS if job.part in (FIRST_PART, STEP) and job.name.endswith("bitonic 16")]
    chosen = [job for job in chosen if ", batch 1" not in job.name or job.name == TIMED]
    counted = Job(COUNTED, COUNTERS, 5, None, tool=Tool("ncu", TIMED, "nsc_route_f32"))
    monkeypatch.setattr(command, "JOBS", (*chosen, JOB_OF["limits"], counted))
    monkeypatch.setattr(building, "pool", lambda: multiprocessing.dummy.Pool(1))
    monkeypatch.setattr(cubin, "build_all", lambda *arguments: None)
    monkeypatch.setattr(exact_cuda, "build", lambda *arguments: None)
    quoted = {"names": COUNTED_NAMES, "units": ["%"] * len(COUNTED_NAMES), "numbers": range(10)}
    texts = {word: ",".join(f'"{each}"' for each in row) for word, row in quoted.items()}
    for name, text in (("ncu", NCU.format(**texts)), ("compute-sanitizer", SANITIZER)):
        (program := tmp_path / "bin" / name).parent.mkdir(exist_ok=True)
        program.write_text(text)
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests' / 'cuda'}")

    def run(*options, code=0, is_wrong=False, hung=""):
        words = [sys.executable, str(ROOT / "tests/cuda/benched.py"), "wrong" if is_wrong else "", hung]
        monkeypatch.setattr(command, "Worker", lambda: Worker(words))
        if "--continue" not in options:
            options = (*options, "--out", tmp_path / "results")
        done = CliRunner().invoke(command.main, [str(option) for option in options])
        assert done.exit_code == code, done.output
        (data,) = (tmp_path / "results").glob("*.json")
        stored = Results.of_file(data)
        assert data.with_suffix(".md").read_text() == report.markdown(stored)
        assert len([*data.parent.iterdir()]) == 2
        return done.output, stored, data

    return run


def test_a_run_learns_in_order_and_writes_what_it_found(run, monkeypatch, tmp_path):
    output, stored, _ = run()
    assert [*stored.outcomes] == [job.name for job in command.JOBS]
    assert not stored.failures(stored.outcomes)
    assert (stored.device, stored.limits) == ("Some GPU (1 GB)", LIMITS)
    assert {outcome.versions for outcome in stored.outcomes.values()} == {"torch 2"}
    names = [timing.peer for timing in stored.outcomes[TIMED].timings]
    assert names == [NSC, "nsc in a CUDA graph", "indexed torch", "a copy of P"]
    assert stored.outcomes[COUNTED].counters["memory"] == "4 %"
    parts = ["-- first results", "-- times of a step", "-- counters"]
    assert sorted(parts, key=output.index) == parts
    monkeypatch.setattr(report, "PAGE", page := tmp_path / "gpu.md")
    page.write_text("# GPUs\n<!-- measured on GPUs -->\n<!-- end of measured -->\nend\n")
    assert CliRunner().invoke(command.main, ["--report", str(tmp_path / "results")]).exit_code == 0
    text = page.read_text()
    assert text.endswith("<!-- end of measured -->\nend\n")
    for heading in ("### Some GPU (1 GB)", "#### Checks", "#### Times", "#### Counters", "#### Kernels"):
        assert f"\n{heading}\n" in text


def test_a_wrong_kernel_is_named_watched_once_and_the_rest_runs(run):
    output, stored, _ = run(code=1, is_wrong=True)
    wrong = " ".join(stored.outcomes[FIRST].failures)
    assert "permutation: the gradient of x off by" in wrong
    assert "; first at (0, 0): " in wrong
    assert "kernels launched last: nsc_" in wrong
    watched = [name for name in stored.outcomes if name.startswith(("memcheck", "racecheck"))]
    assert watched == [f"{tool}, {name}" for name in (FIRST, LOSS) for tool in ("memcheck", "racecheck")]
    assert any("Invalid __global__ read" in text for text in stored.outcomes[watched[0]].failures)
    assert stored.outcomes[TIMED].timings
    assert f"FAILED: {FIRST}: permutation" in output


def test_a_job_that_hangs_is_ended_and_a_clock_that_runs_out_is_kept(run, monkeypatch):
    monkeypatch.setattr(running, "LEAST_SECONDS", 20)
    monkeypatch.setattr(running, "PATIENCE", 0)
    _, stored, data = run("--only", FIRST, "--only", LOSS, code=1, hung=FIRST)
    (failure,) = stored.outcomes[FIRST].failures
    assert failure == "NoAnswerError: no end within 20 s: the process was ended"
    assert not stored.outcomes[LOSS].failures
    output, stored, _ = run("--continue", data, "--minutes", 0, code=1)
    done = [FIRST, f"memcheck, {FIRST}", f"racecheck, {FIRST}", LOSS]
    assert [*stored.outcomes] == done
    assert f"no time for {len(command.JOBS) - 2} jobs: --continue {data} runs them" in output
    _, stored, _ = run("--continue", data, "--only", "exact sort", code=1)
    assert [*stored.outcomes] == [*done, "first, exact sort, bitonic 16"]


def test_a_worker_that_ended_is_a_failure_and_the_next_job_gets_another(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'tests' / 'cuda'}")
    worker = Worker([sys.executable, str(ROOT / "tests/cuda/benched.py"), "", ""])
    try:
        machine = worker.machine()
        worker._process.kill()
        worker._process.wait()
        with pytest.raises(NoAnswerError, match="the process ended with -9"):
            worker.ask(JOB_OF["limits"], (), None, 20)
        assert worker.machine() == machine
        assert worker.ask(JOB_OF["limits"], (), None, 60).limits == LIMITS
    finally:
        worker.end()


def test_the_first_parts_fit_their_minutes():
    for part, seconds in ((FIRST_PART, 60), (STEP, 90), (COUNTERS, 60)):
        assert sum(job.seconds for job in JOBS if job.part == part) <= seconds


def test_what_was_expected_of_few_samples_is_the_hosts_time():
    assert predicted(P_GRAD, "bitonic", 16, 65536) == "3 – 4.5"
    assert predicted(f"{P_GRAD}, batch 100", "bitonic", 16, 100) == "670 – 1,340"
    assert predicted(f"{P_GRAD}, batch 1024", "bitonic", 1024, 1024) == "18,000 – 28,000"
    assert predicted("ranks, batch 1", "bitonic", 8, 1) == "25,000 – 50,000"
    assert predicted("ranks, batch 1024", "bitonic", 8, 1024) == ""
    assert predicted(P_GRAD, "odd_even", 32, 9) == ""


def test_binaries_are_carried_and_left_out_where_they_do_not_load(monkeypatch, tmp_path):
    monkeypatch.setattr(carried, "FOLDER", tmp_path / "carried")
    monkeypatch.setattr(nvrtc, "version", lambda: "13.9")
    monkeypatch.setattr(carried, "_OWN_VERSION", lambda: "12.8")
    monkeypatch.delenv("NSC_CACHE_DIR", raising=False)
    carried.begin()
    for name in ("some.cubin", "some.cu", "some.lock"):
        (carried.FOLDER / name).write_bytes(b"1234")
    assert carried.finish() == 8
    assert sorted(path.name for path in carried.FOLDER.iterdir()) == ["nvrtc", "some.cubin"]
    monkeypatch.delenv("NSC_CACHE_DIR")
    monkeypatch.setattr(nvrtc, "version", lambda: "12.8")
    carried.choose()
    carried.use()
    assert carried.is_used()
    assert nvrtc.version() == "13.9"
    carried.leave_out()
    assert not carried.is_used()
    assert nvrtc.version() == "12.8"


def test_without_a_gpu_it_says_so_and_imports_little(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in ABSENT)
    )
    words = [sys.executable, "-m", "benchmarks.gpu", "--out", str(tmp_path / "out")]
    environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "PATH": "/usr/bin:/bin", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 2
    assert "torch sees no CUDA device" in done.stderr
    assert not (tmp_path / "out").exists()
