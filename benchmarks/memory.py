"""Peak memory of one call above its inputs and outputs, in a process of its own: Linux only."""

from __future__ import annotations

import gc
import json
import math
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

import nsc
from benchmarks.cases import LOSS, Case, P
from benchmarks.fresh import run_fresh
from benchmarks.networks import operator
from benchmarks.peers import WORKS, calls, pose

MB = 1 << 20
FLOAT_BYTES = 4
# Freed blocks of this size and above go back to the system. Otherwise the call could take memory again that
# was freed before it, and the peak would not show it.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

# One sample. Below 256 values a call takes too little for the system's accounting to show.
MEMORY_CASES = (
    *(Case(P, "bitonic", n, 1) for n in (256, 512, 1024, 2048, 4096)),
    *(Case(LOSS, "bitonic", n, 1) for n in (256, 512, 1024, 2048, 4096, 8192)),
)
MEASURED = ("nsc", "diffsort")


@dataclass(frozen=True)
class Peak:
    """Peak memory of a peer on a case, above inputs and outputs.

    Attributes:
        case: the case.
        peer: its name.
        threads: torch's number of threads.
        call: MB of its first call, with the kernel's code and the memory that it keeps for later calls. A
            call on 4 values runs before it, so that torch's one-time setup does not count.
    """

    case: Case
    peer: str
    threads: int
    call: float

    @property
    def permutations(self) -> float:
        """The peak, as a multiple of the size of P."""
        return self.call * MB / (FLOAT_BYTES * self.case.batch * self.case.n**2)


def memory_name(case: Case) -> str:
    """Return the name of the measurement, as --only matches it."""
    return f"memory of {case.network} {case.n}, {case.work}"


def can_measure() -> bool:
    """Return whether this system can measure peaks."""
    try:
        _reset_peak()
    except OSError:
        return False
    return True


def measure_memory(case: Case, threads: int) -> list[Peak]:
    """Return the peak of nsc, and the peak of diffsort if it takes part."""
    peers = [peer.name for peer in WORKS[case.work].peers if peer.name in MEASURED and peer.takes(case)]
    with tempfile.TemporaryDirectory() as folder:
        # The network is compiled once, here.
        for name, text in operator(case.network, case.n).kernel.files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        arguments = (case.work, case.network, case.n, case.batch, threads, folder)
        peaks = {peer: run_fresh("benchmarks.memory", *arguments, peer, env=MALLOC) for peer in peers}
    return [Peak(case, peer, threads, megabytes) for peer, megabytes in peaks.items()]


def main(work: str, network: str, n: str, batch: str, threads: str, folder: str, peer: str) -> None:
    """Print the peak of a peer's call in MB, as JSON."""
    torch.manual_seed(0)
    torch.set_num_threads(int(threads))
    case = Case(work, network, int(n), int(batch))
    sorter = nsc.load(folder)
    assert isinstance(sorter, nsc.Sorter)
    call = calls(pose(case, sorter), only=peer)[peer]
    small = Case(work, "bitonic", 4, 1)
    calls(pose(small, operator(small.network, small.n)), only=peer)[peer]()
    outputs = FLOAT_BYTES * (math.prod(WORKS[work].output(case)) + case.batch * case.n)
    print(json.dumps(_peak(call) - outputs / MB))


def _peak(call: Callable[[], object]) -> float:
    """Return the peak of the process during a call, above its memory before the call, in MB."""
    gc.collect()
    before = _reset_peak()
    call()
    return _status("VmHWM") - before


def _reset_peak() -> float:
    """Reset the peak of the process to its present memory, and return that in MB."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmHWM")


def _status(key: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) / 1024


if __name__ == "__main__":
    main(*sys.argv[1:])
