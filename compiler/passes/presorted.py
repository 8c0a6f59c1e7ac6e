"""Presorted: fewer comparators where some inputs are already in order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from nsc.compiler.network import Network
from nsc.errors import NetworkError


def presorted(network: Network, runs: Iterable[Sequence[int]]) -> Network:
    """Return the network without the comparators that presorted inputs make needless.

    A comparator is removed if the runs, or the comparators before it, already put the smaller value on the
    wire of its minimum. Exact values stay the same on every wire, for all inputs whose runs ascend; soft
    values change. Never more comparators or layers. The pass knows the order of pairs of wires alone, so
    some comparators that exchange nothing stay; `remove_redundant` finds all of them, within a budget.
    Cost: O(n²) per layer, bytes and steps.

    Args:
        network: any network.
        runs: wires whose inputs ascend, each run in that order; disjoint.

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
