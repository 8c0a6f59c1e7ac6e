"""Butterflies: the comparators of a narrow network, joined where two layers meet on four wires.

A kernel whose rows lie in memory loads and stores a wire's row for every comparator on it. Comparators that
are run together on the same rows share these loads and stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nsc.compiler.schedule.codelets import Codelet
from nsc.compiler.schedule.ir import slots_of

_Ends = tuple[int, int]


@dataclass(frozen=True)
class Butterfly:
    """Comparators that are run together.

    Four comparators join the wires (a, b, c, d) as (a, b), (c, d), (a, c), (b, d); three as (a, b), (c, d),
    (b, c); a single one joins (a, b). A relaxed comparator is symmetric in its wires, so directions are no
    part of a butterfly.

    Attributes:
        wires: four wires, or two for a single comparator.
        slots: the places of the comparators' weights, in the order above.
    """

    wires: tuple[int, ...]
    slots: tuple[int, ...]

    def comparators(self) -> Iterator[_Ends]:
        """Yield the wires of each comparator, in running order."""
        pairs = {1: ((0, 1),), 3: ((0, 1), (2, 3), (1, 2)), 4: ((0, 1), (2, 3), (0, 2), (1, 3))}
        for first, second in pairs[len(self.slots)]:
            yield self.wires[first], self.wires[second]


def butterflies(codelets: Sequence[Codelet]) -> tuple[Butterfly, ...]:
    """Return the comparators of codelets, which are in running order, as butterflies in running order.

    Cost: about 5 µs per comparator.
    """
    return _Joining(codelets).joined()


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
        """Return the butterflies by the levels of their first comparators.

        Of a butterfly of four, only the last two follow the first two, so either of these may wait for the
        other. Of three, the first two have the same level: what follows them outside has a higher one.
        """
        found: list[tuple[int, Butterfly]] = []
        for number in sorted(range(len(self.ends)), key=self.levels.__getitem__):
            if number in self.free:
                numbers, wires = self._four(number) or self._three(number) or ((number,), self.ends[number])
                self.free.difference_update(numbers)
                level = max(self.levels[first] for first in numbers[:2])
                found.append((level, Butterfly(wires, tuple(self.slots[each] for each in numbers))))
        return tuple(butterfly for _, butterfly in sorted(found, key=lambda entry: entry[0]))

    def _other(self, number: int, wire: int) -> int:
        low, high = self.ends[number]
        return high if wire == low else low

    def _four(self, p: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return p, its partner, the two comparators behind both, and the four wires, if there are such."""
        a, b = self.ends[p]
        r, s = self.behind.get((p, a)), self.behind.get((p, b))
        if r is None or s is None or r == s:
            return None
        c, d = self._other(r, a), self._other(s, b)
        q = self.before.get((r, c))
        if q is None or q != self.before.get((s, d)) or not {p, q, r, s} <= self.free:
            return None
        return (p, q, r, s), (a, b, c, d)

    def _three(self, p: int) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return p, another of its level, a comparator behind both, and the four wires, if there are such."""
        for a, b in (self.ends[p], self.ends[p][::-1]):
            r = self.behind.get((p, b))
            if r is None or self._other(r, b) == a:
                continue
            c = self._other(r, b)
            q = self.before.get((r, c))
            if q is not None and {q, r} <= self.free and self.levels[q] == self.levels[p]:
                return (p, q, r), (a, b, c, self._other(q, c))
        return None
