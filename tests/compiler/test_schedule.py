from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.families.classic import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.passes.restrict import live_halves, restrict
from nsc.compiler.schedule.codelets import LONGEST, WIDEST, Needed, cut
from nsc.compiler.schedule.ir import SLOT_ALIGNMENT, schedule


def check(network):
    """Every comparator once, on each wire in the network's order, in codelets that fit."""
    due = [[] for _ in range(network.n)]
    for lo, hi in network.comparators.tolist():
        for wire in (lo, hi):
            due[wire].append((lo, hi))
    for codelet in (codelets := cut(network)):
        assert len(codelet.wires) <= WIDEST
        assert len(codelet.shape) <= LONGEST
        assert list(codelet.wires) == sorted(set(codelet.wires))
        places = {place for pair in codelet.shape for place in (pair.a, pair.b)}
        assert places == set(range(len(codelet.wires)))
        assert codelet.turned < 1 << len(codelet.shape)
        for index, (a, b, _) in enumerate(codelet.shape):
            assert a < b
            lower, higher = codelet.wires[a], codelet.wires[b]
            pair = (higher, lower) if codelet.turned >> index & 1 else (lower, higher)
            for wire in pair:
                assert due[wire].pop(0) == pair
    assert not any(due)
    return codelets


@settings(deadline=None, max_examples=60)
@given(networks(wires=(1, 40), most=300))
def test_codelets_respect_the_comparator_graph(network):
    check(network)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 3, 16, 17, 100, 256])
def test_codelets_of_the_families(name, n):
    check(FAMILIES[name](n))


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [
        ("bitonic", 64, 2.6),
        ("bitonic", 256, 2.2),
        ("bitonic", 1024, 2.1),
        ("odd_even", 64, 3.7),
        ("odd_even", 128, 3.8),
        ("odd_even_merge", 256, 1.3),
        ("pairwise", 128, 1.4),
        ("insertion", 64, 4.4),
    ],
)
def test_comparators_per_wire_loaded(name, n, least):
    """A layer at a time it is one half."""
    network = FAMILIES[name](n)
    assert network.size / sum(len(c.wires) for c in cut(network)) >= least


def test_a_long_network_on_few_wires_is_cut():
    network = Network.from_comparators(3, [(0, 1), (1, 2)] * 500)
    codelets = check(network)
    assert len(codelets) == -(-1000 // LONGEST)


def test_regular_networks_have_few_shapes():
    assert len(schedule(FAMILIES["bitonic"](1024)).shapes) <= 6
    assert len(schedule(FAMILIES["odd_even"](256)).shapes) <= 30


@settings(deadline=None, max_examples=50)
@given(networks(wires=(1, 20), most=60))
def test_a_schedule_adds_up(network):
    made = schedule(network)
    assert sum(len(c.shape) for c in made.codelets) == network.size
    assert made.loads == sum(len(c.wires) for c in made.codelets)
    assert made.slots % SLOT_ALIGNMENT == 0
    assert network.size <= made.slots < network.size + SLOT_ALIGNMENT * (len(made.codelets) + 1)
    counts = [sum(c.shape == shape for c in made.codelets) for shape in made.shapes]
    assert counts == sorted(counts, reverse=True)
    assert all(np.array(counts) > 0)


@settings(deadline=None, max_examples=50)
@given(networks(wires=(1, 20), most=60), st.data())
def test_half_comparators_are_those_of_which_one_wire_is_needed(network, data):
    outputs = data.draw(st.lists(st.integers(0, network.n - 1), min_size=1, unique=True))
    restricted = restrict(network, outputs)
    made = schedule(restricted, tuple(outputs))
    halves = live_halves(restricted, outputs)
    found = Counter()
    for codelet in made.codelets:
        for index, (a, b, needed) in enumerate(codelet.shape):
            turned = codelet.turned >> index & 1
            lo, hi = (b, a) if turned else (a, b)
            ends = {Needed.BOTH: (True, True), Needed.FIRST: (not turned, bool(turned))}.get(
                needed, (bool(turned), not turned)
            )
            found[codelet.wires[lo], codelet.wires[hi], ends] += 1
    due = zip(restricted.comparators.tolist(), halves.tolist(), strict=True)
    assert found == Counter((lo, hi, tuple(ends)) for (lo, hi), ends in due)
    assert made.halved == (not halves.all())


def test_a_network_without_comparators_has_an_empty_schedule():
    made = schedule(Network.from_layers(3, []))
    assert (made.codelets, made.shapes, made.slots) == ((), (), 0)
