"""Engine: what tries candidates, in compiled C++, and what it is given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import Comparator
from nsc.compiler.search.goal import Goal
from nsc.compiler.search.patterns import Patterns, zeros_of
from nsc.compiler.verify.zero_one import pack

Comparators = tuple[Comparator, ...]

# Words of a row of the pool: 512 inputs.
_ROW_WORDS = 8
NO_COST = (1 << 64) - 1


@dataclass(frozen=True)
class Problem:
    """A goal and a pool of patterns.

    Attributes:
        goal: what is searched.
        rows: (blocks, n + outputs, 8) words: of 512 patterns the value of each wire, then the right value of
            each output, in the order of `goal.ranks`.
    """

    goal: Goal
    rows: npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Standing:
    """Where a search stands. With symmetry a list has one of each comparator and its mirror image.

    Attributes:
        current: comparators behind the prefix that pass the pool; None before the first start.
        best: those of least cost since the search began.
        origin: those that each start begins with; None: random ones.
        best_cost: the least cost since the last start, as the engine writes it.
        since: candidates tried since then without a gain.
    """

    current: Comparators | None = None
    best: Comparators | None = None
    origin: Comparators | None = None
    best_cost: int = NO_COST
    since: int = 0


@dataclass(frozen=True)
class Effort:
    """How far a call goes.

    Attributes:
        seed: of the random numbers, below 2^64.
        candidates: how many are tried.
        patience: candidates without a gain after which the search starts anew.
        stops_at_gain: whether it ends where `best` is improved.
    """

    seed: int
    candidates: int
    patience: int
    stops_at_gain: bool = False


class Engine(Protocol):
    """Tries candidates."""

    def search(self, problem: Problem, standing: Standing, effort: Effort) -> tuple[int, Standing]:
        """Return how many candidates were tried, and where the search stands then."""

    def removable(
        self, problem: Problem, comparators: Comparators, places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return for each row of places (first, second) whether the pool passes without these comparators."""


def problem_of(goal: Goal, patterns: Patterns) -> Problem:
    """Return the problem of a goal with these patterns as its pool, at least one."""
    filled = np.resize(patterns, -(-len(patterns) // (64 * _ROW_WORDS)) * 64 * _ROW_WORDS)
    values = (filled[:, None] >> np.arange(goal.n, dtype=np.uint64) & np.uint64(1)).astype(bool)
    wanted = zeros_of(goal.n, filled)[:, None] <= np.array(list(goal.ranks.values()))
    words = np.concatenate([pack(values), pack(wanted)])
    blocks = words.reshape(len(words), -1, _ROW_WORDS).transpose(1, 0, 2)
    return Problem(goal, np.ascontiguousarray(blocks))
