"""Depth-first search, on the real compiler, against exhaustion in NumPy."""

import random
import time

import pytest

from nsc.compiler.families import best, family_network, known
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Verdict, parse, verify
from nsc.join.depth_first import depth_first_search

METHOD = ["depth-first search"]
BUILDS = Budget(search=depth_first_search)


@pytest.fixture
def no_sample(monkeypatch):
    """Leave all inputs to the method."""
    monkeypatch.setattr("nsc.compiler.verify.zero_one.sample_inputs", lambda *args: iter(()))


@pytest.mark.parametrize("text", ["sort", "rank-3", "rank-0,5", "top-2", "median", "bottom-3-set"])
def test_verdicts_are_those_of_all_inputs(text, no_sample):
    """Sorters with their wires renamed, whole, without a comparator and with one turned.

    The ladder itself tries each counterexample.
    """
    draw = random.Random(text)
    verdicts = set()
    for family in ("odd_even_merge", "pairwise", "odd_even", "best"):
        for n in (6, 7, 10, 13):
            pairs = family_network(family, n).comparators.tolist()
            wires = draw.sample(range(n), n)
            property_ = parse(text, n)
            for change in ("none", "left out", "turned", "renamed"):
                changed, place = list(pairs), draw.randrange(len(pairs))
                if change == "left out":
                    del changed[place]
                elif change == "turned":
                    changed[place] = changed[place][::-1]
                elif change == "renamed":
                    changed = [(wires[lo], wires[hi]) for lo, hi in pairs]
                network = Network.from_comparators(n, changed)
                proof, expected = (
                    verify(network, property_, BUILDS, methods) for methods in (METHOD, ["exhaustion"])
                )
                assert proof.verdict is expected.verdict, (family, n, change, place)
                verdicts.add(proof.verdict)
                if proof:
                    assert proof.method == METHOD[0]
    assert verdicts == {Verdict.PROVED, Verdict.REFUTED}


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_wires(n):
    assert verify(family_network("bitonic", n), None, BUILDS, METHOD).verdict is Verdict.PROVED


@pytest.mark.parametrize("n", [26, 41, 60])
def test_a_comparator_left_out_of_a_sorter_is_missed(n, no_sample):
    pairs = best(n).comparators.tolist()
    for left_out in (0, len(pairs) // 2, len(pairs) - 1):
        network = Network.from_comparators(n, pairs[:left_out] + pairs[left_out + 1 :])
        assert verify(network, None, BUILDS, METHOD).verdict is Verdict.REFUTED


def test_irregular_networks_of_many_wires():
    """Pairwise networks join wires before they are sorted: too many reachable sets from 40 wires on."""
    assert verify(family_network("pairwise", 40), None, BUILDS, METHOD)
    assert verify(known("median")[41][0], parse("median", 41), BUILDS, METHOD)


def test_without_a_compiler_or_time_it_settles_nothing():
    for budget in (Budget(), Budget(search=lambda *args: None)):
        assert verify(best(27), None, budget, METHOD).verdict is Verdict.UNPROVED
    late = Budget(deadline=time.monotonic(), search=depth_first_search)
    proof = verify(best(64), None, late, METHOD)
    assert "depth-first search ended at the time limit" in proof.detail


def test_more_wires_than_a_word_has_are_left_to_others():
    assert verify(family_network("bitonic", 65), None, BUILDS, METHOD).verdict is Verdict.UNPROVED
