import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks, run, sorts_all, tangled

from nsc.compiler.families import FAMILIES
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.untangle import untangle

many = settings(max_examples=150)


@many
@given(networks(), st.data())
def test_untangled_wires_carry_the_original_values(network, data):
    standard, outputs = untangle(network)
    assert (standard.comparators[:, 0] < standard.comparators[:, 1]).all()
    assert sorted(outputs.tolist()) == list(range(network.n))
    assert (standard.size, standard.depth) == (network.size, network.depth)
    values = data.draw(st.lists(st.integers(-3, 3), min_size=network.n, max_size=network.n))
    untangled = run(standard.comparators.tolist(), values)
    assert run(network.comparators.tolist(), values) == [untangled[wire] for wire in outputs]


@many
@given(networks(wires=(1, 6), most=12))
def test_a_network_sorts_iff_untangling_ends_in_place_and_the_standard_form_sorts(network):
    standard, outputs = untangle(network)
    in_place = outputs.tolist() == list(range(network.n))
    assert sorts_all(network.n, network.comparators.tolist()) == (
        in_place and sorts_all(network.n, standard.comparators.tolist())
    )


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [2, 5, 8, 11])
def test_untangling_undoes_tangling(name, n):
    standard = untangle(FAMILIES[name](n)).network
    network = tangled(standard, np.random.default_rng(n))
    assert sorts_all(n, network.comparators.tolist())
    untangled, outputs = untangle(network)
    assert outputs.tolist() == list(range(n))
    assert sorts_all(n, untangled.comparators.tolist())


def test_the_standard_form_stays_as_it_is():
    network = FAMILIES["merge_exchange"](13)
    standard, outputs = untangle(network)
    assert standard == network
    assert outputs.tolist() == list(range(13))


@many
@given(networks(), st.data())
def test_relayering_keeps_behaviour_and_never_deepens(network, data):
    early = relayer(network)
    assert early.size == network.size
    assert early.depth <= network.depth
    assert relayer(early) == early
    values = data.draw(st.permutations(range(network.n)))
    assert run(early.comparators.tolist(), values) == run(network.comparators.tolist(), values)
    for wire in range(network.n):  # the order on each wire is the same
        assert _touching(early, wire) == _touching(network, wire)


def _touching(network, wire):
    return [pair for pair in network.comparators.tolist() if wire in pair]
