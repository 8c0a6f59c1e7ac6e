"""Butterflies: comparators joined where two layers meet on four wires.

A kernel whose rows lie in memory loads and stores a wire's row for every comparator on it. Comparators that
are run together on the same rows share these loads and stores, and leave registers for their weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, count, islice

from nsc.compiler.network import layered
from nsc.compiler.schedule import Codelet, Schedule, Shape

_Ends = tuple[int, int]


class Pattern(Enum):
    """How a butterfly's comparators join its wires, numbered in running order."""

    SINGLE = ((0, 1),)
    FUNNEL = ((0, 1), (2, 3), (1, 2))
    FAN = ((1, 2), (0, 1), (2, 3))
    CROSS = ((0, 1), (2, 3), (0, 2), (1, 3))


@dataclass(frozen=True)
class Butterfly:
    """Comparators that are run together.

    A relaxed comparator is symmetric in its wires, so directions are no part of a butterfly.

    Attributes:
        pattern: how the comparators join the wires.
        wires: the wires, by their numbers in the pattern.
        slots: the places of the comparators' weights, in running order.
    """

    pattern: Pattern
    wires: tuple[int, ...]
    slots: tuple[int, ...]

    def comparators(self) -> Iterator[_Ends]:
        """Yield the wires of each comparator, in running order."""
        for first, second in self.pattern.value:
            yield self.wires[first], self.wires[second]


def butterflies(shape: Shape) -> tuple[Butterfly, ...]:
    """Return the comparators of a shape as butterflies, in running order.

    Wires are places of the shape, and slots numbers of its comparators. Cost: about 5 µs per comparator.
    """
    return _Joining(shape).joined()


def in_butterflies(schedule: Schedule) -> tuple[Schedule, dict[Shape, tuple[Butterfly, ...]]]:
    """Return the schedule in the order of butterflies, and the butterflies of each shape.

    The comparators of a butterfly come one behind the other in their codelet, so their slots do too. Wires of
    a shape's butterflies are places of the shape, and slots are numbers of its comparators.

    Cost: about 10 µs per comparator, most of it for the check of the new schedule.
    """
    joined = {shape: butterflies(shape) for shape in schedule.shapes}
    orders = {shape: [slot for each in found for slot in each.slots] for shape, found in joined.items()}
    # Most codelets repeat another one on other wires.
    known: dict[tuple[Shape, int], tuple[Shape, int]] = {}
    codelets = []
    for codelet in schedule.codelets:
        key = codelet.shape, codelet.flips
        if key not in known:
            known[key] = _reordered(*key, orders[codelet.shape])
        codelets.append(Codelet(codelet.wires, *known[key]))
    behind = {_reordered(shape, 0, orders[shape])[0]: _numbered(found) for shape, found in joined.items()}
    return replace(schedule, codelets=tuple(codelets)), behind


def _reordered(shape: Shape, flips: int, order: Sequence[int]) -> tuple[Shape, int]:
    behind = sum((flips >> old & 1) << new for new, old in enumerate(order))
    return tuple(shape[old] for old in order), behind


def _numbered(found: Iterable[Butterfly]) -> tuple[Butterfly, ...]:
    """Return butterflies with slots that follow one another."""
    numbers = count()
    return tuple(replace(each, slots=tuple(islice(numbers, len(each.slots)))) for each in found)


# A pattern, the numbers of its comparators, and its wires.
_Joined = tuple[Pattern, tuple[int, ...], tuple[int, ...]]


class _Joining:
    """The comparators, by number, with their neighbours on each wire."""

    def __init__(self, shape: Shape) -> None:
        self.ends: list[_Ends] = [(a, b) for a, b, _ in shape]
        self.before: dict[_Ends, int] = {}  # (comparator, wire) to the comparator before it on the wire
        self.behind: dict[_Ends, int] = {}
        last: dict[int, int] = {}
        for number, ends in enumerate(self.ends):
            for wire in ends:
                if wire in last:
                    self.before[number, wire] = last[wire]
                    self.behind[last[wire], wire] = number
                last[wire] = number
        numbers = range(len(self.ends))
        self.layers = layered(1 + max(last), numbers, self.ends.__getitem__)
        self.layer = {number: layer for layer, each in enumerate(self.layers) for number in each}
        self.free = set(numbers)

    def joined(self) -> tuple[Butterfly, ...]:
        """Return the butterflies by the later layer of their first two comparators.

        So each butterfly comes behind the butterflies that it takes values from. Comparators in front of a
        cross or a funnel are in front of its first two comparators, which do not depend on each other. The
        last two comparators of a fan are in the layer behind its first.
        """
        found: list[tuple[int, Butterfly]] = []
        for number in chain.from_iterable(self.layers):
            if number in self.free:
                pattern, numbers, wires = (
                    self._cross(number)
                    or self._funnel(number)
                    or self._fan(number)
                    or (Pattern.SINGLE, (number,), self.ends[number])
                )
                self.free.difference_update(numbers)
                layer = max(self.layer[first] for first in numbers[:2])
                found.append((layer, Butterfly(pattern, wires, numbers)))
        return tuple(butterfly for _, butterfly in sorted(found, key=lambda entry: entry[0]))

    def _other(self, number: int, wire: int) -> int:
        low, high = self.ends[number]
        return high if wire == low else low

    def _cross(self, p: int) -> _Joined | None:
        a, b = self.ends[p]
        r, s = self.behind.get((p, a)), self.behind.get((p, b))
        if r is None or s is None or r == s:
            return None
        c, d = self._other(r, a), self._other(s, b)
        q = self.before.get((r, c))
        if q is None or q != self.before.get((s, d)) or not {p, q, r, s} <= self.free:
            return None
        return Pattern.CROSS, (p, q, r, s), (a, b, c, d)

    def _funnel(self, p: int) -> _Joined | None:
        for a, b in (self.ends[p], self.ends[p][::-1]):
            r = self.behind.get((p, b))
            if r is None or self._other(r, b) == a:
                continue
            c = self._other(r, b)
            q = self.before.get((r, c))
            if q is not None and {q, r} <= self.free and self.layer[q] == self.layer[p]:
                return Pattern.FUNNEL, (p, q, r), (a, b, c, self._other(q, c))
        return None

    def _fan(self, p: int) -> _Joined | None:
        b, c = self.ends[p]
        q, r = self.behind.get((p, b)), self.behind.get((p, c))
        if q is None or r is None or q == r or not {q, r} <= self.free:
            return None
        if not self.layer[q] == self.layer[r] == self.layer[p] + 1:
            return None
        return Pattern.FAN, (p, q, r), (self._other(q, b), b, c, self._other(r, c))
