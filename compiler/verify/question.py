"""Question and Answer: what every method of proof is given, and what it returns."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from nsc.compiler.families import merge_exchange
from nsc.compiler.network import Network
from nsc.compiler.passes import is_tangled, restrict, untangle
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify.proof import Vector
from nsc.compiler.verify.property import Property
from nsc.wording import argument


class BudgetError(Exception):
    """A method would take more states, memory or time than the budget allows."""


class Archive(Protocol):
    """Where texts are kept from one process to the next."""

    def read(self, name: str) -> str | None:
        """Return the text of a name; None if there is none."""

    def write(self, name: str, text: str) -> None:
        """Keep a text, if that is possible."""


@dataclass(frozen=True)
class Budget:
    """The limits of a verification, and what it may use.

    Attributes:
        states: the most 0-1 patterns in a join of two components, for the method of reachable sets; None: as
            many as its memory and time allow.
        propagations: the most propagations of the SAT solver; None: as many as its time allows.
        memory: the most bytes of packed 0-1 patterns, for the method of reachable sets.
        deadline: the end, by time.monotonic; None: each method counts its steps, so that the verdict does not
            depend on how fast a machine is, or on what else it does.
        archive: keeps proofs, for `verify_once`; None: nothing is kept.
        progress: receives the current method and its counts.
        certify: whether a proof has to be one that a certificate can hold.
    """

    states: int | None = None
    propagations: int | None = None
    memory: int = 1 << 30
    deadline: float | None = None
    archive: Archive | None = None
    progress: Progress = SILENT
    certify: bool = False

    @property
    def is_trial(self) -> bool:
        """Whether the limits are counts that a caller chose."""
        return self.deadline is None and self.states is not None and self.propagations is not None

    def check(self) -> None:
        """Raise BudgetError after the deadline."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise BudgetError(f"the time limit, which {argument('time_limit')} sets")


@dataclass(frozen=True)
class Question:
    """Whether some wires carry their ranks, for all 0-1 inputs whose presorted runs ascend.

    Attributes:
        network: in standard form, with only the comparators that these wires depend on.
        ranks: wire to the ranks that it may carry, 0 the smallest.
        runs: wires whose inputs ascend.
        budget: the limits of the methods.
        tangled: whether the original network had reversed comparators.
    """

    network: Network
    ranks: dict[int, range]
    runs: tuple[tuple[int, ...], ...]
    budget: Budget
    tangled: bool = False

    @property
    def is_sort(self) -> bool:
        """Whether every wire should carry the rank of its number."""
        return len(self.ranks) == self.network.n and in_place(self.ranks)


def question_of(network: Network, property_: Property, budget: Budget) -> Question:
    """Return the question that decides whether a network has a property.

    Wires that carry ranks in any order are sorted behind the network, so that each has one rank.
    Reversed comparators are untangled, which renames outputs. Comparators that no wire with a rank depends
    on are left out.
    """
    tangled = is_tangled(network)
    behind, ranks = sorted_groups(property_)
    # Copying a large network can take longer than proving it.
    if behind:
        network = Network.from_layers(network.n, [*network.layers(), *([pair] for pair in behind)])
    if tangled:
        network, outputs = untangle(network)
        ranks = {int(outputs[wire]): rank for wire, rank in ranks.items()}
    if len(ranks) < network.n:
        network = restrict(network, ranks)
    assert not is_tangled(network)
    return Question(network, ranks, property_.presorted, budget, tangled)


def in_place(ranks: dict[int, range], off_by: int = 0) -> bool:
    """Return whether each wire may carry the ranks around its number."""
    return all(span == range(wire - off_by, wire + off_by + 1) for wire, span in ranks.items())


def sorted_groups(property_: Property) -> tuple[list[tuple[int, int]], dict[int, range]]:
    """Return comparators that sort the wires of every group, and each wire's possible ranks behind them."""
    comparators, ranks = [], property_.ranks
    for group in property_.groups:
        wires = group.wires
        if len(wires) > 1:
            comparators += [
                (wires[lo], wires[hi]) for lo, hi in merge_exchange(len(wires)).comparators.tolist()
            ]
            ranks |= {wire: group.first + k for k, wire in enumerate(wires)}
    off_by = property_.off_by
    return comparators, {wire: range(rank - off_by, rank + off_by + 1) for wire, rank in ranks.items()}


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


# A checker of a certificate follows these.
Step = Merge | Inside | Join | Clause


@dataclass(frozen=True)
class Answer:
    """A proof in words, or a failing input of the question's network.

    Attributes:
        proved: why the wires carry their ranks; None if they do not.
        failing: a 0-1 input that comes out wrong; None if proved.
        states: 0-1 patterns of the largest join; None for methods without joins.
        conflicts: conflicts of the SAT solver; None for other methods.
        steps: the steps of a certificate, in the order of the proof; comparators have their numbers in the
            question's network.
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
