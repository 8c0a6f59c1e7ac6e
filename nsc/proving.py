"""Proving a network, without torch: a family, a file, a Network or lists."""

from __future__ import annotations

from collections.abc import Collection

from nsc.compiler.describe import Named, describe
from nsc.compiler.verify import Proof, Property, parse
from nsc.compiler.verify import verify as verify_network
from nsc.join.budget import MAX_MEMORY, budget_of

__all__ = ["verify"]


def verify(
    network: Named,
    n: int | None = None,
    *,
    property: str | Property = "sort",
    methods: Collection[str] | None = None,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
) -> Proof:
    """Decide whether a network sorts, or has another property, for every input.

    Args:
        network, n, format, index_base: the network, as in `compile`.
        property: "sort", or another as `nsc verify --property` takes it, such as "median" or "top-8".
        methods: names of methods to use alone; None: all.
        max_memory: MB that the method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: about 20 a method.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: no such property, a property of another number of wires, an unknown method, or a limit
            that is no number of its kind.

    >>> verify("bitonic", 8).sentence(), verify([(0, 1)], 3).sentence()
    ('sorts', 'does not sort')
    """
    budget = budget_of(max_memory, time_limit)
    described = describe(network, n, format, index_base)
    property_ = parse(property, described.n) if isinstance(property, str) else property
    return verify_network(described, property_, budget, methods)
