"""Optimize: the passes that make a network smaller for a property, and what they gained."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.cards import card
from nsc.compiler.diagram import notebook_svg
from nsc.compiler.network import Network
from nsc.compiler.optimize.records import Records, records_of
from nsc.compiler.optimize.redundant import remove_redundant
from nsc.compiler.passes.presorted import presorted
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.restrict import half_operations, restrict
from nsc.compiler.passes.untangle import untangle
from nsc.compiler.verify import Budget, Property
from nsc.compiler.verify.question import BudgetError
from nsc.wording import count


@dataclass(frozen=True)
class Counts:
    """The cost of a network.

    Attributes:
        size, depth: comparators and layers.
        half_operations: minima and maxima that the selected outputs depend on.
    """

    size: int
    depth: int
    half_operations: int


@dataclass(frozen=True)
class Optimized:
    """A smaller network.

    Attributes:
        network: a network that has the property if the original has it.
        before, after: the cost of the original network and of this one.
        skipped: why redundant comparators were not removed; None if they were.
        known: the least cost that is known for the property; None where nsc has no record of it.

    >>> import nsc
    >>> found = nsc.optimize([(0, 1), (1, 2), (0, 1), (0, 1)])
    >>> found.before.size, found.after.size, found.skipped
    (4, 3, None)
    """

    network: Network
    before: Counts
    after: Counts
    skipped: str | None
    known: Records | None = None

    def _repr_html_(self) -> str:
        """Return the gain and the new diagram, which a notebook shows."""
        saved = self.before.size - self.after.size
        facts = {
            name: f"{was:,} → {now:,}"
            for name, was, now in (
                ("comparators", self.before.size, self.after.size),
                ("layers", self.before.depth, self.after.depth),
                ("half operations", self.before.half_operations, self.after.half_operations),
            )
        }
        if self.known is not None:
            name, _, value = self.known.words.partition(": ")
            facts[name] = value
        if self.skipped is not None:
            facts["redundant comparators"] = f"not looked for: {self.skipped}"
        return card(f"{count(saved, 'comparator')} fewer", facts, notebook_svg(self.network) or "")


def optimize(network: Network, property_: Property, budget: Budget) -> Optimized:
    """Return a network with the same property, never larger or deeper.

    In this order: untangle, if the selected outputs stay on their wires; remove comparators that presorted
    inputs make needless; restrict to the selected outputs; remove redundant comparators, by reachable sets
    within the budget; relayer.

    Raises:
        NetworkError: the network does not have the property.
    """
    before = counts(network, property_)
    groups = [group.wires for group in property_.groups]
    outputs = [wire for group in groups for wire in group]
    standard, moved = untangle(network)
    smaller = standard if (moved[outputs] == outputs).all() else network
    if property_.presorted:
        smaller = presorted(smaller, property_.presorted)
    smaller = restrict(smaller, outputs, [group for group in groups if len(group) > 1])
    skipped = None
    try:
        smaller = remove_redundant(smaller, property_, budget)
    except BudgetError as ended:
        skipped = f"reachable sets ended at {ended}"
    # Without the redundant comparators, some before them may no longer be needed.
    smaller = relayer(restrict(smaller, outputs))
    return Optimized(smaller, before, counts(smaller, property_), skipped, records_of(property_))


def counts(network: Network, property_: Property) -> Counts:
    """Return the cost of a network for a property."""
    outputs = [wire for group in property_.groups for wire in group.wires]
    return Counts(network.size, network.depth, half_operations(network, outputs))
