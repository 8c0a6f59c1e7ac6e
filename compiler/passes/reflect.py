"""Reflect: the network upside down, which treats the largest values as the original the smallest."""

from __future__ import annotations

from nsc.compiler.network import Network


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
