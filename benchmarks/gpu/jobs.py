"""The table of jobs, checks and timings, in the order in which they run.

A network, a size or a way to launch is a line of a table below; a work or a peer is a line of peers.PEERS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from benchmarks.gpu import checks, timing
from benchmarks.gpu.building import Subject
from benchmarks.gpu.failing import failure
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import (
    EXACT_WORKS,
    KEYS,
    LOSS_GRAD,
    P_GRAD,
    PEERS,
    P,
    Peer,
)
from benchmarks.gpu.timing import LaunchTime, Timing

Check = Callable[[Subject, int], Iterator[str]]

FEW = 3
SMALL_CHECKS = (
    ("bitonic", 4),
    ("bitonic", 16),
    ("odd_even", 32),
    ("merge_exchange", 33),
    ("bitonic", 128),
    ("bitonic", 1024),
)
# More samples than the device runs at a time: several groups, the last not full, and both ends of the grid.
LARGE_CHECKS = ((16, 70_001), (32, 30_001), (128, 2_003), (1024, 67))
# Straight-line code for every type; for some types; tables alone.
ANY_TYPE_CHECKS = ((8, 1_001), (64, 301), (1024, 33))
# No other job runs the network of the graph, so that its backward pass has not run before the capture.
LAUNCH_CHECKS: dict[str, tuple[Check, str, int, int]] = {
    "autograd": (checks.check_autograd, "bitonic", 128, 64),
    "streams": (checks.check_streams, "bitonic", 128, 64),
    "a second thread": (checks.check_thread, "bitonic", 128, 64),
    "strides": (checks.check_strides, "bitonic", 128, 64),
    "a CUDA graph": (checks.check_graph, "odd_even", 100, 16),
}
# Work to the widths of the networks on which it is timed.
SIZES: dict[str, tuple[int, ...]] = {
    **dict.fromkeys((P, P_GRAD, LOSS_GRAD), (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)),
    KEYS: (16, 128, 1024),
    **dict.fromkeys(EXACT_WORKS, (16, 64, 256)),
}
TIMED_NETWORK = "bitonic"
MEMORY_WIRES, MEMORY_BATCH = 1024, 64


@dataclass(frozen=True)
class Outcome:
    """The results of a job.

    Attributes:
        name: of the job.
        failures: a line for each problem.
        timings: of each peer.
        launches: times of the kernels of this project.
        memory: peak above inputs and outputs, as a multiple of the size of P.
        seconds: of the job, without the wait for its kernel.
        versions: the versions that it ran with.
    """

    name: str
    failures: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()
    launches: tuple[LaunchTime, ...] = ()
    memory: float | None = None
    seconds: float = 0.0
    versions: str = ""


@dataclass(frozen=True)
class Job:
    """A check or a timing of a compiled network.

    Attributes:
        name: the name that `--only` matches.
        network, n: the network that it needs.
        run: runs the job; failures are in the outcome, or raised.
        is_timed: whether it needs the limits of the device.
    """

    name: str
    network: str
    n: int
    run: Callable[[Subject, Limits | None], Outcome]
    is_timed: bool = False


def _check(name: str, check: Check, network: str, n: int, batch: int) -> Job:
    def run(subject: Subject, limits: Limits | None) -> Outcome:
        failures: list[str] = []
        try:
            failures.extend(check(subject, batch))
        except Exception as error:
            failures.append(failure(error))
        return Outcome(name, tuple(failures))

    return Job(name, network, n, run)


def _timed(name: str, work: str, peers: Sequence[Peer], n: int) -> Job:
    def run(subject: Subject, limits: Limits | None) -> Outcome:
        timings, launches, failures = timing.time_case(work, peers, subject, limits)
        return Outcome(name, tuple(failures), tuple(timings), tuple(launches))

    return Job(name, TIMED_NETWORK, n, run, is_timed=True)


def _memory() -> Job:
    name = f"memory, {TIMED_NETWORK} {MEMORY_WIRES}"

    def run(subject: Subject, limits: Limits | None) -> Outcome:
        return Outcome(name, memory=timing.memory_above_outputs(subject, MEMORY_BATCH))

    return Job(name, TIMED_NETWORK, MEMORY_WIRES, run)


# Narrow networks come first, while the wide are compiled; for each width, checks come before times.
_JOBS = (
    *(_check(f"check, {network} {n}", checks.check, network, n, FEW) for network, n in SMALL_CHECKS),
    *(
        _check(f"same bits, bitonic {n}, batch {batch}", checks.check, "bitonic", n, batch)
        for n, batch in LARGE_CHECKS
    ),
    *(
        _check(f"check, any type, bitonic {n}", checks.check_any_type, "bitonic", n, batch)
        for n, batch in ANY_TYPE_CHECKS
    ),
    *(
        _check(f"check, {way}, {network} {n}", check, network, n, batch)
        for way, (check, network, n, batch) in LAUNCH_CHECKS.items()
    ),
    *(
        _timed(f"{work}, {TIMED_NETWORK} {n}", work, PEERS[work], n)
        for work, sizes in SIZES.items()
        for n in sizes
    ),
    _memory(),
)
JOBS = tuple(sorted(_JOBS, key=lambda job: job.n))
