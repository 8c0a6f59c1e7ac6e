"""Catches rounds that threads cannot run at once, codelets that a light cone misses, spreads without code."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.relaxed.levels import TILE_COLUMNS, levels
from nsc.compiler.relaxed.levels import rounds as rounds_of
from nsc.compiler.schedule import schedule, slots_of
from nsc.errors import LoweringError


def cut(network):
    return levels(schedule(network), arrays=3)


def in_slots(codelets):
    """Yield the comparators with their slots in the order of the routing, codelet by codelet."""
    first = 0
    for codelet in codelets:
        for index, (a, b, _) in enumerate(codelet.shape):
            ends = codelet.wires[a], codelet.wires[b]
            yield (*(ends[::-1] if codelet.flips >> index & 1 else ends), first + index)
        first += slots_of(codelet)


@given(networks(), st.sampled_from([1, 3, 512]))
def test_rounds_run_the_network(network, threads):
    """A round has distinct wires and at most a comparator per thread; rounds give the network's values."""
    codelets = cut(network).schedule.codelets
    rounds = rounds_of(network.n, codelets, threads)
    assert sorted(c for round_ in rounds for c in round_) == sorted(in_slots(codelets))
    for round_ in rounds:
        wires = [wire for c in round_ for wire in (c.lo, c.hi)]
        assert len(set(wires)) == len(wires)
        assert 0 < len(round_) <= threads
        assert [c.slot for c in round_] == sorted(c.slot for c in round_)
    values = np.random.default_rng(0).integers(0, 9, network.n)
    in_rounds = Network.from_layers(network.n, [[(c.lo, c.hi) for c in round_] for round_ in rounds])
    assert (in_rounds.apply(values) == network.apply(values)).all()


@pytest.mark.parametrize(
    "network",
    [family_network("bitonic", 128), family_network("merge_exchange", 70), Network.from_layers(1, [])],
)
def test_light_cones_list_the_codelets_that_columns_reach(network):
    in_levels = cut(network)
    codelets = in_levels.schedule.codelets
    assert len(in_levels.cones) == -(-network.n // TILE_COLUMNS) + 1
    for block, cone in enumerate(in_levels.cones):
        first = block * TILE_COLUMNS
        is_last = block == len(in_levels.cones) - 1
        reached = set(range(network.n)) if is_last else set(range(first, first + TILE_COLUMNS))
        expected = []
        for number, codelet in enumerate(codelets):
            if reached & set(codelet.wires):
                reached |= set(codelet.wires)
                expected.append(number)
        assert [number for level in cone for number in level] == expected
        for level, end in zip(cone, in_levels.ends, strict=True):
            assert all(number < end for number in level)


def test_fewer_straight_lines_have_code_for_fewer_shapes():
    scheduled = schedule(family_network("odd_even_merge", 256))
    few, none = (levels(scheduled, arrays=3, straight_line=most) for most in (100, 0))
    first = len(few.straight_shapes)
    assert 0 < sum(map(len, few.straight_shapes)) <= 100 < sum(map(len, scheduled.shapes[: first + 1]))
    assert few.straight_shapes == scheduled.shapes[:first]
    assert none.straight_shapes == ()


def test_a_network_that_makes_too_much_text_is_refused():
    levels(schedule(family_network("bitonic", 32)), arrays=3, most_entries=600)
    with pytest.raises(
        LoweringError,
        match=r"128 wires, 1,792 comparators.* table of 1,792 entries, at most 600 .* targets=\('cpu',\)",
    ):
        levels(schedule(family_network("bitonic", 128)), arrays=3, most_entries=600)
