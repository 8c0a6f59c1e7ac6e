"""Catches codelets that run another network, that no kernel can hold, or that load too often."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import networks

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves, restrict
from nsc.compiler.schedule import LONGEST, SLOT_ALIGNMENT, Codelet, Needed, PlacedComparator, schedule
from nsc.errors import LoweringError


def test_a_schedule_runs_the_network():
    """The constructor checks the comparators of codelets; this test runs them on numbers."""
    draw = np.random.default_rng(0)
    for name, n in itertools.product(FAMILIES, [1, 3, 17, 100]):
        network = FAMILIES[name](n)
        pairs = [pair for codelet in schedule(network).codelets for pair in codelet.comparators()]
        values = draw.permutation(n)
        assert (Network.from_comparators(n, pairs).apply(values) == network.apply(values)).all(), (name, n)


def with_codelet(whole, index, **changes):
    codelets = list(whole.codelets)
    codelets[index] = replace(codelets[index], **changes)
    return replace(whole, codelets=tuple(codelets))


@pytest.mark.parametrize(
    "network", [FAMILIES["bitonic"](64), FAMILIES["odd_even_merge"](40)], ids=["bitonic 64", "merge 40"]
)
def test_a_schedule_of_another_network_is_refused(network):
    whole = schedule(network)
    first, second, *others, last = whole.codelets
    with pytest.raises(LoweringError, match=rf"{network.counts}; its schedule has \d[\d,]* comparators"):
        replace(whole, codelets=whole.codelets[:-1])
    moved = (*first.wires[:-1], max(first.wires) + 1)
    assert moved[-1] < network.n
    wire = {"wires": moved}
    flips = {"flips": first.flips ^ 1}
    (a, b, _), *rest = first.shape
    half = {"shape": (PlacedComparator(a, b, Needed.FIRST), *rest)}
    next_on_wire = next(k for k in range(len(first.shape)) if set(first.shape[k][:2]) & {a, b} and k)
    swapped = list(first.shape)
    swapped[0], swapped[next_on_wire] = swapped[next_on_wire], swapped[0]
    broken = [
        lambda: replace(whole, codelets=(last, second, *others, first)),
        lambda: with_codelet(whole, 0, **wire),
        lambda: with_codelet(whole, 0, **flips),
        lambda: with_codelet(whole, 0, **half),
        lambda: with_codelet(whole, 0, shape=tuple(swapped)),
    ]
    for build in broken:
        with pytest.raises(LoweringError, match=r"does not run comparator \(\d+, \d+\) where"):
            build()


def test_codelets_in_any_order_that_the_wires_allow():
    """Codelets that share no wire may change places."""
    whole = schedule(Network.from_comparators(40, [(0, 1), (20, 21), (39, 38)]))
    assert len(whole.codelets) == 3
    assert replace(whole, codelets=whole.codelets[::-1]).slots == whole.slots


def test_halves_that_the_outputs_do_not_need_are_refused():
    network = restrict(FAMILIES["bitonic"](8), [0, 1])
    whole = schedule(network, (0, 1))
    assert whole.halved
    for outputs in ((0,), (0, 1, 7), None):
        with pytest.raises(LoweringError, match="not with the halves that are needed"):
            replace(whole, outputs=outputs)
    for outputs in ((0, 0), (0, 8), (-1,)):
        with pytest.raises(LoweringError, match=r"wires of 0 … 7, each once, got \("):
            replace(whole, outputs=outputs)
    with pytest.raises(LoweringError, match=r"no output depends on comparator \(\d, \d\): restrict"):
        schedule(FAMILIES["bitonic"](8), (0, 1))


@pytest.mark.parametrize(
    ("codelet", "message"),
    [
        ({"wires": range(17), "pairs": [(w, w + 1) for w in range(16)]}, "at most 16 wires"),
        ({"wires": [0, 1], "pairs": [(0, 1)] * 129}, "128 comparators, got 2 wires and 129 comparators"),
        ({"wires": [1, 0], "pairs": [(0, 1)]}, r"must ascend, got \(1, 0\)"),
        ({"wires": [3, 3], "pairs": [(0, 1)]}, r"must ascend, got \(3, 3\)"),
        ({"wires": [0, 1], "pairs": [(1, 0)]}, "a < b"),
        ({"wires": [0, 1, 2], "pairs": [(0, 1)]}, "touch the places 0 … 2 of"),
        ({"wires": [0, 1], "pairs": [(0, 2)]}, "touch the places 0 … 1"),
        ({"wires": [0, 1], "pairs": [(0, 1)], "flips": 2}, "a bit for each, got 0x2"),
    ],
)
def test_codelets_that_no_kernel_can_run(codelet, message):
    shape = tuple(PlacedComparator(a, b) for a, b in codelet["pairs"])
    with pytest.raises(LoweringError, match=message):
        Codelet(tuple(codelet["wires"]), shape, codelet.get("flips", 0))


@pytest.mark.parametrize(
    ("name", "n", "least"),
    [
        ("bitonic", 256, 2.2),
        ("odd_even", 128, 3.8),
        ("odd_even_merge", 256, 1.3),
        ("insertion", 64, 4.4),
    ],
)
def test_comparators_per_wire_loaded(name, n, least):
    """A schedule of one layer at a time has one half."""
    network = FAMILIES[name](n)
    assert network.size / schedule(network).loads >= least


def test_a_long_network_on_few_wires_is_cut():
    network = Network.from_comparators(3, [(0, 1), (1, 2)] * 500)
    assert len(schedule(network).codelets) == -(-1000 // LONGEST)


def test_regular_networks_have_few_shapes():
    assert len(schedule(FAMILIES["bitonic"](512)).shapes) <= 6
    assert len(schedule(FAMILIES["odd_even"](256)).shapes) <= 30


@pytest.mark.slow("networks are large")
@settings(max_examples=50)
@given(networks(wires=(1, 40), most=300))
def test_a_schedule_adds_up(network):
    """The constructor accepts the codelets of every kind of graph."""
    whole = schedule(network)
    assert whole.loads == sum(len(c.wires) for c in whole.codelets)
    assert whole.slots % SLOT_ALIGNMENT == 0
    assert network.size <= whole.slots < network.size + SLOT_ALIGNMENT * (len(whole.codelets) + 1)
    counts = [sum(c.shape == shape for c in whole.codelets) for shape in whole.shapes]
    assert counts == sorted(counts, reverse=True)
    assert all(np.array(counts) > 0)


@pytest.mark.slow("networks are large")
@settings(max_examples=50)
@given(networks(wires=(1, 20), most=60), st.data())
def test_comparators_with_one_needed_wire_are_halves(network, data):
    outputs = data.draw(st.lists(st.integers(0, network.n - 1), min_size=1, unique=True))
    restricted = restrict(network, outputs)
    whole = schedule(restricted, tuple(outputs))
    halves = live_halves(restricted, outputs)
    actual = Counter()
    for codelet in whole.codelets:
        for index, (a, b, needed) in enumerate(codelet.shape):
            flips = codelet.flips >> index & 1
            lo, hi = (b, a) if flips else (a, b)
            ends = {Needed.BOTH: (True, True), Needed.FIRST: (not flips, bool(flips))}.get(
                needed, (bool(flips), not flips)
            )
            actual[codelet.wires[lo], codelet.wires[hi], ends] += 1
    expected = zip(restricted.comparators.tolist(), halves.tolist(), strict=True)
    assert actual == Counter((lo, hi, tuple(ends)) for (lo, hi), ends in expected)
    assert whole.halved == (not halves.all())


def test_a_network_without_comparators_has_an_empty_schedule():
    whole = schedule(Network.from_layers(3, []))
    assert (whole.codelets, whole.shapes, whole.slots) == ((), (), 0)
