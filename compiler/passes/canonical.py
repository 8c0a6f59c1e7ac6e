"""Canonical form: one network for all that differ only in how they are written down."""

from __future__ import annotations

from nsc.compiler.network import Network
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.untangle import untangle


def canonical(network: Network) -> Network:
    """Return the network with every comparator as early as can be, and untangled if no output moves.

    Networks of the same comparators in the same order on every wire have the same canonical form,
    hence the same digest, whatever their layers; so has a network whose reversed comparators were
    turned by exchanging wires. Outputs carry the same values. Never more comparators or layers.

    >>> canonical(Network.from_layers(4, [[(0, 1)], [(2, 3)]])).depth
    1
    """
    if (network.comparators[:, 0] > network.comparators[:, 1]).any():
        standard, outputs = untangle(network)
        network = standard if (outputs == range(network.n)).all() else network
    return relayer(network)
