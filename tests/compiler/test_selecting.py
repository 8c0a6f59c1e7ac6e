"""Constructions that find the k largest values: proved, counted, and compared."""

import itertools

import numpy as np
import pytest

from nsc.compiler.families import FAMILIES
from nsc.compiler.selecting import COMBINATIONS, MERGES, top_k_candidates
from nsc.compiler.verify import Verdict, parse, verify
from nsc.errors import NetworkError


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 9])
def test_every_candidate_finds_the_k_largest(n):
    values = np.array(list(itertools.permutations(range(n)))[:: 1 if n < 8 else 37])
    for k in range(1, n + 1):
        made = top_k_candidates(n, k)
        assert len({candidate.name for candidate in made}) == len(made)
        assert len(made) == len(FAMILIES) - 2 + len(COMBINATIONS) * len(MERGES) * (k < n)
        for candidate in made:
            assert (candidate.network.apply(values)[:, n - k :] == range(n - k, n)).all(), candidate.name


@pytest.mark.parametrize(("n", "k"), [(37, 5), (100, 7), (40, 9), (33, 32), (200, 1)])
def test_candidates_of_any_size_are_proved(n, k):
    for candidate in top_k_candidates(n, k):
        assert verify(candidate.network, parse(f"top-{k}", n)).verdict is Verdict.PROVED
        comparators = candidate.network.comparators
        assert (comparators[:, 0] < comparators[:, 1]).all()


def test_the_best_is_first_and_half_operations_decide():
    for n, k in ((100, 7), (40, 39), (64, 4)):
        costs = [candidate.half_operations for candidate in top_k_candidates(n, k)]
        assert costs == sorted(costs)
        assert all(c <= 2 * m.network.size for c, m in zip(costs, top_k_candidates(n, k), strict=True))


def test_the_top_8_of_1024_take_4972_comparators():
    made = {candidate.name: candidate for candidate in top_k_candidates(1024, 8)}
    tree, fold = made["blocks of 8, tree of bitonic merges"], made["blocks of 8, left fold of bitonic merges"]
    assert (tree.network.size, tree.network.depth) == (4972, 34)
    assert (fold.network.size, fold.live_wires) == (4972, 16)
    assert made["pruned bitonic"].network.size == 24068
    assert verify(fold.network, parse("top-8", 1024)).verdict is Verdict.PROVED


def test_the_maximum_takes_half_a_comparator_per_value():
    assert top_k_candidates(1000, 1)[0].half_operations == 999


@pytest.mark.parametrize(("n", "k"), [(0, 1), (4, 0), (4, 5), (-1, 1)])
def test_what_cannot_be_selected(n, k):
    with pytest.raises(NetworkError):
        top_k_candidates(n, k)
