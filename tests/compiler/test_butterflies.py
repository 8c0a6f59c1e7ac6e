"""Catches comparators that butterflies lose, run twice or out of order, or leave single where layers meet."""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest
from hypothesis import given
from strategies import networks

from nsc.compiler.describe import describe
from nsc.compiler.network import Network
from nsc.compiler.relaxed.butterflies import Pattern, butterflies, in_butterflies
from nsc.compiler.schedule import schedule


def by_wire(comparators):
    """Return for each wire the slots of its comparators, in order."""
    order = defaultdict(list)
    for wires, slot in comparators:
        for wire in wires:
            order[wire].append(slot)
    return order


@given(networks(wires=(1, 24), most=80))
def test_butterflies_run_the_comparators_of_a_shape(network: Network) -> None:
    for shape in schedule(network).shapes:
        found = [
            pair for each in butterflies(shape) for pair in zip(each.comparators(), each.slots, strict=True)
        ]
        wanted = [((a, b), slot) for slot, (a, b, _) in enumerate(shape)]
        assert by_wire(found) == by_wire(wanted)
        assert {slot: set(wires) for wires, slot in found} == {slot: set(wires) for wires, slot in wanted}


def all_butterflies(network):
    return [each for codelet in schedule(network).codelets for each in butterflies(codelet.shape)]


@given(networks(wires=(1, 24), most=80))
def test_a_schedule_in_butterflies_runs_them_one_behind_the_other(network: Network) -> None:
    before = schedule(network)
    behind, joined = in_butterflies(before)
    assert [codelet.wires for codelet in behind.codelets] == [codelet.wires for codelet in before.codelets]
    assert joined.keys() == set(behind.shapes)
    for shape, found in joined.items():
        assert [slot for each in found for slot in each.slots] == list(range(len(shape)))
        pairs = [tuple(sorted(pair)) for each in found for pair in each.comparators()]
        assert pairs == [(a, b) for a, b, _ in shape]


@pytest.mark.parametrize(
    ("pattern", "pairs"),
    [
        (Pattern.SINGLE, [(0, 1)]),
        (Pattern.FUNNEL, [(0, 1), (2, 3), (1, 2)]),
        (Pattern.FUNNEL, [(0, 3), (1, 2), (1, 3)]),
        (Pattern.FAN, [(1, 2), (0, 1), (2, 3)]),
        (Pattern.FAN, [(0, 3), (1, 3), (0, 2)]),
        (Pattern.CROSS, [(0, 1), (2, 3), (0, 2), (1, 3)]),
        (Pattern.CROSS, [(0, 3), (1, 2), (1, 3), (0, 2)]),
    ],
)
def test_comparators_of_two_layers_are_joined(pattern: Pattern, pairs: list[tuple[int, int]]) -> None:
    (found,) = all_butterflies(Network.from_comparators(4, pairs))
    assert found.pattern is pattern
    assert sorted(tuple(sorted(pair)) for pair in found.comparators()) == sorted(pairs)


@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 1), (0, 1), (0, 1), (0, 1)],
        [(0, 1), (1, 2), (0, 1)],
        [(0, 1), (0, 2), (1, 2)],
        [(0, 1), (2, 3), (0, 1), (2, 3)],
    ],
)
def test_comparators_that_do_not_join_stay_single(pairs: list[tuple[int, int]]) -> None:
    found = all_butterflies(Network.from_comparators(4, pairs))
    assert {each.pattern for each in found} == {Pattern.SINGLE}


@pytest.mark.parametrize(
    ("name", "n", "counts"),
    [
        ("bitonic", 4, {Pattern.CROSS: 1, Pattern.SINGLE: 2}),
        ("bitonic", 16, {Pattern.CROSS: 20}),
        ("bitonic", 32, {Pattern.CROSS: 56, Pattern.SINGLE: 16}),
        ("odd_even", 4, {Pattern.FUNNEL: 2}),
        ("odd_even", 6, {Pattern.FUNNEL: 2, Pattern.FAN: 1, Pattern.SINGLE: 6}),
    ],
)
def test_layers_are_joined_in_pairs(name: str, n: int, counts: dict[Pattern, int]) -> None:
    found = all_butterflies(describe(name, n))
    assert Counter(each.pattern for each in found) == counts
