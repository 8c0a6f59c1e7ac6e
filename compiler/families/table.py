"""The table of families: functions from n to a sorting network."""

from __future__ import annotations

from collections.abc import Callable

from nsc.compiler.families.best import best, shallowest
from nsc.compiler.families.classic import (
    bitonic,
    insertion,
    merge_exchange,
    odd_even,
    odd_even_merge,
    pairwise,
)
from nsc.compiler.network import Network
from nsc.errors import NetworkError

# By name: the function from n to the network on n wires; its docstring says what it is, and names the source.
FAMILIES: dict[str, Callable[[int], Network]] = {
    family.__name__: family
    for family in (
        odd_even,
        bitonic,
        odd_even_merge,
        merge_exchange,
        pairwise,
        insertion,
        best,
        shallowest,
    )
}

# Families of n² comparators, which are no candidates for selections; the others have n·log² n.
QUADRATIC = frozenset({"odd_even", "insertion"})


def summary_of(name: str) -> str:
    """Return one line that says what a family's networks are."""
    return (FAMILIES[name].__doc__ or "").partition("\n")[0]


def family_network(name: str, n: int) -> Network:
    """Return the network of the named family on n wires.

    Raises:
        NetworkError: an unknown family (the message lists the known ones), or n out of range.
    """
    if name not in FAMILIES:
        raise NetworkError(f"no family is called {name!r}; known: {', '.join(sorted(FAMILIES))}")
    return FAMILIES[name](n)
