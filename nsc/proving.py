"""Proving a network that is named in any way, without torch."""

from __future__ import annotations

from collections.abc import Collection

from nsc.building import build_library
from nsc.compiler.describe import Named, describe
from nsc.compiler.verify import Budget, Proof, Property, parse
from nsc.compiler.verify import verify as verify_network

__all__ = ["verify"]


def verify(
    network: Named,
    n: int | None = None,
    *,
    property: str | Property = "sort",
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
    format: str | None = None,
    index_base: int | None = None,
) -> Proof:
    """Decide whether a network sorts, or has another property, for every input.

    Args:
        network, n, format, index_base: what names the network, as in `compile`.
        property: "sort", or another as `nsc verify --property` takes it, such as "median" or "top-8".
        budget: what may be spent; None: what the command line spends.
        methods: names of methods to go by alone; None: all.

    Raises:
        NetworkError: what names no network.
        PropertyError: no such property, or one of another number of wires.

    >>> verify("bitonic", 8).sentence(), verify([(0, 1)], 3).sentence()
    ('sorts', 'does not sort')
    """
    named = describe(network, n, format, index_base)
    wanted = parse(property, named.n) if isinstance(property, str) else property
    return verify_network(named, wanted, Budget(build=build_library) if budget is None else budget, methods)
