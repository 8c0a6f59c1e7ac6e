import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.families import FAMILIES
from nsc.compiler.formats.progressions import progressions_of
from nsc.compiler.network import Network


def expanded(progressions):
    return [[lo + k * step, hi + k * step] for lo, hi, step, count in progressions for k in range(count)]


@settings(max_examples=150)
@given(networks(wires=(1, 24)))
def test_progressions_expand_to_the_layers_in_order(network):
    layers = list(progressions_of(network))
    assert [expanded(progressions) for progressions in layers] == [
        layer.tolist() for layer in network.layers()
    ]
    assert all(step >= 1 and count >= 1 for progressions in layers for _, _, step, count in progressions)


@settings(max_examples=100)
@given(st.integers(0, 5), st.integers(1, 4), st.integers(1, 8), st.booleans())
def test_comparators_at_equal_distances_are_one_progression(start, step, count, descending):
    distance = count * step
    pairs = [(start + k * step, start + k * step + distance) for k in range(count)]
    if descending:
        pairs = [pair[::-1] for pair in pairs]
    (progressions,) = progressions_of(Network.from_layers(start + 2 * distance, [pairs]))
    assert len(progressions) == 1
    assert expanded(progressions) == [list(pair) for pair in pairs]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [2, 16, 33, 100])
def test_families_expand_exactly(name, n):
    network = FAMILIES[name](n)
    assert [expanded(progressions) for progressions in progressions_of(network)] == [
        layer.tolist() for layer in network.layers()
    ]


def test_classic_families_have_few_progressions():
    assert all(len(progressions) == 1 for progressions in progressions_of(FAMILIES["odd_even"](64)))
    assert sum(len(progressions) for progressions in progressions_of(FAMILIES["bitonic"](1024))) < 28160 / 5
