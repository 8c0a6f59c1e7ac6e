"""Question: a property of a network, in the one form that all methods decide."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from nsc.compiler.families import merge_exchange
from nsc.compiler.network import Network
from nsc.compiler.passes.restrict import restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.progress import SILENT, Progress
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
    """Whether each of some wires carries its rank, for all 0-1 inputs whose presorted runs ascend.

    Attributes:
        network: in standard form, with only the comparators that these wires depend on.
        ranks: wire to its required rank, 0 the smallest.
        runs: wires whose inputs ascend.
        budget: the limits of the methods.
        tangled: whether the original network had reversed comparators.
    """

    network: Network
    ranks: dict[int, int]
    runs: tuple[tuple[int, ...], ...]
    budget: Budget
    tangled: bool = False

    @property
    def is_sort(self) -> bool:
        """Whether every wire should carry the rank of its number."""
        return len(self.ranks) == self.network.n and all(w == r for w, r in self.ranks.items())


def question_of(network: Network, property_: Property, budget: Budget) -> Question:
    """Return the question that decides whether a network has a property.

    Wires that carry ranks in any order are sorted behind the network, so that each of them has one rank.
    Reversed comparators are untangled, which renames outputs. Comparators that no wire with a rank depends
    on are left out.
    """
    tangled = bool((network.comparators[:, 0] > network.comparators[:, 1]).any())
    behind, ranks = sorted_groups(property_)
    # Copying a large network can take longer than proving it.
    if behind:
        network = Network.from_layers(network.n, [*network.layers(), *([pair] for pair in behind)])
    if tangled:
        network, outputs = untangle(network)
        ranks = {int(outputs[wire]): rank for wire, rank in ranks.items()}
    if len(ranks) < network.n:
        network = restrict(network, ranks)
    assert (network.comparators[:, 0] < network.comparators[:, 1]).all()
    return Question(network, ranks, property_.presorted, budget, tangled)


def sorted_groups(property_: Property) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Return comparators that sort the wires of every group, and each wire's rank behind them."""
    comparators, ranks = [], property_.ranks
    for group in property_.groups:
        wires = group.wires
        if len(wires) > 1:
            comparators += [
                (wires[lo], wires[hi]) for lo, hi in merge_exchange(len(wires)).comparators.tolist()
            ]
            ranks |= {wire: group.first + k for k, wire in enumerate(wires)}
    return comparators, ranks
