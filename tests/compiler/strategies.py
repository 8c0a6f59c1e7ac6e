"""Networks for the compiler's tests, and a check of sorting that shares no code with the compiler."""

from __future__ import annotations

import itertools
from functools import lru_cache

import numpy as np
from hypothesis import strategies as st

from nsc.compiler.network import Network


@st.composite
def layer_lists(draw, n, most=8):
    """Draw layers of disjoint comparators in either direction, some of them empty."""
    layers = []
    for _ in range(draw(st.integers(0, most))):
        wires = draw(st.permutations(range(n)))
        pairs = list(zip(wires[::2], wires[1::2], strict=False))
        layers.append(pairs[: draw(st.integers(0, len(pairs)))])
    return layers


@st.composite
def networks(draw, wires=(1, 9), most=8):
    """Draw a network; few of them sort."""
    n = draw(st.integers(*wires))
    return Network.from_layers(n, draw(layer_lists(n, most)))


@lru_cache(maxsize=2)
def _zero_one_inputs(n):
    """Return all 2^n 0-1 inputs, a row of packed bits per wire; zeros pad the last byte."""
    index = np.arange(1 << n)
    return np.stack([np.packbits(index >> wire & 1 == 1) for wire in range(n)])


def sorts_all(n, comparators):
    """Return, by brute force, whether comparators (lo, hi), in order, sort all 0-1 inputs of n wires."""
    state = _zero_one_inputs(n).copy()
    for lo, hi in comparators:
        state[lo], state[hi] = state[lo] & state[hi], state[lo] | state[hi]
    return not (state[:-1] & ~state[1:]).any()


def run(comparators, values):
    """Return the values behind the comparators."""
    values = list(values)
    for lo, hi in comparators:
        values[lo], values[hi] = min(values[lo], values[hi]), max(values[lo], values[hi])
    return values


def is_unsorted(values):
    return any(a > b for a, b in itertools.pairwise(values))


def tangled(network, rng):
    """Return a network with reversed comparators that sorts iff `network`, which is in standard form, does.

    Random comparators are reversed, which exchanges their wires in all later layers. The wires are then
    renamed to return the outputs to their places.
    """
    place = np.arange(network.n)
    layers = []
    for layer in network.layers():
        pairs = place[layer]
        for k in np.flatnonzero(rng.random(len(pairs)) < 0.5):
            pairs[k] = pairs[k][::-1]
            place[layer[k]] = place[layer[k][::-1]]
        layers.append(pairs)
    rank = np.argsort(place)
    return Network.from_layers(network.n, [rank[layer] for layer in layers])
