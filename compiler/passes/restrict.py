"""Restrict: the comparators that some of the outputs depend on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.errors import NetworkError


def restrict(network: Network, outputs: Iterable[int], together: Sequence[Sequence[int]] = ()) -> Network:
    """Return the network without the comparators that none of some outputs depends on.

    The values of these outputs stay the same, bit for bit, except that wires of a group in `together` may
    exchange their values. Other wires may carry anything. Never more comparators or layers. Cost:
    O(n·depth).

    Args:
        network: any network.
        outputs: the wires that matter.
        together: groups of these wires that may carry their values in any order.

    Raises:
        NetworkError: a wire that the network does not have.

    >>> restrict(Network.from_layers(4, [[(0, 1), (2, 3)], [(1, 2)]]), [0]).size
    1
    """
    live = _live(network, outputs)
    # From the end back: until a comparator joins a wire of a group to another wire, comparators inside the
    # group only exchange values that may be exchanged.
    group = np.full(network.n, -1)
    for number, wires in enumerate(together):
        group[list(wires)] = number
    layers = []
    for layer in reversed(list(network.layers())):
        lo, hi = layer[:, 0], layer[:, 1]
        idle = (group[lo] >= 0) & (group[lo] == group[hi])
        needed = layer[live[layer].any(axis=1) & ~idle]
        live[needed] = True
        group[needed] = -1
        layers.append(needed)
    return Network.from_layers(network.n, layers[::-1])


def live_halves(network: Network, outputs: Iterable[int]) -> npt.NDArray[np.bool_]:
    """Return (size, 2): of each comparator whether its minimum and its maximum are needed for some outputs.

    Raises:
        NetworkError: a wire that the network does not have.
    """
    live = _live(network, outputs)
    halves: list[npt.NDArray[np.bool_]] = []
    for layer in reversed(list(network.layers())):
        needed = live[layer]
        halves.append(needed)
        live[layer[needed.any(axis=1)]] = True
    return np.concatenate([np.empty((0, 2), bool), *halves[::-1]]).astype(bool)


def half_operations(network: Network, outputs: Iterable[int]) -> int:
    """Return how many minima and maxima some outputs depend on.

    Raises:
        NetworkError: a wire that the network does not have.
    """
    return int(np.count_nonzero(live_halves(network, outputs)))


def _live(network: Network, outputs: Iterable[int]) -> npt.NDArray[np.bool_]:
    live = np.zeros(network.n, dtype=bool)
    for wire in outputs:
        if not 0 <= wire < network.n:
            raise NetworkError(f"output {wire} is outside 0 … {network.n - 1} (n = {network.n})")
        live[wire] = True
    return live
