"""Catches a pass that changes what the outputs carry, or makes a network larger or deeper."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks, run, sorts_all

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.optimize import counts, optimize, remove_redundant
from nsc.compiler.passes import canonical, first_wires, live_halves, relayer, restrict, untangle
from nsc.compiler.verify import Budget, Verdict, parse, sort, verify
from nsc.compiler.verify.question import BudgetError
from nsc.errors import NetworkError

many = settings(max_examples=60)


def outputs_of(network, wires):
    vectors = np.array(list(itertools.product([0, 1], repeat=network.n)))
    return network.apply(vectors)[:, list(wires)]


def padded(n, extra, seed):
    """Return a sorting network with redundant comparators behind and inside it."""
    draw = random.Random(seed)
    pairs = FAMILIES["merge_exchange"](n).comparators.tolist()
    for _ in range(extra):
        lo, hi = sorted(draw.sample(range(n), 2))
        pairs.append([lo, hi])
    index = draw.randrange(len(pairs))
    return Network.from_comparators(n, [*pairs[:index], pairs[index], *pairs[index:]])


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


@many
@given(networks(wires=(1, 8)), st.data())
def test_restricting_keeps_the_outputs_of_its_wires(network, data):
    wires = data.draw(st.sets(st.integers(0, network.n - 1)))
    small = restrict(network, wires)
    assert small.size <= network.size
    assert small.depth <= network.depth
    assert (outputs_of(small, wires) == outputs_of(network, wires)).all()
    halves = live_halves(small, wires)
    assert halves.any(axis=1).all()  # to restrict again gains nothing
    assert restrict(small, wires) == small
    assert live_halves(network, wires).sum() == halves.sum()


@many
@given(networks(wires=(2, 8)), st.data())
def test_wires_of_a_group_may_only_exchange_their_values(network, data):
    wires = sorted(data.draw(st.sets(st.integers(0, network.n - 1), min_size=2)))
    small = restrict(network, wires, [wires])
    assert small.size <= restrict(network, wires).size
    actual, expected = outputs_of(small, wires), outputs_of(network, wires)
    assert (np.sort(actual, axis=1) == np.sort(expected, axis=1)).all()


def test_the_minimum_takes_a_tree_of_half_comparators():
    network = restrict(FAMILIES["merge_exchange"](16), [0])
    assert network.size == 15
    assert live_halves(network, [0]).tolist() == [[True, False]] * 15
    with pytest.raises(NetworkError, match="output 16 is outside 0 … 15"):
        restrict(network, [16])


@pytest.mark.parametrize(("name", "n"), [("bitonic", 11), ("pairwise", 8), ("best", 11)])
def test_the_first_wires_of_sorting_networks_sort(name, n):
    whole = FAMILIES[name](n)
    for fewer in range(1, n + 1):
        small = first_wires(whole, fewer)
        assert sorts_all(fewer, small.comparators.tolist())
        assert small.depth <= whole.depth
    assert small == relayer(untangle(whole).network)


@pytest.mark.parametrize("seed", range(0, 6, 2))
def test_redundant_comparators_are_removed_and_no_others(seed):
    n = 5 + seed
    network = padded(n, 6, seed)
    small = remove_redundant(network, sort(n), Budget())
    assert small.size <= network.size - 7
    assert sorts_all(n, small.comparators.tolist())
    for index in range(small.size):  # every comparator left exchanges some values
        less = Network.from_comparators(n, np.delete(small.comparators, index, axis=0))
        assert (outputs_of(less, range(n)) != outputs_of(small, range(n))).any()
    values = list(range(n))
    random.Random(seed).shuffle(values)
    assert run(small.comparators.tolist(), values) == run(network.comparators.tolist(), values)


def test_redundant_comparators_are_not_removed_without_a_proof():
    with pytest.raises(NetworkError, match="verify it first"):
        remove_redundant(Network.from_layers(3, [[(0, 1)]]), sort(3), Budget())
    with pytest.raises(BudgetError):
        remove_redundant(FAMILIES["bitonic"](32), sort(32), Budget(states=100))


@many
@given(networks(wires=(1, 8)), st.data())
def test_all_layerings_have_one_canonical_form(network, data):
    form = canonical(network)
    assert canonical(form) == form
    assert form.size == network.size
    assert form.depth <= network.depth
    spread = Network.from_layers(network.n, [[pair] for layer in network.layers() for pair in layer])
    assert canonical(spread).digest == form.digest
    values = data.draw(st.permutations(range(network.n)))
    assert run(form.comparators.tolist(), values) == run(network.comparators.tolist(), values)


@pytest.mark.parametrize("name", ["bitonic", "pairwise", "insertion", "best"])
@pytest.mark.parametrize(
    ("text", "presorted"),
    [("sort", ""), ("top-3", ""), ("bottom-2-set", ""), ("median", ""), ("rank-3", ""), ("sort", "0-4,5-9")],
)
def test_optimised_networks_keep_the_property_and_are_never_larger(name, text, presorted):
    network, property_ = FAMILIES[name](10), parse(text, 10, None, presorted)
    result = optimize(network, property_, Budget())
    assert verify(result.network, property_).verdict is Verdict.PROVED
    assert result.before == counts(network, property_)
    assert result.after == counts(result.network, property_)
    assert result.skipped is None
    for name_ in ("size", "depth", "half_operations"):
        assert getattr(result.after, name_) <= getattr(result.before, name_)
    if name != "best" and (text != "sort" or presorted):
        assert result.after.size < result.before.size


def test_sorting_presorted_halves_becomes_merging():
    result = optimize(FAMILIES["odd_even_merge"](16), parse("merge-8+8", 16), Budget())
    assert (result.after.size, result.after.depth) == (25, 4)  # Knuth 5.3.4: Batcher's merge of 8 and 8


def test_beyond_the_budget_only_redundant_comparators_stay():
    property_ = parse("top-2", 32)
    result = optimize(FAMILIES["pairwise"](32), property_, Budget(states=32))
    assert "reachable sets ended at" in result.skipped
    assert result.after.size < result.before.size
    assert verify(result.network, property_).verdict is Verdict.PROVED
