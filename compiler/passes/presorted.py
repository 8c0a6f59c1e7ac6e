"""Presorted: what is left of a network whose inputs are partly in order already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nsc.compiler.network import Network
from nsc.errors import NetworkError


def presorted(network: Network, runs: Iterable[Sequence[int]]) -> Network:
    """Return the network without the comparators whose inputs are in order for that reason.

    A comparator goes where minimum and maximum are known to lie as it leaves them: from the runs, or
    from the comparators before it. So exact values stay the same on every wire, for all inputs whose
    runs ascend; soft values change. Never more comparators or layers. What is known is an order of pairs
    of wires, so some comparators that exchange nothing stay: `remove_redundant` finds all, where it can.
    Cost: O(n²) per layer, bytes and steps.

    Args:
        network: any network.
        runs: wires whose inputs ascend in the order given; disjoint.

    Raises:
        NetworkError: a wire that the network does not have, or that is named twice.

    >>> presorted(Network.from_layers(4, [[(0, 1), (2, 3)], [(0, 2), (1, 3)], [(1, 2)]]), [(0, 1)]).size
    4
    """
    at_most = np.eye(network.n, dtype=bool)  # [a, b]: the value on a is at most that on b, for every input
    named: set[int] = set()
    for run in runs:
        for wire in run:
            if not 0 <= wire < network.n or wire in named:
                why = "named twice" if wire in named else f"outside 0 … {network.n - 1} (n = {network.n})"
                raise NetworkError(f"presorted wire {wire} is {why}")
            named.add(wire)
        at_most[np.ix_(run, run)] = np.triu(np.ones((len(run), len(run)), dtype=bool))
    layers = []
    for layer in network.layers():
        kept = layer[~at_most[layer[:, 0], layer[:, 1]]]
        layers.append(kept)
        lo, hi = kept[:, 0], kept[:, 1]
        # A minimum is at most what either value was at most, and at least what both were at least.
        at_most[lo], at_most[hi] = at_most[lo] | at_most[hi], at_most[lo] & at_most[hi]
        at_most[:, lo], at_most[:, hi] = at_most[:, lo] & at_most[:, hi], at_most[:, lo] | at_most[:, hi]
        at_most[hi, hi] = True
    return Network.from_layers(network.n, layers)
