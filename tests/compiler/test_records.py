"""Catches a bound that a known network beats, and records that the lists do not have."""

import pytest

from nsc.compiler.families import FAMILIES, known, least_depth, least_size, stated_depth, stated_size
from nsc.compiler.optimize import optimize, records_of
from nsc.compiler.verify import Budget, parse


def test_no_known_network_beats_a_bound():
    for n, networks in known("sort").items():
        for network in networks:
            assert network.size >= stated_size(n) >= least_size(n)
            assert network.depth >= stated_depth(n) >= least_depth(n)
    for name in ("best", "shallowest", "odd_even_merge"):
        for n in (*range(1, 70), 100, 129, 512, 1024):
            network = FAMILIES[name](n)
            assert network.size >= least_size(n)
            assert network.depth >= least_depth(n)


def test_bounds_are_those_of_the_literature():
    """Optimal sizes up to 12 wires, depths up to 17; Van Voorhis' sizes; sizes by a layer's comparators."""
    best = {
        n: (min(m.size for m in found), min(m.depth for m in found)) for n, found in known("sort").items()
    }
    assert [least_size(n) for n in range(2, 13)] == [best[n][0] for n in range(2, 13)]
    assert [least_depth(n) for n in range(2, 18)] == [best[n][1] for n in range(2, 18)]
    assert [least_size(n) for n in (13, 14, 15, 16, 20, 32, 64)] == [43, 47, 51, 55, 75, 135, 327]
    assert [least_depth(n) for n in (18, 52, 53, 54, 64, 79, 1024)] == [10, 10, 11, 11, 11, 12, 19]


def test_stated_bounds_are_those_of_the_list():
    """Of 2025-04-21: sizes, and the depths that they need, from 39 wires on one layer more."""
    assert [stated_size(n) for n in (12, 13, 16, 32, 64, 65)] == [39, 44, 57, 147, 361, None]
    assert [n for n in range(2, 65) if stated_depth(n) > stated_depth(n - 1)] == [
        2,
        3,
        5,
        7,
        9,
        11,
        13,
        17,
        39,
        55,
    ]
    assert stated_depth(65) is None
    # A network on n + 1 wires has one on n wires and the comparators on the way of the largest value.
    for n in range(1, 64):
        assert stated_size(n + 1) >= stated_size(n) + n.bit_length()


@pytest.mark.parametrize("bound", [least_size, least_depth])
def test_bounds_grow_with_the_wires(bound):
    values = [bound(n) for n in range(1, 200)]
    assert values == sorted(values)
    assert bound(1 << 16) > bound(1 << 10)


def test_a_layer_is_as_full_as_a_bound_says():
    for n in range(2, 300):
        assert least_size(n) <= least_depth(n) * (n // 2)
        assert 2 ** least_depth(n) >= n


@pytest.mark.parametrize(
    ("property_", "n", "size", "depth", "least"),
    [
        ("sort", 9, 25, 7, (25, 7)),
        ("sort", 16, 60, 9, (55, 9)),
        ("median", 9, 19, 7, (None, None)),
        ("rank-4", 9, 19, 7, (None, None)),
        ("median", 10, 22, 6, (None, None)),
    ],
)
def test_records_are_those_of_the_lists(property_, n, size, depth, least):
    records = records_of(parse(property_, n))
    assert (records.size, records.depth) == (size, depth)
    assert (records.least_size, records.least_depth) == least


@pytest.mark.parametrize(
    ("property_", "n", "presorted"),
    [("top-2", 9, ""), ("rank-3", 9, ""), ("merge-4+4", 8, ""), ("sort", 8, "0-3"), ("sort", 4097, "")],
)
def test_other_properties_have_no_records(property_, n, presorted):
    assert records_of(parse(property_, n, presorted=presorted)) is None


def test_what_optimize_leaves_is_compared_with_the_best():
    found = optimize(FAMILIES["odd_even"](9), parse("sort", 9), Budget())
    assert found.network.size == 36
    assert found.known.words == "best known on 9 wires: 25 comparators; 7 layers; lower bounds: 25 and 7"
    assert "25 comparators; 7 layers; lower bounds: 25 and 7" in found._repr_html_()


def test_records_tell_a_stated_bound_from_a_proved_one():
    known_13 = "45 comparators; 9 layers; lower bounds: 43 and 9 proved, the published list states 44 and 9"
    assert records_of(parse("sort", 13)).words == f"best known on 13 wires: {known_13}"
    assert "states" not in records_of(parse("sort", 65)).words
