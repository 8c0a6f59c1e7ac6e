"""Proving a network that is named in any way, without torch."""

from __future__ import annotations

from collections.abc import Collection

from nsc.compiler.describe import Named, describe
from nsc.compiler.verify import Proof, Property, parse
from nsc.compiler.verify import verify as verify_network
from nsc.join.building import MAX_MEMORY, budget_of

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
        network, n, format, index_base: what names the network, as in `compile`.
        property: "sort", or another as `nsc verify --property` takes it, such as "median" or "top-8".
        methods: names of methods to go by alone; None: all.
        max_memory: MB that the method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: about 20 a method.

    Raises:
        NetworkError: what names no network.
        PropertyError: no such property, one of another number of wires, or a limit that is none.

    >>> verify("bitonic", 8).sentence(), verify([(0, 1)], 3).sentence()
    ('sorts', 'does not sort')
    """
    budget = budget_of(max_memory, time_limit)
    named = describe(network, n, format, index_base)
    wanted = parse(property, named.n) if isinstance(property, str) else property
    return verify_network(named, wanted, budget, methods)
