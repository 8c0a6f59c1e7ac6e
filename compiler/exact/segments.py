"""Segments: the straight-line code of an exact kernel, functions that run on any range of wires.

A network that is small enough has code for all of its comparators. Larger networks repeat codelets: the
blocks of a tournament, or the blocks of a sorter before they are merged, do the same on other wires. The most
frequent codelets have code; the others run from the table of comparators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from nsc.compiler.schedule import Codelet, Schedule

# Codelets with their wires counted from the lowest of all.
Segment = tuple[Codelet, ...]

# Most minima and maxima of a kernel that are straight-line code, about twice as fast as a table: sorting
# networks up to 128 wires, the 16 largest of 256. A larger network has code for its most frequent codelets,
# up to so many. Only the needed results of a comparator count, as no others are compiled. The build takes at
# most some three seconds for each type.
STRAIGHT_OPERATIONS = 3100
# Comparators of a function: a compiler takes longer for a line the longer the function is.
SEGMENT_COMPARATORS = 50


@dataclass(frozen=True)
class Call:
    """Comparators that follow one another in a schedule's codelets.

    Attributes:
        segment: the number of the segment that runs them; None: they run from the table.
        first: the wire that the segment counts from, or the place of the first comparator in the table.
        size: how many comparators.
    """

    segment: int | None
    first: int
    size: int


@dataclass(frozen=True)
class StraightLine:
    """A schedule as segments.

    Attributes:
        segments: the code.
        calls: what runs the network, in order.
    """

    segments: tuple[Segment, ...]
    calls: tuple[Call, ...]


def is_straight(schedule: Schedule) -> bool:
    """Return whether an exact kernel has straight-line code for all of a network's comparators."""
    return 0 < sum(map(_operations, schedule.codelets)) <= STRAIGHT_OPERATIONS


def straight_line(schedule: Schedule) -> StraightLine:
    """Return the segments of a schedule, numbered in running order, and their calls.

    Cost: O(comparators).
    """
    pieces = [_from_zero(codelets) for codelets in _joined(schedule)]
    coded = _coded([segment for segment, _ in pieces])
    calls: list[Call] = []
    place = 0
    for segment, first in pieces:
        size = sum(len(codelet.shape) for codelet in segment)
        if segment in coded:
            calls.append(Call(coded[segment], first, size))
        elif calls and calls[-1].segment is None:
            calls[-1] = replace(calls[-1], size=calls[-1].size + size)
        else:
            calls.append(Call(None, place, size))
        place += size
    return StraightLine(tuple(coded), tuple(calls))


def _operations(codelet: Codelet) -> int:
    return sum(1 if step.needed else 2 for step in codelet.shape)


def _joined(schedule: Schedule) -> Iterator[Segment]:
    """Yield codelets one by one, as they repeat; where all is code, as many as a function takes."""
    most = SEGMENT_COMPARATORS if is_straight(schedule) else 0
    first = size = 0
    for place, codelet in enumerate(schedule.codelets):
        if size and size + len(codelet.shape) > most:
            yield schedule.codelets[first:place]
            first, size = place, 0
        size += len(codelet.shape)
    if size:
        yield schedule.codelets[first:]


def _from_zero(codelets: Segment) -> tuple[Segment, int]:
    """Return codelets with wires counted from the lowest, and which wire that is."""
    first = min(codelet.wires[0] for codelet in codelets)
    moved = (replace(each, wires=tuple(wire - first for wire in each.wires)) for each in codelets)
    return tuple(moved), first


def _coded(segments: Sequence[Segment]) -> dict[Segment, int]:
    """Return the segments that get code, the most frequent of all, and their numbers."""
    chosen: set[Segment] = set()
    operations = 0
    for segment, _ in Counter(segments).most_common():
        operations += sum(map(_operations, segment))
        if operations > STRAIGHT_OPERATIONS:
            break
        chosen.add(segment)
    in_order = dict.fromkeys(segment for segment in segments if segment in chosen)
    return {segment: number for number, segment in enumerate(in_order)}
