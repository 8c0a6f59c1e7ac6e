"""Patterns: the 0-1 inputs of a pool, as they are behind the comparators that stay in front.

A pattern is a 64-bit word, bit w on wire w. A network in standard form is right if it is right for the
patterns with r and with r + 1 zeros, for each rank r of an output: an output is a monotone function of the
inputs, so more zeros leave a 0 and more ones a 1. If a rank may be R off, these are the patterns with r - R
and with r + R + 1 zeros. Source: Knuth 5.3.4, theorem Z, wire by wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import Comparator
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget
from nsc.compiler.verify.counted import Patterns, applied, counted
from nsc.compiler.verify.patterns import JoinRule
from nsc.compiler.verify.question import BudgetError
from nsc.compiler.verify.zero_one import sample_inputs
from nsc.study.search.goal import Goal

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
    needed = JoinRule(Budget(), None, goal.n, goal.ranks).needed
    limits = needed, _MOST_ON_THE_WAY
    try:
        parts = counted(goal.n, goal.prefix, goal.wanted.presorted, range(goal.n), *limits)
        while len(parts) > 1:
            a, b, *others = parts
            parts = sorted([a.product(b, *limits), *others], key=lambda part: len(part.patterns))
    except BudgetError:
        return None
    found = parts[0].patterns
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
    needed = JoinRule(Budget(), None, goal.n, goal.ranks).needed(goal.n)
    return np.unique(patterns[needed[zeros_of(goal.n, patterns)]])


def packed(inputs: npt.NDArray[np.bool_]) -> Patterns:
    """Return (count, n) 0-1 inputs as words."""
    places = np.arange(inputs.shape[1], dtype=np.uint64)
    words: Patterns = (inputs.astype(np.uint64) << places).sum(axis=1, dtype=np.uint64)
    return words


def unpacked(n: int, patterns: Patterns) -> npt.NDArray[np.bool_]:
    """Return patterns as (count, n) 0-1 inputs."""
    return np.array(patterns[:, None] >> np.arange(n, dtype=np.uint64) & np.uint64(1), dtype=bool)


def wrong(goal: Goal, patterns: Patterns, comparators: Sequence[Comparator]) -> npt.NDArray[np.bool_]:
    """Return for which patterns comparators leave a wrong value on an output."""
    return goal.wanted.fails(Network.from_comparators(goal.n, comparators), unpacked(goal.n, patterns))


def neighbours(goal: Goal, pattern: int) -> Patterns:
    """Return a pattern, and all that differ from it by an exchange of a 0 and a 1."""
    ones = [wire for wire in range(goal.n) if pattern >> wire & 1]
    zeros = [wire for wire in range(goal.n) if not pattern >> wire & 1]
    near = [pattern, *(pattern ^ (1 << a | 1 << b) for a in ones for b in zeros)]
    return np.array(near, dtype=np.uint64)


def zeros_of(n: int, patterns: Patterns) -> npt.NDArray[np.int64]:
    """Return how many of n wires are 0, for each pattern."""
    return n - np.bitwise_count(patterns).astype(np.int64)


def _mirrored(n: int, patterns: Patterns) -> Patterns:
    """Return patterns upside down, with 0 for 1."""
    image = np.zeros_like(patterns)
    for wire in range(n):
        image |= (~(patterns >> np.uint64(wire)) & np.uint64(1)) << np.uint64(n - 1 - wire)
    return image
