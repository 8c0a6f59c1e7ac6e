"""Butterflies: comparators joined where two layers meet on four wires.

A kernel whose rows lie in memory loads and stores a wire's row for every comparator on it. Comparators that
are run together on the same rows share these loads and stores, and leave registers for their weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from nsc.compiler.schedule.codelets import Codelet, Shape, shapes_of
from nsc.compiler.schedule.cutting import straight_line_shapes
from nsc.compiler.schedule.ir import Schedule, slots_of

_Ends = tuple[int, int]
_Wires = tuple[int, ...]


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


def butterflies(codelets: Sequence[Codelet]) -> tuple[Butterfly, ...]:
    """Return the comparators of codelets, which are in running order, as butterflies in running order.

    Cost: about 5 µs per comparator.
    """
    return _Joining(codelets).joined()


def in_butterflies(schedule: Schedule) -> Schedule:
    """Return the schedule with each codelet's comparators in the order of its butterflies.

    The comparators of a butterfly come one behind the other, so their slots do too.

    Cost: about 10 µs per comparator, most of it for the check of the new schedule.
    """
    orders = {shape: _order_of_butterflies(shape) for shape in schedule.shapes}
    # Most codelets repeat another one on other wires.
    known: dict[tuple[Shape, int], tuple[Shape, int]] = {}
    codelets = []
    for codelet in schedule.codelets:
        key = codelet.shape, codelet.flips
        if key not in known:
            known[key] = _reordered(*key, orders[codelet.shape])
        codelets.append(Codelet(codelet.wires, *known[key]))
    shapes = shapes_of(codelets)
    straight_shapes = straight_line_shapes(shapes, schedule.straight_line)
    return replace(schedule, codelets=tuple(codelets), shapes=shapes, straight_shapes=straight_shapes)


def butterflies_of(shape: Shape) -> Iterator[Butterfly]:
    """Yield the butterflies of a shape, in running order: comparators that join and are neighbours in it.

    The wires of each butterfly are places of the shape, its slots are numbers of comparators.
    """
    ends = [{a, b} for a, b, _ in shape]
    first = 0
    while first < len(shape):
        pattern, wires = (
            _cross(*ends[first : first + 4])
            or _triangle(*ends[first : first + 3])
            or (
                Pattern.SINGLE,
                shape[first][:2],
            )
        )
        end = first + len(pattern.value)
        yield Butterfly(pattern, wires, tuple(range(first, end)))
        first = end


def _cross(*ends: set[int]) -> _Found | None:
    """Return the pattern and the wires of four comparators, given the ends of each, if they are a cross."""
    if len(ends) < 4:
        return None
    p, q, r, s = ends
    if p & q or len(r & p) != 1 or r ^ s != p | q:
        return None
    return Pattern.CROSS, (*(r & p), *(s & p), *(r & q), *(s & q))


def _triangle(*ends: set[int]) -> _Found | None:
    """The same of three comparators, if they are a funnel or a fan."""
    if len(ends) < 3:
        return None
    for pattern, (p, q, middle) in ((Pattern.FUNNEL, ends), (Pattern.FAN, (*ends[1:], ends[0]))):
        if not p & q and len(p & middle) == len(q & middle) == 1:
            return pattern, (*(p - middle), *(p & middle), *(q & middle), *(q - middle))
    return None


def _order_of_butterflies(shape: Shape) -> tuple[int, ...]:
    """Return the numbers of a shape's comparators, those of a butterfly one behind the other."""
    wires = 1 + max(b for _, b, _ in shape)
    found = butterflies([Codelet(tuple(range(wires)), shape, flips=0)])
    return tuple(number for butterfly in found for number in butterfly.slots)


def _reordered(shape: Shape, flips: int, order: Sequence[int]) -> tuple[Shape, int]:
    behind = sum((flips >> old & 1) << new for new, old in enumerate(order))
    return tuple(shape[old] for old in order), behind


# A pattern and its wires; the same with the numbers of the comparators before the wires.
_Found = tuple[Pattern, _Wires]
_Joined = tuple[Pattern, tuple[int, ...], _Wires]


class _Joining:
    """The comparators, by number, with their neighbours on each wire."""

    def __init__(self, codelets: Sequence[Codelet]) -> None:
        self.ends: list[_Ends] = []
        self.slots: list[int] = []
        self.levels: list[int] = []
        self.before: dict[_Ends, int] = {}  # (comparator, wire) to the comparator before it on the wire
        self.behind: dict[_Ends, int] = {}
        self.free: set[int] = set()
        last: dict[int, int] = {}
        first_slot = 0
        for codelet in codelets:
            for place, ends in enumerate(codelet.comparators()):
                self._add(ends, first_slot + place, last)
            first_slot += slots_of(codelet)

    def _add(self, ends: _Ends, slot: int, last: dict[int, int]) -> None:
        number = len(self.ends)
        level = 0
        for wire in ends:
            if wire in last:
                self.before[number, wire] = last[wire]
                self.behind[last[wire], wire] = number
                level = max(level, self.levels[last[wire]] + 1)
            last[wire] = number
        self.ends.append(ends)
        self.slots.append(slot)
        self.levels.append(level)
        self.free.add(number)

    def joined(self) -> tuple[Butterfly, ...]:
        """Return the butterflies by the higher level of their first two comparators.

        So each butterfly comes behind those it takes values from. Whatever comes before a cross or a funnel
        comes before its first two comparators, which do not depend on each other. The last two of a fan have
        the level behind its first.
        """
        found: list[tuple[int, Butterfly]] = []
        for number in sorted(range(len(self.ends)), key=self.levels.__getitem__):
            if number in self.free:
                pattern, numbers, wires = (
                    self._cross(number)
                    or self._funnel(number)
                    or self._fan(number)
                    or (Pattern.SINGLE, (number,), self.ends[number])
                )
                self.free.difference_update(numbers)
                level = max(self.levels[first] for first in numbers[:2])
                found.append((level, Butterfly(pattern, wires, tuple(self.slots[each] for each in numbers))))
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
            if q is not None and {q, r} <= self.free and self.levels[q] == self.levels[p]:
                return Pattern.FUNNEL, (p, q, r), (a, b, c, self._other(q, c))
        return None

    def _fan(self, p: int) -> _Joined | None:
        b, c = self.ends[p]
        q, r = self.behind.get((p, b)), self.behind.get((p, c))
        if q is None or r is None or q == r or not {q, r} <= self.free:
            return None
        if not self.levels[q] == self.levels[r] == self.levels[p] + 1:
            return None
        return Pattern.FAN, (p, q, r), (self._other(q, b), b, c, self._other(r, c))
