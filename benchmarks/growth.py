"""Growth: nsc's time over n, against the arithmetic limit of the comparators inside the light cones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from benchmarks.arithmetic import Arithmetic
from benchmarks.cases import AGAINST_PEERS, IRREGULAR, LOSS, P
from benchmarks.measure import Timing
from benchmarks.networks import network
from nsc.compiler.relaxed.tables import merge_layers
from nsc.compiler.schedule import CONE_COLUMNS, schedule


@dataclass(frozen=True)
class Work:
    """The comparators of one sample of P or of a loss.

    Attributes:
        comparators: that columns are routed through: of the whole network, or in front of the merge that the
            cross entropy takes apart.
        light_cone: average share of the columns of P that reach a comparator.
        on_columns: comparators, each counted once for every CONE_COLUMNS columns that reach it.
    """

    comparators: int
    light_cone: float
    on_columns: float


@dataclass(frozen=True)
class Point:
    """A timing of nsc and its limit.

    Attributes:
        timing: the measured time.
        work: the comparators of a sample.
        limit: seconds per sample that the arithmetic alone takes, divided by the threads.
    """

    timing: Timing
    work: Work
    limit: float

    @property
    def ratio(self) -> float:
        """The time over the limit."""
        return self.timing.seconds / self.timing.case.batch / self.limit


@cache
def work_of(name: str, n: int, work: str = P) -> Work:
    """Return the comparators of a sample, for P or a loss; light cones are exact, column by column.

    P starts as the payload I: column c is 1 on wire c alone. A comparator that a column reaches on one of its
    wires carries it on to both.
    """
    routed = network(name, n)
    if work == LOSS:
        routed = routed[: routed.depth - merge_layers(schedule(routed))]
    comparators = routed.comparators.tolist()
    reached = [1 << wire for wire in range(n)]
    on_columns = 0
    for lo, hi in comparators:
        reached[lo] = reached[hi] = columns = reached[lo] | reached[hi]
        on_columns += columns.bit_count()
    return Work(len(comparators), on_columns / max(1, len(comparators) * n), on_columns / CONE_COLUMNS)


def growth(timings: Sequence[Timing], arithmetic: Arithmetic) -> Iterator[Point]:
    """Yield the points of P and of the cross entropy on bitonic networks."""
    for timing in timings:
        case = timing.case
        if (
            timing.peer == "nsc"
            and case in AGAINST_PEERS
            and case.network == "bitonic"
            and case.work in (P, LOSS)
        ):
            yield point(timing, arithmetic)


def point(timing: Timing, arithmetic: Arithmetic) -> Point:
    """Return a timing with its limit."""
    work = work_of(timing.case.network, timing.case.n, timing.case.work)
    return Point(timing, work, arithmetic.seconds(work.on_columns) / timing.threads)


def irregular(timings: Sequence[Timing]) -> dict[int, list[Timing]]:
    """Return the timings of IRREGULAR by threads, in its order: the base of comparison comes first."""
    by_threads: dict[int, list[Timing]] = {}
    for timing in timings:
        if timing.case in IRREGULAR:
            by_threads.setdefault(timing.threads, []).append(timing)
    return by_threads
