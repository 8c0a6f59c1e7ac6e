"""Relayer: every comparator as early as it can be."""

from __future__ import annotations

from nsc.compiler.network import Network


def relayer(network: Network) -> Network:
    """Return the same comparators, each in the earliest layer that the order on its wires allows.

    >>> relayer(Network.from_layers(4, [[(0, 1)], [(2, 3)]])).depth
    1
    """
    return Network.from_comparators(network.n, network.comparators)
