"""Counted patterns: the 0-1 patterns that groups of joined wires can hold, and how many inputs lead to each.

A pattern is a 64-bit word, bit w on wire w. The counts take 64 bits too: a pattern that k ones lead to has at
most as many inputs as there are ways to choose k of 64 wires.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.compiler.verify.question import BudgetError
from nsc.compiler.verify.zero_one import Runs

Patterns = npt.NDArray[np.uint64]
# For a number of wires, returns for each number of zeros among their inputs whether such inputs matter.
Needed = Callable[[int], npt.NDArray[np.bool_]]

MOST_WIRES = 64
_IN_CACHE = 1 << 13


@dataclass(frozen=True, eq=False)
class Part:
    """Wires that comparators have joined, and their different patterns.

    Attributes:
        wires: the wires, also those that no pattern holds any more.
        patterns, ones, counts: for each pattern its word, the number of ones among its inputs, and the number
            of these inputs. Patterns differ in the first two.
    """

    wires: tuple[int, ...]
    patterns: Patterns
    ones: npt.NDArray[np.uint8]
    counts: npt.NDArray[np.int64]

    def product(self, other: Part, needed: Needed, most: int) -> Part:
        """Return the joined wires of two parts.

        Raises:
            BudgetError: more patterns than `most`.
        """
        size = len(self.patterns) * len(other.patterns)
        if size > most:
            raise BudgetError(f"{size:,} patterns in a join")
        wires, ones = self.wires + other.wires, np.add.outer(self.ones, other.ones).ravel()
        kept = needed(len(wires))[len(wires) - ones]
        patterns = np.bitwise_or.outer(self.patterns, other.patterns).ravel()
        counts = np.multiply.outer(self.counts, other.counts).ravel()
        return Part(wires, patterns[kept], ones[kept], counts[kept])

    def after(self, comparators: Sequence[tuple[int, int]], live: int) -> Part:
        """Return the part behind comparators on its wires, with the bits in `live` of its patterns."""
        patterns = applied(self.patterns, comparators) & np.uint64(live)
        order = np.argsort(patterns)
        order = order[np.argsort(self.ones[order], kind="stable")]
        patterns, ones = patterns[order], self.ones[order]
        differs = (patterns[1:] != patterns[:-1]) | (ones[1:] != ones[:-1])
        first = np.flatnonzero(np.append(True, differs))
        return Part(self.wires, patterns[first], ones[first], np.add.reduceat(self.counts[order], first))


def applied(patterns: Patterns, comparators: Sequence[tuple[int, int]]) -> Patterns:
    """Return what comparators in standard form make of patterns.

    >>> applied(np.array([0b01, 0b10], np.uint64), [(0, 1)]).tolist()
    [2, 2]
    """
    out: Patterns = patterns.copy()
    for piece in np.array_split(out, 1 + len(out) // _IN_CACHE):
        for lo, hi in comparators:
            rises = (piece >> np.uint64(hi - lo) ^ piece) & piece & np.uint64(1 << lo)
            piece += rises * np.uint64((1 << hi - lo) - 1)
    return out


def counted(
    n: int,
    comparators: Sequence[tuple[int, int]],
    runs: Runs,
    outputs: Iterable[int],
    needed: Needed,
    most: int,
) -> list[Part]:
    """Return the parts that comparators leave, after all joins, the smallest first.

    Args:
        n: number of wires, up to MOST_WIRES.
        comparators: in order.
        runs: wires whose inputs ascend; of each order of a run's values the sorted one is the input.
        outputs: the other wires are forgotten once no comparator needs them.
        needed: which inputs matter; patterns of others are left out.
        most: patterns of a join.

    Raises:
        BudgetError: more patterns in a join.
    """
    alone = set(range(n)) - {wire for run in runs for wire in run}
    part: dict[int, Part] = {}
    for run in (*runs, *((wire,) for wire in sorted(alone))):
        ones = range(len(run) + 1)
        words = [sum(1 << wire for wire in run[len(run) - k :]) for k in ones]
        ways = [math.comb(len(run), k) for k in ones]
        begun = Part(tuple(run), np.array(words, np.uint64), np.array(ones, np.uint8), np.array(ways))
        part |= dict.fromkeys(run, begun)
    later = list(comparators)
    while True:
        # A comparator is ready if no earlier one waits on its wires.
        waiting: set[int] = set()
        ready: dict[Part, list[tuple[int, int]]] = {}
        joins, left = [], []
        for lo, hi in later:
            is_ready = waiting.isdisjoint((lo, hi))
            if is_ready and part[lo] is part[hi]:
                ready.setdefault(part[lo], []).append((lo, hi))
                continue
            joins += [(lo, hi)] * is_ready
            waiting |= {lo, hi}
            left.append((lo, hi))
        later = left
        live = sum(1 << wire for wire in waiting.union(outputs))
        for each, pairs in ready.items():
            part |= dict.fromkeys(each.wires, each.after(pairs, live))
        if not joins:
            return sorted(dict.fromkeys(part.values()), key=lambda each: len(each.patterns))
        lo, hi = min(joins, key=lambda pair: math.prod([len(part[wire].patterns) for wire in pair]))
        joined = part[lo].product(part[hi], needed, most)
        part |= dict.fromkeys(joined.wires, joined)
