"""Butterflies: every comparator once, in the order of the network on every wire, joined where layers meet."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import accumulate

import pytest
from hypothesis import given
from strategies import networks

from nsc.compiler.describe import describe
from nsc.compiler.network import Network
from nsc.compiler.schedule import butterflies, schedule, slots_of


def by_wire(comparators):
    """Return for each wire the slots of its comparators, in order."""
    order = defaultdict(list)
    for wires, slot in comparators:
        for wire in wires:
            order[wire].append(slot)
    return order


@given(networks(wires=(1, 24), most=80))
def test_butterflies_run_the_network(network: Network) -> None:
    codelets = schedule(network).codelets
    first_slots = accumulate(map(slots_of, codelets), initial=0)
    wanted = [
        (wires, first + place)
        for codelet, first in zip(codelets, first_slots, strict=False)
        for place, wires in enumerate(codelet.comparators())
    ]
    found = [
        pair for each in butterflies(codelets) for pair in zip(each.comparators(), each.slots, strict=True)
    ]
    assert by_wire(found) == by_wire(wanted)
    assert {slot: set(wires) for wires, slot in found} == {slot: set(wires) for wires, slot in wanted}


@pytest.mark.parametrize(
    ("name", "n", "counts"),
    [
        ("bitonic", 4, {4: 1, 1: 2}),
        ("bitonic", 16, {4: 20}),
        ("bitonic", 32, {4: 56, 1: 16}),
        ("odd_even", 4, {3: 2}),
    ],
)
def test_layers_are_joined_in_pairs(name: str, n: int, counts: dict[int, int]) -> None:
    found = butterflies(schedule(describe(name, n)).codelets)
    assert Counter(len(each.slots) for each in found) == counts
