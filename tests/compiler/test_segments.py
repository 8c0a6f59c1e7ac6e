"""Catches segments and calls that do not run a schedule's codelets in its order, or that repeat code."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import networks

import nsc
from nsc.compiler.exact import segments
from nsc.compiler.exact.segments import StraightLine, is_straight, straight_line
from nsc.compiler.families import FAMILIES
from nsc.compiler.passes import restrict
from nsc.compiler.schedule import Codelet, Schedule, schedule


@pytest.fixture(scope="module")
def few():
    """Code for 40 minima and maxima, in functions of 8 comparators."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(segments, "STRAIGHT_OPERATIONS", 40)
        patch.setattr(segments, "SEGMENT_COMPARATORS", 8)
        yield


def codelets_run(whole: Schedule, code: StraightLine) -> list[Codelet]:
    """Return the codelets that the calls run: of segments, and those whose comparators are in the table."""
    ends = list(accumulate(len(codelet.shape) for codelet in whole.codelets))
    run: list[Codelet] = []
    place = 0
    for call in code.calls:
        if call.segment is None:
            assert call.first == place
            run += [
                c for c, end in zip(whole.codelets, ends, strict=True) if place < end <= place + call.size
            ]
        else:
            for codelet in code.segments[call.segment]:
                run.append(replace(codelet, wires=tuple(wire + call.first for wire in codelet.wires)))
        place += call.size
        assert place in ends
    return run


def operations(code: StraightLine) -> int:
    """Return the minima and maxima in the code."""
    shapes = [codelet.shape for segment in code.segments for codelet in segment]
    return sum(1 if step.needed else 2 for shape in shapes for step in shape)


@given(networks(wires=(1, 40), most=60), st.data())
def test_calls_run_the_codelets_of_a_schedule_in_order(few, network, data):
    outputs = data.draw(st.none() | st.lists(st.integers(0, network.n - 1), min_size=1, unique=True))
    kept = network if outputs is None else restrict(network, outputs)
    whole = schedule(kept, None if outputs is None else tuple(outputs))
    code = straight_line(whole)
    assert codelets_run(whole, code) == list(whole.codelets)
    assert operations(code) <= 40
    assert len(set(code.segments)) == len(code.segments)
    if is_straight(whole):
        assert all(call.segment is not None for call in code.calls)
        assert all(sum(len(c.shape) for c in segment) <= 8 or len(segment) == 1 for segment in code.segments)


def test_the_blocks_of_a_tournament_are_one_segment(few):
    """Sixteen sorters of four values, of four codelets each at most."""
    sorter = FAMILIES["odd_even_merge"](4)
    blocks = [
        [(lo + 4 * block, hi + 4 * block) for block in range(16) for lo, hi in layer.tolist()]
        for layer in sorter.layers()
    ]
    whole = schedule(nsc.Network.from_layers(64, blocks))
    code = straight_line(whole)
    assert not is_straight(whole)
    assert all(call.segment is not None for call in code.calls)
    assert len(code.segments) <= 4


def test_a_network_of_no_comparators_has_no_code():
    assert straight_line(schedule(nsc.Network.from_layers(3, []))) == StraightLine((), ())
