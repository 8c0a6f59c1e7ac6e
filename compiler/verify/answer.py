"""Answer: what a method finds out."""

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
        failing: a 0-1 input that comes out wrong; None if there is none.
        states: the most states held at a time, of methods that count them.
        conflicts: of a SAT solver.
    """

    proved: str | None = None
    failing: Vector | None = None
    states: int | None = None
    conflicts: int | None = None

    def __post_init__(self) -> None:
        assert (self.proved is None) != (self.failing is None)


# A method says None where it does not apply, and raises BudgetError where its budget ends first.
Method = Callable[[Question], Answer | None]
