"""Rounds: a number of candidates on one island, as a function of its input alone."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.search.engine import Comparators, Effort, Engine, Problem, Standing, problem_of
from nsc.compiler.search.goal import Goal, with_images
from nsc.compiler.search.patterns import applied, neighbours, packed, reachable, sampled, wrong
from nsc.compiler.verify import Budget, Proof, Verdict, verify

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
        found: patterns that refuted a network, beside those of a sample.
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

    If the pool has all patterns, a network that passes it is right. Of a sample it may be wrong: then the
    network of the gain, or at the end the current one, is proved, and one that is refuted is given up.
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
    """Return the problem with all patterns, or with those of a sample and those that were found."""
    every = reachable(goal)
    if every is not None:
        return problem_of(goal, every)
    return problem_of(goal, np.concatenate([np.array(found, np.uint64), sampled(goal)]))


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
