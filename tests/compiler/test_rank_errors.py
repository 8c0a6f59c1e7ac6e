"""Catches a share or a distance that differs from what all orders give, and a sample that is not named."""

import itertools
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks, run

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, OutputErrors, RankErrors, parse, rank_errors, sort

MEDIANS_OF_3 = [(0, 1), (1, 2), (0, 1), (3, 4), (4, 5), (3, 4), (6, 7), (7, 8), (6, 7)]
MEDIAN_OF_MEDIANS = Network.from_comparators(9, [*MEDIANS_OF_3, (1, 4), (4, 7), (1, 4)])


def by_brute_force(network, property_):
    """Return for each rank of a property the share of orders for each rank that its output carries."""
    n, comparators = network.n, network.comparators.tolist()
    orders = list(itertools.permutations(range(n)))
    times = {}
    for order in orders:
        values = list(order)
        for wires in property_.presorted:
            for wire, value in zip(wires, sorted(values[wire] for wire in wires), strict=True):
                values[wire] = value
        out = run(comparators, values)
        for group in property_.groups:
            for k, value in enumerate(sorted(out[wire] for wire in group.wires)):
                found = times.setdefault(group.first + k, {})
                found[value] = found.get(value, 0) + 1
    return {
        rank: {value: Fraction(count, len(orders)) for value, count in found.items()}
        for rank, found in times.items()
    }


@settings(max_examples=40, deadline=None)
@given(networks(wires=(1, 6)), st.data())
def test_the_shares_are_what_all_orders_give(network, data):
    n = network.n
    name = data.draw(st.sampled_from(["sort", "median", f"top-{(n + 1) // 2}-set", f"rank-{n // 2}"]))
    runs = data.draw(st.sampled_from(["", *[f"{lo}-{hi}" for lo, hi in itertools.combinations(range(n), 2)]]))
    property_ = parse(name, n, presorted=runs)
    found = rank_errors(network, property_)
    assert found.orders is None
    assert {each.rank: each.shares for each in found.outputs} == by_brute_force(network, property_)


def test_seven_values_in_all_orders():
    pairs = [(0, 6), (1, 5), (2, 4), (3, 0), (1, 3), (5, 6), (2, 3), (3, 4)]
    network = Network.from_comparators(7, pairs)
    found = rank_errors(network, sort(7))
    assert {each.rank: each.shares for each in found.outputs} == by_brute_force(network, sort(7))


def test_the_median_of_medians_is_known():
    (found,) = rank_errors(MEDIAN_OF_MEDIANS, parse("median", 9)).outputs
    assert (found.right, found.most_off) == (Fraction(4, 7), 1)
    assert found.shares == {3: Fraction(3, 14), 4: Fraction(4, 7), 5: Fraction(3, 14)}
    medians = Network.from_comparators(9, MEDIANS_OF_3)
    wires = "rank-3,4,5 on wires 1,4,7"
    lines = rank_errors(medians, parse(wires, 9)).lines()
    assert sorted(lines)[1].startswith("rank 4 on wire 4: right for ")
    assert nsc.rank_errors("best", 9).lines() == ["right for all orders"]


@pytest.mark.parametrize("n", [25, 64])
def test_counts_of_many_orders_are_exact(n):
    """Each order has each rank on one wire. Shares of 64 values have counts of 64 bits."""
    layers = list(FAMILIES["bitonic"](n).layers())
    outputs = rank_errors(Network.from_layers(n, layers[1:]), sort(n)).outputs
    for rank in range(n):
        assert sum(each.shares.get(rank, 0) for each in outputs) == 1
        assert sum(outputs[rank].shares.values()) == 1
        assert all(share > 0 for share in outputs[rank].shares.values())
    assert {each.most_off for each in outputs} == {0, 1}


def test_a_sample_says_that_it_is_one():
    few = Budget(memory=1 << 10)
    exact, sample = (rank_errors(MEDIAN_OF_MEDIANS, parse("median", 9), budget) for budget in (None, few))
    assert sample.orders == 1 << 14
    assert sample == rank_errors(MEDIAN_OF_MEDIANS, parse("median", 9), few)
    assert abs(sample.outputs[0].right - exact.outputs[0].right) < Fraction(1, 50)
    assert sample.lines()[0].endswith(" % of 16,384 random orders, among these up to 1 rank off")
    assert sample.facts()["orders"] == 16384
    assert "shares" not in sample.facts()["outputs"][0]
    whole = FAMILIES["odd_even_merge"](65)
    assert rank_errors(whole, sort(65)).lines() == ["right for all 16,384 random orders"]
    presorted = rank_errors(Network.from_layers(65, []), parse("sort", 65, presorted="0-63"))
    assert presorted.outputs[0].most_off == 1


def test_the_outputs_that_are_wrong_most_often_are_listed():
    lines = rank_errors(Network.from_layers(12, []), sort(12)).lines()
    assert len(lines) == 9
    assert lines[0] == "rank 0 on wire 0: right for 8.3 % of orders, at most 11 ranks off"
    assert lines[-1] == "4 more ranks: right for 8.3 % of orders or more"
    pairs = parse("median", 4)
    nothing = Network.from_layers(4, [])
    assert rank_errors(nothing, pairs).lines()[0].startswith("rank 1 on wires 1, 2: right for ")


def test_a_share_is_not_rounded_to_none_or_all():
    chain = [(0, wire) for wire in range(1, 31)]
    (line,) = rank_errors(Network.from_comparators(32, chain), parse("bottom-1", 32)).lines()
    assert line == "rank 0 on wire 0: right for 96.9 % of orders, at most 1 rank off"
    rare = Fraction(1, 10**6)
    outputs = [OutputErrors((0,), 0, {0: right, 1: 1 - right}) for right in (1 - rare, rare, Fraction(0))]
    shown = [line.split(" for ")[1].split(" of ")[0] for line in RankErrors(tuple(outputs)).lines()]
    assert shown == ["0.0 %", "less than 0.1 %", "more than 99.9 %"]
