"""Rounds: candidates on one island, as a function of the round's input alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from nsc.compiler.verify import Budget, Proof, Verdict, verify
from nsc.compiler.verify.counted import applied
from nsc.compiler.verify.zero_one import bounds_of, pack
from nsc.study.search.engine import Comparators, Rows, Standing, walk
from nsc.study.search.goal import Goal
from nsc.study.search.patterns import neighbours, packed, reachable, sampled, unpacked, wrong, zeros_of

# Words of a row of the pool: 512 inputs.
_ROW_WORDS = 8
# Candidates of a round: a few tenths of a second.
CANDIDATES = 1 << 18
# Candidates without a gain after which an island starts anew.
PATIENCE = 1 << 19
# Limits of a proof inside of a search: two or three seconds.
PROOF = Budget(states=1 << 23, propagations=1 << 23)
# Patterns that one refuted network adds to a pool at most.
_MOST_ADDED = 32


# What comes of a round: where the island stands, new refuting patterns, candidates tried.
Outcome = tuple[Standing, tuple[int, ...], int]


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


def work(round_: Round) -> Outcome:
    """Try the candidates of a round in this process.

    If the pool has all patterns, a network that passes it is right. If it has a sample, the network may be
    wrong: then the network of the gain, or at the end the current one, is proved, and one that is refuted is
    given up.
    """
    goal, standing = round_.goal, round_.standing
    exact = reachable(goal) is not None
    rows = pool_of(goal, round_.found)
    tried, after = walk(goal, rows, standing, round_.seed, CANDIDATES, PATIENCE, stops_at_gain=not exact)
    if exact:
        return after, (), tried
    found: tuple[int, ...] = ()
    for comparators in (after.best, after.current):
        if comparators not in (None, standing.current, standing.best):
            proof, refuting = decide(goal, comparators)
            found += refuting
            if proof.verdict is not Verdict.PROVED:
                return replace(standing, since=after.since), found, tried
    return after, found, tried


def pool_of(goal: Goal, found: tuple[int, ...]) -> Rows:
    """Return the pool of all patterns, or of a sample of them and what was found."""
    patterns = reachable(goal)
    if patterns is None:
        patterns = np.concatenate([np.array(found, np.uint64), sampled(goal)])
    filled = np.resize(patterns, -(-len(patterns) // (64 * _ROW_WORDS)) * 64 * _ROW_WORDS)
    bounds = bounds_of(zeros_of(goal.n, filled), goal.ranks.values())[: 1 + (goal.wanted.off_by > 0)]
    words = np.concatenate([*map(pack, (unpacked(goal.n, filled), *bounds))])
    return np.ascontiguousarray(words.reshape(len(words), -1, _ROW_WORDS).transpose(1, 0, 2))


def decide(goal: Goal, comparators: Comparators) -> tuple[Proof, tuple[int, ...]]:
    """Return the proof of a network, and patterns that refute it, near to the proof's counterexample."""
    proof = verify(goal.network(comparators), goal.wanted, PROOF)
    if proof.counterexample is None:
        return proof, ()
    failing = packed(np.array([proof.counterexample], dtype=bool))
    near = np.unique(applied(neighbours(goal, int(failing[0])), goal.prefix))
    refuting = near[wrong(goal, near, goal.expanded(comparators))]
    return proof, tuple(int(pattern) for pattern in refuting[:_MOST_ADDED])


def seed_of(*numbers: int) -> int:
    """Return a seed of 64 bits that depends on all of some numbers."""
    return int.from_bytes(hashlib.sha256(repr(numbers).encode()).digest()[:8], "little")
