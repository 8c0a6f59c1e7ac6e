"""Catches constructions for the k largest values that are wrong, or cost more than they say."""

import itertools

import numpy as np
import pytest

from nsc.compiler.families import BLOCK_MERGES, FAMILIES, MERGES, cut_and_merged, selected
from nsc.compiler.network import Network
from nsc.compiler.optimize import smallest_first, top_k_candidates
from nsc.compiler.passes import half_operations
from nsc.compiler.verify import Property, Verdict, parse, verify
from nsc.errors import NetworkError


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_every_candidate_finds_the_k_largest(n):
    values = np.array(list(itertools.permutations(range(n)))[:: 1 if n < 8 else 7])
    for k in range(1, n + 1):
        candidates = top_k_candidates(n, k)
        assert len({candidate.name for candidate in candidates}) == len(candidates)
        cut = 1 + (f"top-{k}" in selected())
        assert len(candidates) == len(FAMILIES) - 2 + (len(BLOCK_MERGES) + cut) * (k < n)
        for candidate in candidates:
            assert (candidate.network.apply(values)[:, n - k :] == range(n - k, n)).all(), candidate.name


@pytest.mark.slow("proofs and searches are long")
@pytest.mark.parametrize(("n", "k"), [(44, 6), (33, 32)])
def test_candidates_of_any_size_are_proved(n, k):
    for candidate in top_k_candidates(n, k):
        assert verify(candidate.network, parse(f"top-{k}", n)).verdict is Verdict.PROVED
        comparators = candidate.network.comparators
        assert (comparators[:, 0] < comparators[:, 1]).all()


def minima_and_maxima(network, outputs):
    """Count the ends of comparators that the outputs depend on, from the last comparator back."""
    live, count = set(outputs), 0
    for ends in network.comparators[::-1].tolist():
        count += len(live.intersection(ends))
        if not live.isdisjoint(ends):
            live.update(ends)
    return count


@pytest.mark.parametrize(("n", "k"), [(100, 7), (40, 39)])
def test_the_first_candidate_has_the_fewest_half_operations(n, k):
    candidates = top_k_candidates(n, k)
    costs = [minima_and_maxima(candidate.network, range(n - k, n)) for candidate in candidates]
    assert [candidate.half_operations for candidate in candidates] == costs
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]


@pytest.mark.slow("proofs and searches are long")
def test_the_top_8_of_1024_take_fewer_than_blocks_of_8():
    by_name = {candidate.name: candidate for candidate in top_k_candidates(1024, 8)}
    tree, fold = (
        by_name["blocks of 8, tree of bitonic merges"],
        by_name["blocks of 8, left fold of bitonic merges"],
    )
    assert (tree.network.size, tree.network.depth) == (4972, 34)
    assert (fold.network.size, fold.live_wires) == (4972, 16)
    assert by_name["pruned bitonic"].network.size == 24068
    sorters = by_name["known sorters, cut and merged"]
    assert (sorters.network.size, sorters.half_operations, sorters.network.depth) == (4651, 8286, 36)
    selections = by_name["known selections, cut and merged"]
    assert (selections.network.size, selections.half_operations, selections.network.depth) == (4438, 7860, 37)
    assert verify(selections.network, parse("top-8", 1024)).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", MERGES)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_merges_keep_the_k_largest_of_two_lists(name, k):
    for p, q in itertools.product(range(1, k + 1), repeat=2):
        pairs, outputs = MERGES[name](range(p), range(p, p + q), k)
        property_ = parse(f"top-{len(outputs)}", p + q, outputs)
        runs = tuple(run for run in (tuple(range(p)), tuple(range(p, p + q))) if len(run) > 1)
        property_ = Property(property_.name, p + q, property_.groups, runs)
        assert verify(Network.from_comparators(p + q, pairs), property_).verdict is Verdict.PROVED
        assert len(outputs) == min(k, p + q)


@pytest.mark.parametrize(
    ("n", "k", "kinds"),
    [(130, 3, ("sort",)), (130, 6, ("sort", "top-6"))],
)
def test_known_networks_cut_and_merged_cost_no_more_than_blocks(n, k, kinds):
    pairs, outputs = cut_and_merged(n, k, kinds)
    network = Network.from_comparators(n, pairs)
    assert verify(network, parse(f"top-{k}", n, outputs)).verdict is Verdict.PROVED
    blocks = (make(n, k) for make in BLOCK_MERGES.values())
    costs = [half_operations(Network.from_comparators(n, block), ends) for block, ends in blocks]
    assert half_operations(network, outputs) <= min(costs)


@pytest.mark.slow("proofs and searches are long")
def test_the_lowest_ranks_cost_as_much_as_the_highest():
    lowest = smallest_first(parse("rank-0,1,2,3,4,5,6,7", 100))[0]
    assert half_operations(lowest, range(8)) == top_k_candidates(100, 8)[0].half_operations
    assert verify(lowest, parse("bottom-8", 100)).verdict is Verdict.PROVED
    eighth = smallest_first(parse("rank-7", 100))[0]
    assert half_operations(eighth, [7]) < half_operations(lowest, range(8))
    assert verify(eighth, parse("rank-7", 100)).verdict is Verdict.PROVED


@pytest.mark.parametrize(("n", "k"), [(0, 1), (4, 0), (4, 5), (-1, 1)])
def test_impossible_selections_are_refused(n, k):
    with pytest.raises(NetworkError):
        top_k_candidates(n, k)
