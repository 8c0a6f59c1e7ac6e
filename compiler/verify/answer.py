"""Answer: the outcome of one method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.question import Question


@dataclass(frozen=True)
class Answer:
    """A proof in words, or a failing input of the question's network.

    Attributes:
        proved: why the wires carry their ranks; None if they do not.
        failing: a 0-1 input that comes out wrong; None if proved.
        states: 0-1 patterns of the largest join; None for methods without joins.
        conflicts: conflicts of the SAT solver; None for other methods.
    """

    proved: str | None = None
    failing: Vector | None = None
    states: int | None = None
    conflicts: int | None = None

    def __post_init__(self) -> None:
        assert (self.proved is None) != (self.failing is None)


# A method returns None if it does not apply, and raises BudgetError if it reaches the budget.
Method = Callable[[Question], Answer | None]
