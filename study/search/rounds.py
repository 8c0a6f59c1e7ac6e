"""Rounds: candidates on one island, tried by an engine in C++, as a function of the round's input alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from nsc.compiler.families import Comparator
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Proof, Verdict, verify
from nsc.compiler.verify.zero_one import pack
from nsc.study.search.goal import Goal, with_images
from nsc.study.search.patterns import (
    applied,
    neighbours,
    packed,
    reachable,
    sampled,
    wrong,
    zeros_of,
)

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
        best: the comparators of least cost since the search began.
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


# Candidates of a round: a few tenths of a second.
CANDIDATES = 1 << 18
# Candidates without a gain after which an island starts anew.
PATIENCE = 1 << 19
# Limits of a proof inside of a search: two or three seconds.
PROOF = Budget(states=1 << 23, propagations=1 << 23)
# Patterns that one refuted network adds to a pool at most.
_MOST_ADDED = 32


@dataclass(frozen=True)
class Round:
    """What a round is given.

    Attributes:
        goal: what is searched.
        found: patterns that refuted a network, beside a sample's.
        standing: where the island stands; with a sample `current` and `best` are proved.
        seed: of the random numbers.
    """

    goal: Goal
    found: tuple[int, ...]
    standing: Standing
    seed: int


@dataclass(frozen=True)
class Outcome:
    """What came of a round.

    Attributes:
        standing: where the island stands now.
        found: new patterns, which refuted a network.
        tried: candidates.
    """

    standing: Standing
    found: tuple[int, ...]
    tried: int


def run_round(round_: Round, engine: Engine) -> Outcome:
    """Try the candidates of a round.

    If the pool has all patterns, a network that passes it is right. If it has a sample, the network may be
    wrong: then the network of the gain, or at the end the current one, is proved, and one that is refuted is
    given up.
    """
    goal, standing = round_.goal, round_.standing
    problem = pool_of(goal, round_.found)
    exact = reachable(goal) is not None
    effort = Effort(round_.seed, CANDIDATES, PATIENCE, stops_at_gain=not exact)
    tried, after = engine.search(problem, standing, effort)
    if exact:
        return Outcome(after, (), tried)
    found: tuple[int, ...] = ()
    for name in ("best", "current"):
        comparators = getattr(after, name)
        if comparators not in (None, standing.current, standing.best):
            proof, refuting = decide(goal, comparators)
            found += refuting
            if proof.verdict is not Verdict.PROVED:
                return Outcome(replace(standing, since=after.since), found, tried)
    return Outcome(after, found, tried)


def pool_of(goal: Goal, found: tuple[int, ...]) -> Problem:
    """Return the problem with all patterns, or with a sample of them and with what was found."""
    patterns = reachable(goal)
    if patterns is None:
        patterns = np.concatenate([np.array(found, np.uint64), sampled(goal)])
    filled = np.resize(patterns, -(-len(patterns) // (64 * _ROW_WORDS)) * 64 * _ROW_WORDS)
    values = (filled[:, None] >> np.arange(goal.n, dtype=np.uint64) & np.uint64(1)).astype(bool)
    wanted = zeros_of(goal.n, filled)[:, None] <= np.array(list(goal.ranks.values()))
    words = np.concatenate([pack(values), pack(wanted)])
    blocks = words.reshape(len(words), -1, _ROW_WORDS).transpose(1, 0, 2)
    return Problem(goal, np.ascontiguousarray(blocks))


def decide(goal: Goal, comparators: Comparators) -> tuple[Proof, tuple[int, ...]]:
    """Return the proof of a network, and patterns that refute it, near to the proof's counterexample."""
    proof = verify(network_of(goal, comparators), goal.wanted, PROOF)
    if proof.counterexample is None:
        return proof, ()
    failing = packed(np.array([proof.counterexample], dtype=bool))
    near = np.unique(applied(neighbours(goal, int(failing[0])), goal.prefix))
    refuting = near[wrong(goal, near, expanded(goal, comparators))]
    return proof, tuple(int(pattern) for pattern in refuting[:_MOST_ADDED])


def network_of(goal: Goal, comparators: Comparators) -> Network:
    """Return the network that a list of comparators stands for."""
    return goal.network(expanded(goal, comparators))


def expanded(goal: Goal, comparators: Comparators) -> Comparators:
    """Return the comparators behind the prefix that a list stands for."""
    return tuple(with_images(goal.n, comparators)) if goal.symmetric else comparators


def seed_of(*numbers: int) -> int:
    """Return a seed of 64 bits that depends on all of some numbers."""
    return int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:8], "little")
