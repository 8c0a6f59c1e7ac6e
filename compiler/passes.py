"""Passes: functions from a network to a network; each says which property it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.errors import NetworkError


def relayer(network: Network) -> Network:
    """Return the same comparators, each in the earliest layer that the order on its wires allows.

    If they already are, the network itself is returned.

    >>> relayer(Network.from_layers(4, [[(0, 1)], [(2, 3)]])).depth
    1
    """
    return network if _is_early(network) else Network.from_comparators(network.n, network.comparators)


def _is_early(network: Network) -> bool:
    """Say whether every comparator has a wire that the layer before it touches."""
    touched = np.full(network.n, -1)
    for index, layer in enumerate(network.layers()):
        if (touched[layer].max(axis=1) != index - 1).any():
            return False
        touched[layer] = index
    return True


def is_tangled(network: Network) -> bool:
    """Return whether a network has reversed comparators, which leave the minimum on the higher wire."""
    return bool((network.comparators[:, 0] > network.comparators[:, 1]).any())


class Untangled(NamedTuple):
    """A network in standard form, and where it leaves the outputs.

    Attributes:
        network: every comparator has lo < hi; same layers.
        outputs: (n,) integers; wire outputs[w] of `network` carries what wire w of the original
            carries at the end.
    """

    network: Network
    outputs: npt.NDArray[np.int64]


def untangle(network: Network) -> Untangled:
    """Return the network in standard form: every comparator leaves its minimum on the lower wire.

    Left to right, a comparator (i, j) with i > j becomes (j, i), and i and j change places in all
    later comparators. The network sorts iff `outputs` is the identity and the standard form sorts.
    Relaxed values, P and gradients are the same up to rounding, since a relaxed comparator is
    symmetric in its two wires. Cost: O(n·depth).

    Source: Floyd; Knuth 5.3.4, exercise 16.
    """
    place = np.arange(network.n)
    if not is_tangled(network):
        return Untangled(network, place)
    layers = []
    for layer in network.layers():
        pairs = place[layer]
        reversed_ = pairs[:, 0] > pairs[:, 1]
        exchanged = layer[reversed_]
        place[exchanged] = place[exchanged[:, ::-1]]
        layers.append(np.sort(pairs, axis=1))
    return Untangled(Network.from_layers(network.n, layers), place)


def canonical(network: Network) -> Network:
    """Return the network with every comparator as early as can be, and untangled if no output moves.

    Networks of the same comparators in the same order on every wire have the same canonical form,
    hence the same digest, whatever their layers; so has a network whose reversed comparators were
    turned by exchanging wires. Outputs carry the same values. Never more comparators or layers.

    >>> canonical(Network.from_layers(4, [[(0, 1)], [(2, 3)]])).depth
    1
    """
    standard, outputs = untangle(network)
    return relayer(standard if (outputs == range(network.n)).all() else network)


def reflect(network: Network) -> Network:
    """Return the network upside down: wire w becomes n - 1 - w, and minimum and maximum change places.

    A wire that carried rank r now lies at n - 1 - w and carries rank n - 1 - r, so a sorting network
    stays one, and standard form stays standard form. Same size, same depth; reflecting twice is the
    identity.

    >>> reflect(Network.from_layers(3, [[(0, 1)]])).comparators.tolist()
    [[1, 2]]
    """
    turned = network.n - 1 - network.comparators[:, ::-1]
    return Network(network.n, turned, network.layer_starts)


def first_wires(network: Network, count: int) -> Network:
    """Return a network on the first wires of a sorting network, which does the same on these wires.

    Let the other wires carry +∞. In standard form a comparator leaves +∞ on the higher wire, where it already
    is. So only comparators between two of the first wires change anything, and they alone sort. Relaxed
    values, P and gradients are the same up to rounding. Never more comparators or layers. Cost: O(n·depth).

    Args:
        network: it sorts.
        count: how many wires, in 1 … n.

    Source: Knuth 5.3.4, exercise 16, for the standard form.

    >>> first_wires(Network.from_layers(3, [[(0, 1)], [(1, 2)], [(0, 1)]]), 2).size
    2
    """
    layers = untangle(network).network.layers()
    return relayer(Network.from_layers(count, [layer[(layer < count).all(axis=1)] for layer in layers]))


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
    """Return (size, 2): for each comparator, whether some outputs need its minimum and its maximum.

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
