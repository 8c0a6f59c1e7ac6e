"""The table of jobs, checks and timings, in the order in which they run.

A network, a size or a way to launch is a line of a table below; a work or a peer is a line of peers.PEERS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.gpu import checks, timing
from benchmarks.gpu.building import Form, Subject
from benchmarks.gpu.failing import failure
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import (
    EXACT_WORKS,
    KEYS,
    LOSS_GRAD,
    P_GRAD,
    PEERS,
    SOFT_WORKS,
)
from benchmarks.gpu.timing import LaunchTime, Timing
from nsc.operators.exact import DTYPE_NAMES

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
ANY_TYPES = tuple(name for dtype, name in DTYPE_NAMES.items() if checks.is_sorted_by_torch(dtype))
# No other job runs the network of the graph, so that its backward pass has not run before the capture.
LAUNCH_CHECKS: dict[str, tuple[Check, str, int, int]] = {
    "autograd": (checks.check_autograd, "bitonic", 128, 64),
    "streams": (checks.check_streams, "bitonic", 128, 64),
    "a second thread": (checks.check_thread, "bitonic", 128, 64),
    "strides": (checks.check_strides, "bitonic", 128, 64),
    "a CUDA graph": (checks.check_graph, "odd_even", 100, 16),
}
# Work and family to the widths of the networks on which it is timed.
SIZES: dict[tuple[str, str], tuple[int, ...]] = {
    **{
        (work, "bitonic"): (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
        if soft.real == "float32" and soft.batch is None
        else (16, 128)
        for work, soft in SOFT_WORKS.items()
    },
    (KEYS, "bitonic"): (16, 128, 1024),
    **{(work, "odd_even"): (32, 128) for work in (P_GRAD, LOSS_GRAD)},
    **{(work, "bitonic"): (16, 64, 256) for work in EXACT_WORKS},
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
        form: the network that it needs.
        run: runs the job; failures are in the outcome, or raised. A timing takes variants too.
        is_timed: whether it needs the limits of the device.
        exact: types that its exact kernel is built for.
    """

    name: str
    form: Form
    run: Callable[[Subject, Limits | None, Sequence[Subject]], Outcome]
    is_timed: bool = False
    exact: tuple[str, ...] = ()

    def forms(self, variants: Sequence[str]) -> list[Form]:
        """Return all forms that it needs: of a timing of relaxed kernels also those variants."""
        has_variants = self.is_timed and not self.exact
        return [self.form, *(replace(self.form, variant=name) for name in variants if has_variants)]


def _check(name: str, check: Check, network: str, n: int, batch: int, exact: tuple[str, ...] = ()) -> Job:
    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        failures: list[str] = []
        try:
            failures.extend(check(subject, batch))
        except Exception as error:
            failures.append(failure(error))
        return Outcome(name, tuple(failures))

    return Job(name, Form(network, n), run, exact=exact)


def _timed(work: str, network: str, n: int) -> Job:
    name = f"{work}, {network} {n}"

    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        timings, launches, failures = timing.time_case(work, PEERS[work], subject, limits, variants)
        return Outcome(name, tuple(failures), tuple(timings), tuple(launches))

    if work in EXACT_WORKS:
        dtype = DTYPE_NAMES[EXACT_WORKS[work].dtype]
        return Job(name, Form(network, n), run, is_timed=True, exact=(dtype,))
    return Job(name, Form(network, n, SOFT_WORKS[work].real), run, is_timed=True)


def _memory() -> Job:
    name = f"memory, {TIMED_NETWORK} {MEMORY_WIRES}"

    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        return Outcome(name, memory=timing.memory_above_outputs(subject, MEMORY_BATCH))

    return Job(name, Form(TIMED_NETWORK, MEMORY_WIRES), run)


# Narrow networks come first, while the wide are compiled; for each width, checks come before times.
_JOBS = (
    *(_check(f"check, {network} {n}", checks.check, network, n, FEW) for network, n in SMALL_CHECKS),
    *(
        _check(f"same bits, bitonic {n}, batch {batch}", checks.check, "bitonic", n, batch)
        for n, batch in LARGE_CHECKS
    ),
    *(
        _check(f"check, any type, bitonic {n}", checks.check_any_type, "bitonic", n, batch, ANY_TYPES)
        for n, batch in ANY_TYPE_CHECKS
    ),
    *(
        _check(f"check, {way}, {network} {n}", check, network, n, batch)
        for way, (check, network, n, batch) in LAUNCH_CHECKS.items()
    ),
    *(_timed(work, network, n) for (work, network), sizes in SIZES.items() for n in sizes),
    _memory(),
)
JOBS = tuple(sorted(_JOBS, key=lambda job: job.form.n))
