"""Optimise: the passes that make a network smaller for what it is used for, and what they gained."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.network import Network
from nsc.compiler.optimize.redundant import remove_redundant
from nsc.compiler.passes.presorted import presorted
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.restrict import half_operations, restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.verify import Budget, Property
from nsc.compiler.verify.question import BudgetError


@dataclass(frozen=True)
class Counts:
    """What a network costs.

    Attributes:
        size, depth: comparators and layers.
        half_operations: minima and maxima that the outputs asked for depend on.
    """

    size: int
    depth: int
    half_operations: int


@dataclass(frozen=True)
class Optimized:
    """A smaller network.

    Attributes:
        network: it has the property if the one given had it.
        before, after: what both cost.
        skipped: why redundant comparators were not looked for; None if they were.
    """

    network: Network
    before: Counts
    after: Counts
    skipped: str | None


def optimize(network: Network, property_: Property, budget: Budget) -> Optimized:
    """Return a network with the same property, never larger or deeper.

    In this order: untangle, where the outputs asked for stay in their places; remove what presorted
    inputs make needless; restrict to these outputs; remove redundant comparators, by reachable sets
    within the budget; relayer.

    Raises:
        NetworkError: the network does not have the property.
    """
    before = counts(network, property_)
    groups = [group.wires for group in property_.groups]
    outputs = [wire for group in groups for wire in group]
    standard, moved = untangle(network)
    made = standard if (moved[outputs] == outputs).all() else network
    if property_.presorted:
        made = presorted(made, property_.presorted)
    made = restrict(made, outputs, [group for group in groups if len(group) > 1])
    skipped = None
    try:
        made = remove_redundant(made, property_, budget)
    except BudgetError as ended:
        skipped = f"reachable sets ended at {ended}"
    # What is gone may have been all that others were for.
    made = relayer(restrict(made, outputs))
    return Optimized(made, before, counts(made, property_), skipped)


def counts(network: Network, property_: Property) -> Counts:
    """Return what a network costs for a property."""
    outputs = [wire for group in property_.groups for wire in group.wires]
    return Counts(network.size, network.depth, half_operations(network, outputs))
