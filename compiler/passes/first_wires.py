"""First wires: the part of a network that works where all other wires carry +∞."""

from __future__ import annotations

from nsc.compiler.network import Network
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.untangle import untangle


def first_wires(network: Network, count: int) -> Network:
    """Return a network on the first wires of one that sorts, which gives what that gives on them.

    In standard form a comparator leaves +∞ on the higher wire, where it is. So the comparators that join the
    first wires alone do all that is done, and they sort. Relaxed values, P and gradients are the same up to
    rounding. Cost: O(n·depth).

    Args:
        network: it sorts.
        count: how many wires, in 1 … n.

    Source: Knuth 5.3.4, exercise 16, for the standard form.

    >>> first_wires(Network.from_layers(3, [[(0, 1)], [(1, 2)], [(0, 1)]]), 2).size
    2
    """
    layers = untangle(network).network.layers()
    return relayer(Network.from_layers(count, [layer[(layer < count).all(axis=1)] for layer in layers]))
