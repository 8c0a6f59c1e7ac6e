"""Redundant comparators: those that exact results do not need."""

from __future__ import annotations

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.verify.property import Property
from nsc.compiler.verify.question import Budget, Question, sorted_groups
from nsc.compiler.verify.reachable import search
from nsc.errors import NetworkError


def remove_redundant(network: Network, property_: Property, budget: Budget) -> Network:
    """Return the network without the comparators that exchange nothing for inputs that the property needs.

    A wire of rank r needs the 0-1 inputs of r and r + 1 zeros. For these the other comparators exchange the
    same values as before, so the network keeps the property, which it must have. Exact results stay the same.
    Soft values change, since a relaxed comparator also mixes values that are in order. Never more comparators
    or layers. Cost: that of the proof by reachable sets.

    Raises:
        NetworkError: the network does not have the property.
        BudgetError: more patterns than the budget allows.

    Source: a comparator (i, j) can go iff no reachable 0-1 pattern has 1 on i and 0 on j in front of it.
    """
    behind, ranks = sorted_groups(property_)
    whole = Network.from_layers(network.n, [*network.layers(), *([pair] for pair in behind)])
    used = np.zeros(whole.size, dtype=bool)
    if search(Question(whole, ranks, property_.presorted, budget), used).failing is not None:
        raise NetworkError(f"the network does not have the property {property_.name}: verify it first")
    kept = used[: network.size]
    layers = [
        network.comparators[start:end][kept[start:end]]
        for start, end in zip(network.layer_starts, network.layer_starts[1:], strict=False)
    ]
    return Network.from_layers(network.n, layers)
