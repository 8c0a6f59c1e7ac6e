"""Exhaustion in generated C++ against exhaustion in NumPy, on the real compiler."""

import random
import time

import pytest

from nsc.compiler.families import best, family_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Verdict, parse, verify
from nsc.compiler.verify.generated import checker_source
from nsc.compiler.verify.question import question_of
from nsc.join.budget import build_checker

METHOD = ["generated exhaustion"]
BUILDS = Budget(build=build_checker)


@pytest.mark.parametrize("text", ["sort", "rank-3", "top-2", "median", "bottom-3-set"])
@pytest.mark.parametrize("n", [4, 9, 10, 13])
def test_verdicts_are_those_of_numpy(n, text):
    """One network has the property; the other has one of its comparators reversed."""
    pairs = family_network("odd_even_merge", n).comparators.tolist()
    reversed_index = random.Random(n).randrange(len(pairs))
    for network in (
        Network.from_comparators(n, pairs),
        Network.from_comparators(
            n, [*pairs[:reversed_index], pairs[reversed_index][::-1], *pairs[reversed_index + 1 :]]
        ),
    ):
        property_ = parse(text, n)
        proof, expected = (
            verify(network, property_, BUILDS, methods) for methods in (METHOD, ["exhaustion"])
        )
        assert proof.verdict is expected.verdict
        if proof.verdict is Verdict.PROVED:
            assert proof.method == METHOD[0]


@pytest.mark.parametrize("n", [1, 2, 3, 8])
def test_few_wires(n):
    assert verify(family_network("bitonic", n), None, BUILDS, METHOD).verdict is Verdict.PROVED


def test_a_failing_input_is_found_where_sampling_finds_none(monkeypatch):
    monkeypatch.setattr("nsc.compiler.verify.zero_one.sample_inputs", lambda *args: iter(()))
    pairs = best(26).comparators.tolist()
    proof = verify(Network.from_comparators(26, pairs[:60] + pairs[61:]), None, BUILDS, METHOD)
    assert (proof.verdict, proof.method) == (Verdict.REFUTED, METHOD[0])


@pytest.mark.slow("proofs and searches are long")
def test_thirty_two_wires():
    proof = verify(best(32), None, BUILDS, METHOD)
    assert proof.verdict is Verdict.PROVED
    assert proof.detail.startswith("all 2^32 0-1 inputs come out sorted, in generated C++")


def test_without_a_compiler_or_time_it_settles_nothing():
    for budget in (Budget(), Budget(build=lambda name, source: None)):
        assert verify(best(27), None, budget, METHOD).verdict is Verdict.UNPROVED
    proof = verify(best(32), None, Budget(deadline=time.monotonic(), build=build_checker), METHOD)
    assert "generated exhaustion ended at the time limit" in proof.detail


def test_the_text_is_the_same_for_the_same_question(golden):
    network = best(10)
    golden("check_best_10.cpp", checker_source(question_of(network, parse("top-2", 10), Budget())))
