"""Answer: the outcome of one method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.question import Question


@dataclass(frozen=True)
class Merge:
    """Two runs become one.

    Attributes:
        network: the merging network, a key of `merges.MERGERS`.
        fill: what fills the runs up: 0 nothing, 1 ∞ behind them, -1 -∞ in front of them.
        a, b: the least wire of each run.
    """

    network: str
    fill: int
    a: int
    b: int


@dataclass(frozen=True)
class Inside:
    """A comparator, by its number, whose wires are in one run."""

    comparator: int


@dataclass(frozen=True)
class Join:
    """A comparator, by its number, joins two components, which then have so many different patterns."""

    comparator: int
    patterns: int


@dataclass(frozen=True)
class Clause:
    """A clause that follows from those before it by unit propagation."""

    literals: tuple[int, ...]


# What a checker of a certificate follows.
Step = Merge | Inside | Join | Clause


@dataclass(frozen=True)
class Answer:
    """A proof in words, or a failing input of the question's network.

    Attributes:
        proved: why the wires carry their ranks; None if they do not.
        failing: a 0-1 input that comes out wrong; None if proved.
        states: 0-1 patterns of the largest join; None for methods without joins.
        conflicts: conflicts of the SAT solver; None for other methods.
        steps: the steps of a certificate, in the order of the proof; comparators are those of the question's
            network.
    """

    proved: str | None = None
    failing: Vector | None = None
    states: int | None = None
    conflicts: int | None = None
    steps: tuple[Step, ...] = ()

    def __post_init__(self) -> None:
        assert (self.proved is None) != (self.failing is None)


# A method returns None if it does not apply, and raises BudgetError if it reaches the budget.
Method = Callable[[Question], Answer | None]
