"""Catches merged networks that do not sort, or cost more than is known."""

import random

import pytest

from nsc.compiler.families import best, family_network, known, merge, shallowest
from nsc.compiler.families.best import merge_size
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_first
from nsc.compiler.passes import live_halves
from nsc.compiler.verify import Verdict, parse, verify
from nsc.errors import NetworkError

pytestmark = pytest.mark.slow("proofs and searches are long")

SORTERS = [network for networks in known("sort").values() for network in networks]


def test_published_sizes():
    sizes = {2: 1, 5: 9, 8: 19, 9: 25, 12: 39, 16: 60, 17: 71, 24: 120, 32: 185, 48: 346, 64: 521}
    assert {n: best(n).size for n in sizes} == sizes
    depths = {5: 5, 9: 7, 12: 8, 16: 9, 17: 10, 24: 12, 32: 14, 48: 18, 64: 20}
    assert {n: shallowest(n).depth for n in depths} == depths
    medians = {3: 3, 5: 7, 7: 13, 9: 19, 25: 85, 49: 231}
    assert {n: known("median")[n][0].size for n in medians} == medians


def test_changed_sorters_are_settled():
    """One comparator is removed, reversed or moved to another wire; counterexamples come out unsorted."""
    draw = random.Random(0)
    for _ in range(120):
        network = draw.choice(SORTERS[2:])
        pairs = network.comparators.tolist()
        index = draw.randrange(len(pairs))
        lo, hi = pairs[index]
        other = draw.choice([wire for wire in range(network.n) if wire not in (lo, hi)])
        pairs[index : index + 1] = draw.choice([[], [[hi, lo]], [[lo, other]], [[other, hi]]])
        changed = Network.from_comparators(network.n, pairs)
        proof = verify(changed)
        assert proof.verdict is not Verdict.UNPROVED, changed
        if proof.verdict is Verdict.REFUTED:
            assert (changed.apply(proof.counterexample) != sorted(proof.counterexample)).any()


@pytest.mark.parametrize("n", [65, 300])
def test_larger_networks_are_merged_from_known_ones(n):
    """SAT proves the parts of 64 wires; reachable sets prove the networks merged from them."""
    merged = {"best": best(n), "shallowest": shallowest(n)}
    for network in merged.values():
        assert network.n == n
        assert (network.comparators[:, 0] < network.comparators[:, 1]).all()
        assert verify(network).verdict is Verdict.PROVED
    merge_exchange = family_network("merge_exchange", n)
    assert merged["best"].size == min(m.size for m in (*merged.values(), merge_exchange))
    assert merged["shallowest"].depth == min(m.depth for m in (*merged.values(), merge_exchange))


@pytest.mark.parametrize(("p", "q"), [(0, 3), (1, 5), (7, 3), (6, 11)])
def test_merges_of_any_two_lengths(p, q):
    pairs, ascending = merge(range(p), range(p, p + q))
    assert len(pairs) == merge_size(p, q) == merge_size(q, p)
    network = Network.from_comparators(p + q, pairs)
    property_ = parse(f"merge-{p}+{q}", p + q, ascending) if p else parse("sort", q, None, f"0-{q - 1}")
    assert verify(network, property_).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("text", "n", "size", "half_operations"),
    [
        ("sort", 16, 60, 120),
        ("top-1", 100, 99, 99),
        ("top-3", 8, 14, 23),
        ("rank-4", 9, 19, 30),
        ("rank-12", 25, 85, 146),
        ("rank-3,4", 8, 17, 28),
        ("rank-3,7", 16, 54, 94),
    ],
)
def test_the_smallest_network_for_some_ranks(text, n, size, half_operations):
    property_ = parse(text, n)
    network = smallest_first(property_)[0]
    assert verify(network, property_).verdict is Verdict.PROVED
    assert network.size <= size
    assert live_halves(network, property_.ranks).sum() <= half_operations


def test_the_smallest_network_has_its_outputs_where_their_ranks_are():
    with pytest.raises(NetworkError, match="leave wires out"):
        smallest_first(parse("top-1", 4, [0]))
