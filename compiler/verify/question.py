"""Question: a property of a network in the form that every method decides."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nsc.compiler.families.classic import merge_exchange
from nsc.compiler.network import Network
from nsc.compiler.passes.restrict import restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify.property import Property
from nsc.wording import argument


class BudgetError(Exception):
    """A method would take more states, memory or time than the budget allows."""


@dataclass(frozen=True)
class Budget:
    """What a verification may take.

    Attributes:
        states: 0-1 patterns that a join of two components may make, of the method of reachable sets; None:
            what memory and time allow.
        memory: bytes that this method may take for packed 0-1 patterns.
        deadline: the end, by time.monotonic; None: each method ends at a limit of its own.
        build: makes a library of a name and a C++ source, or None where that cannot be; None: nothing may
            be built.
        progress: is told what is being tried and how far it is.
    """

    states: int | None = None
    memory: int = 1 << 30
    deadline: float | None = None
    build: Callable[[str, str], Path | None] | None = None
    progress: Progress = SILENT

    def check(self) -> None:
        """Raise BudgetError once the time is over."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            raise BudgetError(f"the time limit, which {argument('time_limit')} sets")


@dataclass(frozen=True)
class Question:
    """Whether some wires of a network carry each its rank, for all 0-1 inputs whose runs ascend.

    Attributes:
        network: in standard form, without what these wires do not depend on.
        ranks: wire to rank, 0 the smallest.
        runs: wires whose inputs ascend.
        budget: what a method may take.
        tangled: whether the network that was asked of had reversed comparators.
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


def question(network: Network, property_: Property, budget: Budget) -> Question:
    """Return the question whose answer says whether a network has a property.

    Wires that carry ranks in any order are sorted behind the network, which asks for each rank on its
    own; reversed comparators are untangled, which renames outputs; what no named output depends on is
    left out.
    """
    tangled = bool((network.comparators[:, 0] > network.comparators[:, 1]).any())
    behind, ranks = sorted_groups(property_)
    # Copies of large networks take longer than some proofs of them.
    if behind:
        network = Network.from_layers(network.n, [*network.layers(), *([pair] for pair in behind)])
    if tangled:
        network, outputs = untangle(network)
        ranks = {int(outputs[wire]): rank for wire, rank in ranks.items()}
    if len(ranks) < network.n:
        network = restrict(network, ranks)
    return Question(network, ranks, property_.presorted, budget, tangled)


def sorted_groups(property_: Property) -> tuple[list[tuple[int, int]], dict[int, int]]:
    """Return comparators that sort the wires which carry ranks in any order, and each wire's rank then."""
    comparators, ranks = [], property_.ranks
    for group in property_.groups:
        wires = group.wires
        if len(wires) > 1:
            comparators += [
                (wires[lo], wires[hi]) for lo, hi in merge_exchange(len(wires)).comparators.tolist()
            ]
            ranks |= {wire: group.first + k for k, wire in enumerate(wires)}
    return comparators, ranks
