"""Untangle: the standard form of a network."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network


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

    Left to right, a comparator (i, j) with i > j becomes (j, i) and i and j change places in all
    that follows. The network sorts iff `outputs` is the identity and the standard form sorts.
    Relaxed values, P and gradients are the same up to rounding, since a relaxed comparator is
    symmetric in its two wires. Cost: O(n·depth).

    Source: Floyd; Knuth 5.3.4, exercise 16.
    """
    place = np.arange(network.n)
    layers = []
    for layer in network.layers():
        pairs = place[layer]
        reversed_ = pairs[:, 0] > pairs[:, 1]
        exchanged = layer[reversed_]
        place[exchanged] = place[exchanged[:, ::-1]]
        layers.append(np.sort(pairs, axis=1))
    return Untangled(Network.from_layers(network.n, layers), place)
