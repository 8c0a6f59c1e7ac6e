"""The table of families: functions from n to a sorting network, with what is known of their size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

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


class Growth(Enum):
    """How the size of a family's networks grows with the number of wires."""

    LOG_SQUARED = "n·log² n"
    QUADRATIC = "n²"


@dataclass(frozen=True)
class Family:
    """A family of sorting networks. Called with n, it returns its network on n wires.

    Attributes:
        function: the function from n to the network; its docstring names the source.
        growth: how the size grows with n. Networks of n² comparators are no candidates for selections.
    """

    function: Callable[[int], Network]
    growth: Growth

    def __call__(self, n: int) -> Network:
        return self.function(n)

    @property
    def name(self) -> str:
        """The family's name, as users state it."""
        return self.function.__name__

    @property
    def summary(self) -> str:
        """One line that says what the networks are."""
        return (self.function.__doc__ or "").partition("\n")[0]


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(odd_even, Growth.QUADRATIC),
        Family(bitonic, Growth.LOG_SQUARED),
        Family(odd_even_merge, Growth.LOG_SQUARED),
        Family(merge_exchange, Growth.LOG_SQUARED),
        Family(pairwise, Growth.LOG_SQUARED),
        Family(insertion, Growth.QUADRATIC),
        Family(best, Growth.LOG_SQUARED),
        Family(shallowest, Growth.LOG_SQUARED),
    )
}


def family_network(name: str, n: int) -> Network:
    """Return the network of the named family on n wires.

    Raises:
        NetworkError: an unknown family (the message lists the known ones), or n out of range.
    """
    if name not in FAMILIES:
        raise NetworkError(f"no family is called {name!r}; known: {', '.join(sorted(FAMILIES))}")
    return FAMILIES[name](n)
