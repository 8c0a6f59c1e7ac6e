"""Deletions: a network without single comparators, and without pairs of them, for as long as any can go."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.search.engine import Comparators, Engine
from nsc.compiler.search.goal import Goal
from nsc.compiler.search.patterns import reachable
from nsc.compiler.search.rounds import decide, pool_of
from nsc.compiler.verify import Verdict


def deleted(
    goal: Goal, comparators: Comparators, engine: Engine, progress: Progress = SILENT
) -> tuple[Comparators, tuple[int, ...]]:
    """Return comparators without those that can be left out, and patterns that refuted the others.

    First each comparator is left out, then each pair. The pool refutes most; the verifier decides the others.
    """
    found: tuple[int, ...] = ()
    progress.phase("leave out comparators")
    while True:
        smaller, more = _without_some(goal, comparators, engine, found, progress)
        found += more
        if smaller is None:
            return comparators, found
        comparators = smaller


def _without_some(
    goal: Goal, comparators: Comparators, engine: Engine, found: tuple[int, ...], progress: Progress
) -> tuple[Comparators | None, tuple[int, ...]]:
    """Return a list without one comparator or two; None if each is needed; and patterns that were found."""
    exact = reachable(goal) is not None
    more: tuple[int, ...] = ()
    for chosen in _choices(len(comparators)):
        problem = pool_of(goal, found + more)
        for first, second in chosen[engine.removable(problem, comparators, chosen)].tolist():
            progress.count("leaves out", first, len(comparators))
            smaller = tuple(each for k, each in enumerate(comparators) if k not in (first, second))
            if exact:
                return smaller, more
            proof, refuting = decide(goal, smaller)
            more += refuting
            if proof.verdict is Verdict.PROVED:
                return smaller, more
    return None, more


def _choices(size: int) -> Iterator[np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    """Yield the places of single comparators, then those of pairs."""
    yield np.array([(k, k) for k in range(size)], np.int64).reshape(-1, 2)
    yield np.array(list(itertools.combinations(range(size), 2)), np.int64).reshape(-1, 2)
