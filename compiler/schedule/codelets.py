"""Codelets: the pieces that a network is cut into, each run straight through on the wires it loads.

A kernel loads a codelet's wires once, runs all of its comparators and stores the wires again. Its speed
depends on the comparators per wire loaded: 1/2 where a kernel runs one layer at a time, here about 2 to 2.6
for bitonic networks and 3.9 for odd-even transposition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

from nsc import library
from nsc.errors import LoweringError
from nsc.wording import count

# Most wires that a codelet holds in registers: half of AVX-512's, the rest is for the arithmetic.
WIDEST = int(library.constant("most_wires", "relaxed/network.h"))
# Most comparators of a codelet, which bounds its code and its scratch memory.
LONGEST = int(library.constant("most_comparators", "relaxed/network.h"))


class Needed(IntEnum):
    """The wires of a comparator that are needed behind it; a comparator with one is a half comparator."""

    BOTH = 0
    FIRST = 1
    SECOND = 2


class PlacedComparator(NamedTuple):
    """A comparator between two places of a codelet, a < b."""

    a: int
    b: int
    needed: Needed = Needed.BOTH


Shape = tuple[PlacedComparator, ...]


@dataclass(frozen=True)
class Codelet:
    """A piece of a network.

    Attributes:
        wires: the wires it loads, ascending.
        shape: its comparators in running order, between places in `wires`. A relaxed comparator is
            symmetric in its two wires, so the direction is no part of the shape.
        flips: a bit for each comparator, the first the lowest: whether it leaves the minimum on b.

    Raises:
        LoweringError: more wires or comparators than a kernel can hold, or wires and places that do not
            fit together.
    """

    wires: tuple[int, ...]
    shape: Shape
    flips: int

    def __post_init__(self) -> None:
        wires, size = len(self.wires), len(self.shape)
        if wires > WIDEST or size > LONGEST:
            raise LoweringError(
                f"a codelet has at most {WIDEST} wires and {LONGEST} comparators, got "
                f"{count(wires, 'wire')} and {count(size, 'comparator')}"
            )
        if not all(first < second for first, second in pairwise(self.wires)):
            raise LoweringError(f"a codelet's wires must ascend, got {self.wires}")
        places = {place for a, b, _ in self.shape for place in (a, b)}
        if places != set(range(wires)) or not all(a < b for a, b, _ in self.shape):
            raise LoweringError(
                f"a codelet's comparators a < b must touch the places 0 … {wires - 1} of its wires, "
                f"got {[(a, b) for a, b, _ in self.shape]}"
            )
        if not 0 <= self.flips < 1 << size:
            raise LoweringError(
                f"a codelet of {count(size, 'comparator')} has a bit for each, got {self.flips:#x}"
            )

    @property
    def spread(self) -> tuple[int, ...]:
        """The distance of each wire from the first."""
        return tuple(wire - self.wires[0] for wire in self.wires)

    def comparators(self) -> Iterator[tuple[int, int]]:
        """Yield its comparators (lo, hi) on the network's wires, in running order."""
        wires, flips = self.wires, self.flips
        for a, b, _ in self.shape:
            yield (wires[b], wires[a]) if flips & 1 else (wires[a], wires[b])
            flips >>= 1


def shapes_of(codelets: Sequence[Codelet]) -> tuple[Shape, ...]:
    """Return the shapes of some codelets, the most frequent first."""
    counts = Counter(codelet.shape for codelet in codelets)
    return tuple(sorted(counts, key=lambda shape: (-counts[shape], shape)))
