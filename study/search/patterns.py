"""Patterns: the 0-1 inputs of a pool, as they are behind the comparators that stay in front.

A pattern is a 64-bit word, bit w on wire w. A network in standard form is right if it is right for the
patterns with r and with r + 1 zeros, for each rank r of an output: an output is a monotone function of the
inputs, so more zeros leave a 0 and more ones a 1. Source: Knuth 5.3.4, theorem Z, wire by wire.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import Comparator
from nsc.compiler.verify import Budget
from nsc.compiler.verify.patterns import JoinRule
from nsc.compiler.verify.zero_one import sample_inputs
from nsc.study.search.goal import Goal

Patterns = npt.NDArray[np.uint64]

# The most patterns of a pool that has all of them, and of a set on the way to it.
MOST_PATTERNS = 1 << 15
_MOST_ON_THE_WAY = 1 << 21
# Random inputs of a pool that has not all patterns.
_SAMPLE = 1 << 14


@cache
def reachable(goal: Goal) -> Patterns | None:
    """Return all patterns that the prefix leaves and that matter; None if they are too many.

    With symmetry one of each pattern and its mirror image. Cost: at most some seconds.
    """
    parts: dict[int, Patterns] = {}  # of joined wires, which are the bits of the key
    runs = goal.wanted.presorted
    alone = set(range(goal.n)) - {wire for run in runs for wire in run}
    for run in (*runs, *((wire,) for wire in sorted(alone))):
        ones = [sum(1 << wire for wire in run[k:]) for k in range(len(run) + 1)]
        parts[ones[0]] = np.array(ones, np.uint64)

    def join(a: int, b: int) -> bool:
        """Replace two parts, if they differ, by their product; return whether it is small enough."""
        if a != b and len(parts[a]) * len(parts[b]) <= _MOST_ON_THE_WAY:
            product = (parts.pop(a)[:, None] | parts.pop(b)[None, :]).ravel()
            parts[a | b] = product[_may_matter(goal, product, (a | b).bit_count())]
        return a | b in parts

    for lo, hi in goal.prefix:
        a, b = (next(part for part in parts if part >> wire & 1) for wire in (lo, hi))
        if not join(a, b):
            return None
        parts[a | b] = np.unique(applied(parts[a | b], [(lo, hi)]))
    while len(parts) > 1:
        a, b, *_ = sorted(parts, key=lambda part: len(parts[part]))
        if not join(a, b):
            return None
    (found,) = parts.values()
    if goal.symmetric:
        found = np.unique(np.minimum(found, _mirrored(goal.n, found)))
    return found if len(found) <= MOST_PATTERNS else None


@cache
def sampled(goal: Goal) -> Patterns:
    """Return patterns of inputs that refute most wrong networks: the same for the same goal."""
    words = [
        packed(inputs)
        for inputs in sample_inputs(goal.n, _SAMPLE, tuple(goal.ranks.values()), goal.wanted.presorted)
    ]
    patterns = applied(np.concatenate(words), goal.prefix)
    return np.unique(patterns[_may_matter(goal, patterns, goal.n)])


def applied(patterns: Patterns, comparators: Iterable[Comparator]) -> Patterns:
    """Return what comparators make of patterns.

    >>> applied(np.array([0b01, 0b10], np.uint64), [(0, 1)]).tolist()
    [2, 2]
    """
    for lo, hi in comparators:
        exchanged = (patterns >> np.uint64(lo)) & ~(patterns >> np.uint64(hi)) & np.uint64(1)
        patterns = patterns ^ (exchanged << np.uint64(lo) | exchanged << np.uint64(hi))
    return patterns


def packed(inputs: npt.NDArray[np.bool_]) -> Patterns:
    """Return (count, n) 0-1 inputs as words."""
    places = np.arange(inputs.shape[1], dtype=np.uint64)
    words: Patterns = (inputs.astype(np.uint64) << places).sum(axis=1, dtype=np.uint64)
    return words


def wrong(goal: Goal, patterns: Patterns, comparators: Iterable[Comparator]) -> npt.NDArray[np.bool_]:
    """Return for which patterns comparators leave a wrong value on an output."""
    out = applied(applied(patterns, comparators), goal.behind)
    zeros = zeros_of(goal.n, patterns)
    failing = np.zeros(len(patterns), dtype=bool)
    for wire, rank in goal.ranks.items():
        failing |= (out >> np.uint64(wire) & np.uint64(1)).astype(bool) != (zeros <= rank)
    return failing


def neighbours(goal: Goal, pattern: int) -> Patterns:
    """Return a pattern, and all that differ from it by an exchange of a 0 and a 1."""
    ones = [wire for wire in range(goal.n) if pattern >> wire & 1]
    zeros = [wire for wire in range(goal.n) if not pattern >> wire & 1]
    near = [pattern, *(pattern ^ (1 << a | 1 << b) for a in ones for b in zeros)]
    return np.array(near, dtype=np.uint64)


def zeros_of(n: int, patterns: Patterns) -> npt.NDArray[np.int64]:
    """Return how many of n wires are 0, for each pattern."""
    return n - np.bitwise_count(patterns).astype(np.int64)


def _may_matter(goal: Goal, patterns: Patterns, wires: int) -> npt.NDArray[np.bool_]:
    """Return which patterns of some wires can be part of one whose number of zeros matters."""
    needed = JoinRule(Budget(), None, goal.n, goal.ranks).needed(wires)
    return needed[zeros_of(wires, patterns)]


def _mirrored(n: int, patterns: Patterns) -> Patterns:
    """Return patterns upside down, with 0 for 1."""
    image = np.zeros_like(patterns)
    for wire in range(n):
        image |= (~(patterns >> np.uint64(wire)) & np.uint64(1)) << np.uint64(n - 1 - wire)
    return image
