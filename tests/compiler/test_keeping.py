"""Catches a kept proof that is taken for another question, or one that is not found again."""

from __future__ import annotations

import time

import pytest

from nsc.compiler.families import FAMILIES
from nsc.compiler.verify import Budget, Verdict, parse, saved, sort, verify, verify_once
from nsc.compiler.verify.sat import FEW_PROPAGATIONS

NETWORK = FAMILIES["bitonic"](6)
HALF = NETWORK[:2]


class Memory(dict):
    """An archive that lasts as long as the object."""

    def read(self, name):
        return self.get(name)

    def write(self, name, text):
        assert name not in self
        self[name] = text


@pytest.fixture
def verified(monkeypatch):
    """Return the networks and properties that are verified, not taken from an archive."""
    asked = []

    def noted(network, property_, budget, methods):
        asked.append((network, property_.name))
        return verify(network, property_, budget, methods)

    monkeypatch.setattr(saved, "verify", noted)
    return asked


def test_a_proof_is_found_once(verified):
    budget = Budget(archive=Memory())
    first = verify_once(NETWORK, budget=budget)
    assert verify_once(NETWORK, sort(6), budget) == first
    assert first.verdict is Verdict.PROVED
    assert first.seconds is None
    assert verified == [(NETWORK, "sort")]


@pytest.mark.parametrize(
    "other",
    [
        {"network": FAMILIES["odd_even"](6)},
        {"property_": parse("median", 6)},
        {"property_": parse("sort", 6, presorted="0-1")},
        {"methods": ["exhaustion"]},
        {"states": 100},
        {"propagations": 100},
        {"memory": 1 << 20},
    ],
    ids=str,
)
def test_another_question_is_another_proof(verified, other):
    question = {"network": NETWORK, "property_": sort(6), "methods": None} | other
    limits = {name: question.pop(name) for name in ("states", "propagations", "memory") if name in question}
    archive = Memory()
    for asked, budget in (
        ({"network": NETWORK, "property_": sort(6)}, Budget(archive=archive)),
        (question, Budget(**limits, archive=archive)),
    ):
        proof = verify_once(**asked, budget=budget)
        assert proof.property == asked["property_"].name
        assert proof.verdict is Verdict.PROVED
    assert len(verified) == 2


def test_only_a_trial_without_a_proof_is_kept(verified):
    """A network that no method settles, with counts that a caller chose, and with another limit."""
    counts = {"states": 1, "propagations": FEW_PROPAGATIONS}
    for limits in ({}, {**counts, "deadline": time.monotonic() + 1e6}, {"states": 1}, {"propagations": 1}):
        archive = Memory()
        assert verify_once(NETWORK, budget=Budget(**limits, archive=archive), methods=()).verdict is (
            Verdict.UNPROVED
        )
        assert not archive
    archive = Memory()
    assert verify_once(HALF, budget=Budget(archive=archive)).verdict is Verdict.REFUTED
    assert not archive
    budget = Budget(**counts, archive=archive)
    asked = len(verified)
    assert verify_once(NETWORK, budget=budget, methods=()) == verify_once(NETWORK, budget=budget, methods=())
    assert len(verified) == asked + 1


def test_a_damaged_text_is_proved_anew(verified):
    archive = Memory()
    proof = verify_once(NETWORK, budget=Budget(archive=archive))
    ((name, text),) = archive.items()
    damaged = [text[:end] for end in range(0, len(text) - 2, 7)]
    damaged += ["", "{}", "[" * 100_000, "\x00", text.replace('"sort"', '"median"')]
    for broken in damaged:
        found = Memory({name: broken})
        found.write = lambda name, text: None
        assert verify_once(NETWORK, budget=Budget(archive=found)) == proof
    assert len(verified) == 1 + len(damaged)


def test_a_proof_of_another_network_is_not_taken():
    """A kept proof at the place where another network's proof would be."""
    archive = Memory()
    verify_once(NETWORK, budget=Budget(archive=archive))
    (text,) = archive.values()

    class Everywhere(Memory):
        def read(self, name):
            return text

    assert verify_once(HALF, budget=Budget(archive=Everywhere())).verdict is Verdict.REFUTED
