"""The table of jobs in the order of their worth, so that a run that ends early has learned most.

A network, a size or a way to launch is a line of a table below; a work or a peer is a line of peers.PEERS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from benchmarks.gpu import checks, limits, timing
from benchmarks.gpu.building import VARIANTS, Form, Subject
from benchmarks.gpu.failing import failure
from benchmarks.gpu.limits import Limits
from benchmarks.gpu.peers import COMPILED, EXACT_WORKS, KEYS, LOSS_GRAD, OWN, P_GRAD, PEERS, SOFT_WORKS, P
from benchmarks.gpu.timing import LaunchTime, Timing
from nsc.operators.exact import DTYPE_NAMES

Check = Callable[[Subject, int], Iterator[str]]

# What a run learns first, then, and so on; a job names its part.
PARTS = ("first results", "times of a step", "counters", "other checks and times", "variants")
FIRST, STEP, COUNTERS, OTHERS, FORMS = range(len(PARTS))

FIRST_SIZES = (16, 128, 1024)
FIRST_CHECKS: dict[str, Check] = {
    "P": partial(checks.check, routings=("permutation",), device="cpu"),
    "loss and gradient": partial(checks.check, routings=("cross_entropy",), device="cpu"),
    "exact sort": partial(checks.check_any_type, dtypes=(torch.float32,)),
    "streams": checks.check_streams,
    "a CUDA graph": checks.check_graph,
}
STEP_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
# Works whose torch code is compiled as a peer, and for which widths.
COMPILED_SIZES = (16, 128)
# A kernel and the width of the network whose call of P and gradient launches it.
COUNTED = (
    ("nsc_route_f32", 128),
    ("nsc_route_backward_f32", 128),
    ("nsc_route_f32", 1024),
    ("nsc_route_backward_f32", 1024),
)
FEW = 3
SMALL_CHECKS = (
    Form("bitonic", 4),
    Form("bitonic", 16),
    Form("odd_even", 32),
    Form("merge_exchange", 33),
    Form("bitonic", 32, "float64"),
    Form("bitonic", 128),
    Form("bitonic", 1024),
)
# More samples than the device runs at a time: several groups, the last not full, and both ends of the grid.
LARGE_CHECKS = ((16, 70_001), (32, 30_001), (128, 2_003), (1024, 67))
# Straight-line code for every type; for some types; tables alone.
ANY_TYPE_CHECKS = ((8, 1_001), (64, 301), (1024, 33))
ANY_TYPES = tuple(name for dtype, name in DTYPE_NAMES.items() if checks.is_sorted_by_torch(dtype))
TOP_K, TOP_K_CHECKS = 4, ((16, 1_001), (128, 33))
# No other job runs the network of the graph, so that its backward pass has not run before the capture.
LAUNCH_CHECKS: dict[str, tuple[Check, str, int, int]] = {
    "autograd": (checks.check_autograd, "bitonic", 128, 64),
    "a second thread": (checks.check_thread, "bitonic", 128, 64),
    "strides": (checks.check_strides, "bitonic", 128, 64),
    "a CUDA graph of a first call": (checks.check_graph, "odd_even", 100, 16),
}
# Work and family to the widths of the networks on which it is timed.
SIZES: dict[tuple[str, str], tuple[int, ...]] = {
    **{(work, "bitonic"): (64, 256) for work in EXACT_WORKS},
    **{(work, "odd_even"): (32, 128) for work in (P_GRAD, LOSS_GRAD)},
    **{(f"{work}, float64", "bitonic"): (16, 128) for work in (P_GRAD, LOSS_GRAD)},
    (KEYS, "bitonic"): (16, 128, 1024),
    **{
        (work, "bitonic"): (16, 128, 1024, 4, 8, 32, 64, 256, 512, 2048, 4096)
        for work in (P_GRAD, LOSS_GRAD, P)
    },
}
TIMED_NETWORK = "bitonic"
MEMORY_WIRES, MEMORY_BATCH = 1024, 64
VARIED_SIZES = (128, 1024, 16, 256, 512)


@dataclass(frozen=True)
class Outcome:
    """The results of a job.

    Attributes:
        name: of the job.
        failures: a line for each problem.
        timings: of each peer.
        launches: times of the kernels of this project.
        memory: peak above inputs and outputs, as a multiple of the size of P.
        counters: what a profiler counted, by names.
        limits: the best rates of the device, as measured.
        seconds: of the job, without the wait for its kernel.
        versions: the versions that it ran with.
    """

    name: str
    failures: tuple[str, ...] = ()
    timings: tuple[Timing, ...] = ()
    launches: tuple[LaunchTime, ...] = ()
    memory: float | None = None
    counters: dict[str, str] = field(default_factory=dict)
    limits: Limits | None = None
    seconds: float = 0.0
    versions: str = ""


@dataclass(frozen=True)
class Tool:
    """A program of the CUDA toolkit that watches a job.

    Attributes:
        name: a key of tools.TOOLS.
        job: the name of the job.
        kernel: what it watches; "" for all kernels.
    """

    name: str
    job: str
    kernel: str = ""


@dataclass(frozen=True)
class Job:
    """A check or a timing of a compiled network.

    Attributes:
        name: the name that `--only` matches.
        part: its place in PARTS.
        seconds: what it is expected to take once its network is built.
        form: the network that it needs; None: none.
        run: runs the job; failures are in the outcome, or raised. A timing takes variants too.
        tool: what runs in its place, in a process of its own.
        variants: forms of the kernels that are timed too.
        exact: types that its exact kernel is built for.
        kind: of a check, a name that checks on other widths share: of a kind the first failure is watched by
            tools; "" for what times or counts.
    """

    name: str
    part: int
    seconds: float
    form: Form | None
    run: Callable[[Subject, Limits | None, Sequence[Subject]], Outcome] | None = None
    tool: Tool | None = None
    variants: tuple[str, ...] = ()
    exact: tuple[str, ...] = ()
    kind: str = ""

    @property
    def forms(self) -> tuple[Form, ...]:
        """All forms that it needs, its own first."""
        if self.form is None:
            return ()
        return (self.form, *(replace(self.form, variant=name) for name in self.variants))


def _check(
    name: str,
    check: Check,
    form: Form,
    batch: int,
    part: int = OTHERS,
    seconds: float = 4,
    kind: str = "",
    exact: tuple[str, ...] = (),
) -> Job:
    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        failures: list[str] = []
        try:
            failures.extend(check(subject, batch))
        except Exception as error:
            failures.append(failure(error))
        return Outcome(name, tuple(failures))

    return Job(name, part, seconds, form, run, exact=exact, kind=kind or name)


def _timed(
    work: str,
    network: str,
    n: int,
    part: int = OTHERS,
    seconds: float = 4,
    peers: str = "",
    variant: str = "",
) -> Job:
    """Return the timing of a work.

    Args:
        work, network, n: the case.
        part, seconds: of the job.
        peers: "" for those of the work; or a word in front of the job's name, and COMPILED alone.
        variant: that is timed in turn with what is shipped, without other peers.
    """
    name = ", ".join(filter(None, (variant or peers, work, f"{network} {n}")))
    of_work = (OWN, COMPILED) if peers else (OWN,) if variant else PEERS[work]
    is_quick = part == STEP and not peers

    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        timings, launches, failures = timing.time_case(work, of_work, subject, limits, variants, is_quick)
        return Outcome(name, tuple(failures), tuple(timings), tuple(launches))

    if work in EXACT_WORKS:
        exact = EXACT_WORKS[work]
        form = Form(network, n, top_k=exact.top_k)
        return Job(name, part, seconds, form, run, exact=(DTYPE_NAMES[exact.dtype],))
    form = Form(network, n, SOFT_WORKS[work].real)
    return Job(name, part, seconds, form, run, variants=(variant,) if variant else ())


def _limits() -> Job:
    def run(subject: Subject, known: Limits | None, variants: Sequence[Subject]) -> Outcome:
        return Outcome("limits", limits=limits.measure())

    return Job("limits", STEP, 3, None, run)


def _memory() -> Job:
    name = f"memory, {TIMED_NETWORK} {MEMORY_WIRES}"

    def run(subject: Subject, limits: Limits | None, variants: Sequence[Subject]) -> Outcome:
        return Outcome(name, memory=timing.memory_above_outputs(subject, MEMORY_BATCH))

    return Job(name, OTHERS, 3, Form(TIMED_NETWORK, MEMORY_WIRES), run)


def _first(kind: str, n: int) -> Job:
    batch = 64 if kind in ("streams", "a CUDA graph") else FEW if n < FIRST_SIZES[-1] else 1
    exact = ("float32",) if kind == "exact sort" else ()
    name, seconds = f"first, {kind}, bitonic {n}", 1.5 + 5 * n / FIRST_SIZES[-1]
    return _check(name, FIRST_CHECKS[kind], Form("bitonic", n), batch, FIRST, seconds, kind, exact)


def _counted(kernel: str, n: int) -> Job:
    watched = f"{P_GRAD}, batch {100}, bitonic {n}"
    name = f"counters, {kernel}, bitonic {n}"
    return Job(name, COUNTERS, 12, Form("bitonic", n), tool=Tool("ncu", watched, kernel))


def watched(job: Job, tool: str) -> Job:
    """Return the job of a tool that watches another job, which failed."""
    return Job(f"{tool}, {job.name}", job.part, 25, job.form, tool=Tool(tool, job.name), exact=job.exact)


def _jobs() -> Iterator[Job]:
    for n in FIRST_SIZES:
        yield from (_first(kind, n) for kind in FIRST_CHECKS)
    yield _limits()
    steps = [work for work, soft in SOFT_WORKS.items() if soft.batch is not None]
    for n in sorted(STEP_SIZES, key=lambda n: n not in FIRST_SIZES):
        yield from (_timed(work, "bitonic", n, STEP, 0.6 + n / 1024) for work in steps)
    for work in ("hard_sort, float32", "top 4, float32"):
        yield from (_timed(work, "bitonic", n, STEP, 0.8) for n in FIRST_SIZES)
    yield from (_counted(*each) for each in COUNTED)
    for form in SMALL_CHECKS:
        yield _check(f"check, {form}", checks.check, form, FEW, seconds=4 + form.n / 64)
    for n, batch in LARGE_CHECKS:
        form = Form("bitonic", n)
        yield _check(f"same bits, {form}, batch {batch}", checks.check, form, batch, seconds=4 + n / 64)
    for n, batch in ANY_TYPE_CHECKS:
        form = Form("bitonic", n)
        yield _check(f"any type, {form}", checks.check_any_type, form, batch, exact=ANY_TYPES)
    for n, batch in TOP_K_CHECKS:
        form = Form("bitonic", n, top_k=TOP_K)
        yield _check(f"any type, {form}", checks.check_top_k, form, batch, exact=ANY_TYPES)
    for way, (check, network, n, batch) in LAUNCH_CHECKS.items():
        yield _check(f"check, {way}, {network} {n}", check, Form(network, n), batch)
    yield _memory()
    for (work, network), sizes in SIZES.items():
        yield from (_timed(work, network, n, seconds=3 + n / 512) for n in sizes)
    for n in COMPILED_SIZES:
        for work in (P_GRAD, LOSS_GRAD):
            yield _timed(f"{work}, batch 100", "bitonic", n, seconds=25 + n / 4, peers="compiled")
    for variant in VARIANTS:
        for work in (P_GRAD, LOSS_GRAD):
            yield from (_timed(work, "bitonic", n, FORMS, 3 + n / 512, variant=variant) for n in VARIED_SIZES)


JOBS = tuple(_jobs())
JOB_OF = {job.name: job for job in JOBS}
assert len(JOB_OF) == len(JOBS)
