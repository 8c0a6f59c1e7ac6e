"""Programs of the CUDA toolkit that watch a job: compute-sanitizer and ncu."""

from __future__ import annotations

import csv
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.gpu.jobs import Outcome, Tool

# What tells which limit a kernel runs at: its time, the use of each unit, and what its warps wait for.
COUNTERS = {
    "gpu__time_duration.sum": "time",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "multiprocessors",
    "smsp__issue_active.avg.pct_of_peak_sustained_active": "issue",
    "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active": "multiply-adds",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "memory",
    "lts__throughput.avg.pct_of_peak_sustained_elapsed": "second cache",
    "l1tex__throughput.avg.pct_of_peak_sustained_active": "first cache",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "warps",
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": "wait for memory",
    "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": "wait at barriers",
}
# Launches before the one that is counted: those of the first call.
SKIPPED = 4
MOST_LINES = 12

_SANITIZER = "compute-sanitizer --target-processes application-only --error-exitcode 9 --tool"
_NCU = (
    f"ncu --csv --page raw --kill yes --launch-skip {SKIPPED} --launch-count 1 --metrics {','.join(COUNTERS)}"
)


def _reported(text: str, code: int) -> Outcome:
    """Return what a sanitizer found: its errors, if there are any."""
    errors = [line for line in text.splitlines() if line.startswith("=========")]
    return Outcome("", tuple(errors[:MOST_LINES] or [f"exit code {code}"]) if code else ())


def _counted(text: str, code: int) -> Outcome:
    """Return the counters in ncu's table: a line of names, one of units, one of numbers."""
    rows = [*csv.DictReader(line for line in text.splitlines() if line.startswith('"'))]
    if len(rows) != 2 or not set(COUNTERS) <= set(rows[0]):
        last = " ".join(line for line in text.splitlines() if line.startswith("==ERROR=="))
        return Outcome("", (f"ncu counted nothing (exit code {code}): {last or text[-300:]}",))
    units, numbers = rows
    return Outcome("", counters={word: f"{numbers[name]} {units[name]}" for name, word in COUNTERS.items()})


# By their names: the command in front of Python's, and what reads the output.
TOOLS: dict[str, tuple[str, Callable[[str, int], Outcome]]] = {
    "memcheck": (f"{_SANITIZER} memcheck", _reported),
    "racecheck": (f"{_SANITIZER} racecheck", _reported),
    "ncu": (_NCU, _counted),
}
SANITIZERS = ("memcheck", "racecheck")


def watch(name: str, tool: Tool, seconds: float) -> Outcome:
    """Return what a tool says of a job that runs in a process of its own, ended after some seconds.

    Args:
        name: of the outcome.
        tool: what runs.
        seconds: that it may take.
    """
    start = time.perf_counter()
    command, read = TOOLS[tool.name]
    words = command.split()
    if shutil.which(words[0]) is None:
        return Outcome(name, (f"no {words[0]} on this machine",))
    if tool.kernel:
        words += ["-k", f"regex:^{tool.kernel}$"]
    # torch's cache of freed memory would hide an access behind the end of a tensor.
    environment = os.environ | {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    process = subprocess.Popen(
        [*words, sys.executable, "-m", "benchmarks.gpu.worker", tool.job],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment if tool.name in SANITIZERS else None,
        start_new_session=True,
    )
    try:
        text, _ = process.communicate(timeout=max(0, seconds))
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return Outcome(name, (f"no end within {seconds:.0f} s: the process was ended",), seconds=seconds)
    found = read(text.decode(errors="replace"), process.returncode)
    return Outcome(name, found.failures, counters=found.counters, seconds=time.perf_counter() - start)
