"""A proof that must end at its budget is foreseen before it begins, and no other proof is."""

import re
import time

import numpy as np
import pytest

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Verdict, joins, parse, reachable, sort, verify
from nsc.compiler.verify.foresight import forced_join
from nsc.compiler.verify.joins import JoinRule
from nsc.compiler.verify.question import BudgetError, question_of
from nsc.compiler.verify.reachable import FEW_STATES, search

pytestmark = pytest.mark.slow("proofs and searches are long")


class BeginsError(Exception):
    """The method begins to count."""


def begin(*_, **__):
    raise BeginsError


def is_foreseen(question, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(reachable, "_Search", begin)
        try:
            search(question)
        except BudgetError:
            return True
        except BeginsError:
            return False


def ends_at_budget(question, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(reachable, "forced_join", lambda *_: None)
        try:
            search(question)
        except BudgetError:
            return True
    return False


def cases():
    draw = np.random.default_rng(0)
    for family in ("bitonic", "odd_even_merge", "merge_exchange", "pairwise", "insertion", "odd_even"):
        for n in (16, 60, 64):
            yield FAMILIES[family](n), sort(n)
            yield FAMILIES[family](n), parse("top-5", n)
    for n in (8, 24, 40):
        # Comparators at a random layer join parts, and join wires of one part again.
        merger = FAMILIES["bitonic"](n)
        for _ in range(6):
            extra = [[draw.permutation(n)[:2].tolist()] for _ in range(3)]
            layers = list(merger.layers())
            cut = int(draw.integers(len(layers)))
            yield Network.from_layers(n, [*layers[:cut], *extra, *layers[cut:]]), sort(n)
    yield FAMILIES["bitonic"](64), parse("merge-32+32", 64)
    yield Network.from_layers(64, list(FAMILIES["bitonic"](64).layers())[-6:]), parse("merge-32+32", 64)


def test_a_foreseen_end_happens(monkeypatch):
    foreseen = dict.fromkeys(("states", "memory"), 0)
    for network, property_ in cases():
        for limits in ({"states": 64}, {"states": 256}, {"states": 1024}, {"memory": 1 << 10}):
            question = question_of(network, property_, Budget(**limits))
            if is_foreseen(question, monkeypatch):
                foreseen[next(iter(limits))] += 1
                assert ends_at_budget(question, monkeypatch), (network, property_.name, limits)
    assert foreseen["states"] > 20
    assert foreseen["memory"] > 10


@pytest.mark.parametrize("family", ["bitonic", "odd_even_merge", "merge_exchange"])
def test_merges_are_foreseen_to_the_exact_number_of_patterns(family, monkeypatch):
    needed = search(question_of(FAMILIES[family](256), sort(256), Budget())).peak
    for states in (needed - 1, needed):
        question = question_of(FAMILIES[family](256), sort(256), Budget(states))
        forced = forced_join(question.network, (), JoinRule(question.budget, states, 256, question.ranks))
        assert (forced is not None) == ends_at_budget(question, monkeypatch) == (states < needed)
        assert forced is None or forced.patterns == needed


def unproved(network, monkeypatch, **limits):
    monkeypatch.setattr(reachable, "_Search", begin)
    proof = verify(network, None, Budget(**limits), methods=["reachable sets", "SAT"])
    assert proof.verdict is Verdict.UNPROVED
    return proof.detail


@pytest.mark.nightly("proofs take many seconds")
def test_a_network_too_wide_for_the_methods_says_so_at_once(monkeypatch):
    detail = unproved(FAMILIES["bitonic"](16384), monkeypatch)
    for part in (
        "67,240,000 patterns in a join, about 2,052 s: try time_limit=4853;",
        "16,384 comparators",
    ):
        assert part in detail


def test_a_foreseen_end_names_every_option_that_would_help(monkeypatch):
    monkeypatch.setattr(reachable, "FEW_STATES", 1 << 10)
    network, end = FAMILIES["bitonic"](1024), time.monotonic()
    detail = unproved(network, monkeypatch, memory=1 << 20, deadline=end + 0.5)
    assert "s: try time_limit=" in detail
    assert "the 1 MB that patterns may take: try max_memory=" in detail
    with monkeypatch.context() as patch:
        patch.setattr(joins, "BITS_PER_SECOND", 1 << 10)
        detail = unproved(network, patch, deadline=end + 60)
    assert "no practical time limit suffices" in detail


def test_following_the_hints_leads_to_a_proof():
    network, megabytes = FAMILIES["bitonic"](1024), 1
    for _ in range(4):
        proof = verify(network, None, Budget(memory=megabytes << 20), ["reachable sets"])
        if proof:
            break
        megabytes = int(re.search("try max_memory=([0-9]+)", proof.detail)[1])
    assert proof
    assert 1 < megabytes < 64


def test_networks_that_are_proved_are_not_foreseen_to_fail():
    for family in ("bitonic", "odd_even_merge", "merge_exchange"):
        network = FAMILIES[family](4096)
        assert forced_join(network, (), JoinRule(Budget(), FEW_STATES, 4096, sort(4096).ranks)) is None
