"""Truncate: a sorting network on fewer wires."""

from __future__ import annotations

import numpy as np

from nsc.arguments import integer
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count


def truncate(network: Network, n: int) -> Network:
    """Return the network on its first n wires, without the comparators that touch another one.

    The other wires hold +inf, which stays where it is, because every comparator leaves its maximum on the
    higher wire. So a network that sorts still does. Never more comparators or layers.

    Raises:
        NetworkError: n out of range, or a reversed comparator, with which +inf would not stay (the
            directional bitonic network on 5 of 8 wires does not sort): untangle the network first.

    >>> truncate(Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]]), 3).size
    3
    """
    n = integer("n", n, NetworkError)
    if not 1 <= n <= network.n:
        raise NetworkError(
            f"a network on {count(network.n, 'wire')} can be truncated to 1 … {network.n}, not to {n}"
        )
    if (network.comparators[:, 0] > network.comparators[:, 1]).any():
        raise NetworkError("a network with reversed comparators cannot be truncated: untangle it first")
    kept = (network.comparators < n).all(axis=1)
    sizes = [int(part.sum()) for part in np.split(kept, network.layer_starts[1:-1])]
    return Network(
        n, network.comparators[kept], np.cumsum([0, *sizes]) if network.depth else np.zeros(1, int)
    )
