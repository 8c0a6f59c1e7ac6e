"""Catches a last merge that is taken apart though it is none, or though the halves meet in front of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nsc
from nsc.compiler.families import FAMILIES, family_network
from nsc.compiler.network import Network
from nsc.compiler.relaxed.tables import FEWEST_MERGED, merge_layers
from nsc.compiler.schedule import schedule


def found_in(network: Network) -> int:
    return merge_layers(schedule(network))


def paths(n, layers):
    """Return how many paths lead from each wire to each wire, through some layers."""
    counts = np.eye(n, dtype=np.int64)
    for layer in layers:
        for a, b in layer:
            counts[[a, b]] = counts[a] + counts[b]
    return counts


def parts(network, levels):
    layers = [*network.layers()]
    return layers[:-levels], layers[-levels:]


@pytest.mark.parametrize("n", [64, 128, 256])
def test_a_bitonic_sorter_ends_in_a_merge(n):
    network = family_network("bitonic", n)
    levels = found_in(network)
    assert levels == n.bit_length() - 1
    front, merge = parts(network, levels)
    assert (paths(n, merge) == 1).all()
    assert not paths(n, front)[: n // 2, n // 2 :].any()
    assert not paths(n, front)[n // 2 :, : n // 2].any()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("n", [2, 32, 64, 100])
def test_others_end_in_none(family, n):
    expected = 6 if (family, n) == ("bitonic", 64) else 0
    assert found_in(family_network(family, n)) == expected


def test_a_selection_is_taken_whole():
    network = family_network("bitonic", 64)
    assert merge_layers(schedule(network, outputs=tuple(range(64)))) == 0


@settings(max_examples=30)
@given(data=st.data())
def test_what_is_found_is_a_merge_whatever_is_in_front_and_whichever_way_it_sorts(data):
    """Each half has some layers on all of its wires, and the merge sorts either way."""
    n, half = FEWEST_MERGED, FEWEST_MERGED // 2
    layers = []
    for _ in range(data.draw(st.integers(0, 4))):
        halves = [data.draw(st.permutations(range(start, start + half))) for start in (0, half)]
        layers.append([pair for wires in halves for pair in zip(wires[::2], wires[1::2], strict=True)])
    distances = [half >> level for level in range(n.bit_length() - 1)]
    for distance in distances:
        flips = data.draw(st.integers(0, 2**n - 1))
        pairs = [(w, w + distance) for w in range(n) if not w & distance]
        layers.append([pair[::-1] if flips >> pair[0] & 1 else pair for pair in pairs])
    assert found_in(Network.from_layers(n, layers)) == len(distances)
    change = data.draw(st.sampled_from(("leave out", "cross", "order")))
    if change == "leave out":
        layer = data.draw(st.sampled_from(layers[-len(distances) :]))
        layer.pop(data.draw(st.integers(0, len(layer) - 1)))
    elif change == "cross":
        layers.insert(len(layers) - len(distances), [(w, half + w) for w in range(half)])
        layers.insert(len(layers) - len(distances), [(w, w + 1) for w in range(0, n, 2)])
    else:
        place = len(layers) - data.draw(st.integers(2, len(distances)))
        layers[place], layers[place + 1] = layers[place + 1], layers[place]
    assert found_in(Network.from_layers(n, layers)) == 0


def test_a_package_says_where_its_merge_begins():
    """The tables and the kernel's text have the same number."""
    files = nsc.compile("bitonic", 64).kernel.files
    assert '"merge_layers": 6' in files["tables.json"]
    assert "merge_layers = 6;" in next(text for name, text in files.items() if name.endswith("64.cpp"))
