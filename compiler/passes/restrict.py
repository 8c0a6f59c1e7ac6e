"""Restrict: what is needed for some of the outputs alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from nsc.compiler.network import Network
from nsc.errors import NetworkError


def restrict(network: Network, outputs: Iterable[int]) -> Network:
    """Return the network without the comparators that none of the given wires depends on at the end.

    The values of these outputs stay the same, bit for bit; other wires may carry anything. Never more
    comparators or layers. Cost: O(n·depth).

    Raises:
        NetworkError: a wire that the network does not have.

    >>> restrict(Network.from_layers(4, [[(0, 1), (2, 3)], [(1, 2)]]), [0]).size
    1
    """
    live = np.zeros(network.n, dtype=bool)
    for wire in outputs:
        if not 0 <= wire < network.n:
            raise NetworkError(f"output {wire} is outside 0 … {network.n - 1} (n = {network.n})")
        live[wire] = True
    layers = []
    for layer in reversed(list(network.layers())):
        needed = layer[live[layer].any(axis=1)]
        live[needed] = True
        layers.append(needed)
    return Network.from_layers(network.n, layers[::-1])
