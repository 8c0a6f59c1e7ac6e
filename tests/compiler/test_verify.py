"""Catches a wrong verdict on sorting, a counterexample that sorts, and a method that ends elsewhere."""

import itertools
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import is_unsorted, networks, run, sorts_all

from nsc.compiler.families import FAMILIES, best, known
from nsc.compiler.network import Network
from nsc.compiler.passes import untangle
from nsc.compiler.verify import (
    METHODS,
    Budget,
    Proof,
    Verdict,
    parse,
    patterns,
    reachable,
    sat,
    sort,
    verify,
    zero_one,
)
from nsc.compiler.verify.question import BudgetError, question_of, sorted_groups
from nsc.errors import PropertyError


def sort_question(network, **budget):
    return question_of(network, sort(network.n), Budget(**budget))


def ranks(network):
    return sorted_groups(sort(network.n))[1]


def exhaust(network):
    """Return a failing input from a trial of all inputs, or None."""
    chunks = zero_one.exhaust(network, ranks(network))
    return next((failing for failing in chunks if failing is not None), None)


def is_counterexample(network, vector):
    return (
        len(vector) == network.n
        and set(vector) <= {0, 1}
        and is_unsorted(run(network.comparators.tolist(), vector))
    )


@settings(max_examples=100)
@given(st.integers(2, 6), st.data())
def test_the_method_for_neighbours_is_exact(n, data):
    wires = data.draw(st.lists(st.integers(0, n - 2), max_size=n * n))
    network = Network.from_comparators(n, [(wire, wire + 1) for wire in wires])
    answer = METHODS["primitive"](sort_question(network))
    if sorts_all(n, network.comparators.tolist()):
        assert answer.proved is not None
    else:
        assert is_counterexample(network, answer.failing)


@pytest.mark.parametrize("pairs", [[(0, 2)], [(1, 0)], [(0, 1), (0, 2)]])
def test_the_method_for_neighbours_settles_no_other_network(pairs):
    assert METHODS["primitive"](sort_question(Network.from_comparators(3, pairs))) is None


def irregular(n):
    """Return a sorter that is none of a known structure: a pairwise network behind a comparator."""
    return Network.from_layers(n, [[(0, n - 1)], *FAMILIES["pairwise"](n).layers()])


# The networks that each method is the first to prove.
PROVED = {
    "primitive": FAMILIES["odd_even"](30),
    "exhaustion": FAMILIES["pairwise"](16),
    "pairwise": FAMILIES["pairwise"](30),
    "merges": FAMILIES["odd_even_merge"](30),
    "reachable sets": best(27),
    "SAT": irregular(56),
}


def test_every_method_settles_some_network():
    assert list(METHODS) == list(PROVED)
    for method, network in PROVED.items():
        proof = verify(network)
        assert (proof.verdict, proof.method) == (Verdict.PROVED, method)


@pytest.mark.parametrize(
    ("method", "family", "n", "index"),
    [
        ("primitive", "odd_even", 25, 0),
        ("exhaustion", "pairwise", 12, 21),
        ("reachable sets", "bitonic", 25, 0),
        ("SAT", "pairwise", 64, 272),
    ],
)
def test_every_method_refutes_where_sampling_fails(method, family, n, index, monkeypatch):
    monkeypatch.setattr(zero_one, "sample_inputs", lambda n, *_: [np.zeros((1, n), dtype=bool)])
    whole = untangle(FAMILIES[family](n)).network
    network = Network.from_comparators(n, np.delete(whole.comparators, index, axis=0))
    proof = verify(network)
    assert (proof.verdict, proof.method) == (Verdict.REFUTED, method)
    assert is_counterexample(network, proof.counterexample)


def test_a_proof_is_true_exactly_where_it_proves():
    sorts = FAMILIES["bitonic"](8)
    assert verify(sorts)
    assert not verify(Network.from_comparators(8, sorts.comparators[:-1]))
    unproved = verify(sorts, methods=[])
    assert unproved.verdict is Verdict.UNPROVED
    assert not unproved
    for proof in (verify(sorts), unproved):
        assert bool(Proof.from_json(proof.to_json())) == bool(proof)
    text = verify(sorts).to_json().replace("{", '{"verdict": "refuted",', 1)
    with pytest.raises(PropertyError, match='"verdict" is stated twice'):
        Proof.from_json(text)


def test_a_network_that_no_method_settles_in_time_is_unproved():
    proof = verify(irregular(256), budget=Budget(deadline=time.monotonic() + 0.5))
    assert proof.verdict is Verdict.UNPROVED
    assert proof.method not in METHODS
    assert proof.counterexample is None
    assert "reachable sets ended at" in proof.detail
    assert "SAT ended at" in proof.detail


def test_a_refutation_needs_no_larger_budget_than_a_proof():
    whole = known("median")[49][0]
    median = parse("median", 49)
    for bits in range(12, 30):
        try:
            assert reachable.search(question_of(whole, median, Budget(memory=1 << bits))).failing is None
            break
        except BudgetError:
            continue
    assert bits > 12
    less = Network.from_comparators(49, whole.comparators[:-1])
    failing = reachable.search(question_of(less, median, Budget(memory=1 << bits))).failing
    assert median.fails(less, np.array([failing], dtype=bool)).all()


@pytest.mark.nightly("proofs take many seconds")
def test_the_median_of_the_best_sorter_of_64_wires_is_proved_by_default():
    proof = verify(best(64), parse("median", 64))
    assert (proof.verdict, proof.method) == (Verdict.PROVED, "reachable sets")
    assert proof.states > reachable.FEW_STATES


@pytest.mark.parametrize(
    ("network", "limits", "message"),
    [
        (known("median")[49][0], {"memory": 1 << 10}, "try max_memory=1"),
        (
            FAMILIES["pairwise"](96),
            {"deadline": 6.0},
            "57,159,533 patterns in a join, about 7 s: try time_limit=74",
        ),
        (best(64), {"deadline": 0.0}, "the time limit, which time_limit sets"),
    ],
)
def test_an_unproved_message_names_the_option_that_would_help(network, limits, message):
    if "deadline" in limits:
        limits = {"deadline": time.monotonic() + limits["deadline"]}
    proof = verify(network, parse("median", network.n), Budget(**limits), ["reachable sets"])
    assert proof.verdict is Verdict.UNPROVED
    assert message in proof.detail


@pytest.mark.parametrize("parted", [0, 1 << 16])
@pytest.mark.parametrize("zeros", [range(10), {4}, {1, 2, 8, 9}])
def test_a_product_has_the_patterns_of_so_many_zeros(zeros, parted, monkeypatch):
    """Components of 5 and 4 wires that nothing was done to; of all their patterns each is there once."""

    def free(wires):
        values = np.array(list(itertools.product([0, 1], repeat=len(wires))), dtype=np.uint8)
        rows = dict(zip(wires, np.packbits(values.T, axis=1, bitorder="little"), strict=True))
        return patterns.Component(rows, len(values), (values == 0).sum(axis=1, dtype=np.int32), len(wires))

    def listed(component):
        bits = np.stack([np.unpackbits(component.rows[w], bitorder="little") for w in range(9)], axis=1)
        assert ((bits == 0).sum(axis=1) == component.zeros).all()
        return map(tuple, bits.tolist())

    parts = free(range(5)), free(range(5, 9))
    needed = np.array([number in zeros for number in range(10)])
    monkeypatch.setattr(patterns, "_PARTED", parted)
    pieces = patterns.products(*parts, needed)
    found = {each for piece in pieces for each in listed(piece)}
    wanted = {each for each in itertools.product([0, 1], repeat=9) if each.count(0) in zeros}
    assert found == wanted
    assert patterns.product_count(*parts, needed) == (512 if parted else len(wanted))


@pytest.mark.parametrize("n", [1, 5, 7])
def test_packed_inputs_find_the_first_failing_one(n):
    network = Network.from_layers(n, [])
    vectors = np.array(list(itertools.product([False, True], repeat=n)))
    failing = [k for k, vector in enumerate(vectors.tolist()) if is_unsorted(vector)]
    assert zero_one.first_wrong_vector(network, ranks(network), vectors) == (failing[0] if failing else None)
    if failing:
        first = failing[0]
        assert zero_one.first_wrong_vector(network, ranks(network), vectors[:first]) is None


@pytest.mark.parametrize("name", ["bitonic", "best"])
def test_inputs_are_exhausted_chunk_by_chunk(name, monkeypatch):
    monkeypatch.setattr(zero_one, "_CHUNK_WORDS", 1)
    whole = FAMILIES[name](9)
    assert exhaust(whole) is None
    for index in range(whole.size):
        less = Network.from_comparators(9, np.delete(whole.comparators, index, axis=0))
        failing = exhaust(less)
        assert (failing is None) == sorts_all(9, less.comparators.tolist())
        assert failing is None or is_counterexample(less, failing)


@pytest.mark.parametrize("n", [1, 2, 7])
def test_the_sample_holds_the_structured_inputs(n):
    rows = {tuple(row) for row in np.concatenate([*zero_one.sample_inputs(n, 0)]).astype(int).tolist()}
    ascending = {(0,) * (n - ones) + (1,) * ones for ones in range(n + 1)}
    exchanged = {(0,) * k + (1, 0) + (1,) * (n - k - 2) for k in range(n - 1)}
    assert rows == ascending | {row[::-1] for row in ascending} | exchanged
    assert sum(map(len, zero_one.sample_inputs(n, 10))) == sum(map(len, zero_one.sample_inputs(n, 0))) + 10


@settings(max_examples=60)
@given(networks(wires=(2, 7)), st.data())
def test_the_permutation_of_a_vector_maps_back_to_it(network, data):
    vector = tuple(data.draw(st.lists(st.integers(0, 1), min_size=network.n, max_size=network.n)))
    values = zero_one.permutation_of(vector)
    assert sorted(values) == list(range(network.n))
    assert tuple(int(value >= vector.count(0)) for value in values) == vector
    if is_counterexample(network, vector):
        assert is_unsorted(run(network.comparators.tolist(), values))


@pytest.mark.parametrize("methods", ["exhaustion", ["exhaustio"]])
def test_unknown_methods_are_refused(methods):
    with pytest.raises(PropertyError, match=r"methods must be some of .*exhaustion"):
        verify(FAMILIES["bitonic"](4), methods=methods)


@pytest.mark.parametrize("method", PROVED)
def test_a_slow_machine_comes_to_the_same_verdict(method, monkeypatch):
    """On it an hour passes between two looks at a clock, and no wait ends in time."""
    network, budget = PROVED[method], Budget()
    proof = verify(network, None, budget, [method])
    clock, wait = itertools.count(time.monotonic(), 3600.0), threading.Event.wait
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(threading.Event, "wait", lambda event, timeout=None: timeout is None and wait(event))
    assert proof.method == method
    assert replace(verify(network, None, budget, [method]), seconds=proof.seconds) == proof


@pytest.mark.parametrize(
    ("module", "limit", "method", "message"),
    [
        (sat, "MOST_PROPAGATIONS", "SAT", "SAT ended at 1 propagations"),
        (patterns, "MOST_BITS", "reachable sets", "patterns in a join"),
    ],
)
def test_a_count_ends_a_method_and_a_time_limit_takes_its_place(module, limit, method, message, monkeypatch):
    network = FAMILIES["pairwise"](40)
    monkeypatch.setattr(module, limit, 1)
    monkeypatch.setattr(reachable, "FEW_STATES", 1)
    ended = verify(network, None, Budget(certify=True), [method])
    assert ended.verdict is Verdict.UNPROVED
    assert message in ended.detail
    assert "time_limit" in ended.detail
    deadline = time.monotonic() + 600
    assert verify(network, None, Budget(deadline=deadline, certify=True), [method])


def test_a_time_limit_ends_a_sample_of_many_wires():
    """Such samples take minutes; what was tried until then counts."""
    network, late = FAMILIES["odd_even_merge"](4096), Budget(deadline=time.monotonic())
    proof = verify(network, None, late)
    assert proof.detail.startswith("4,097 structured and random 0-1 inputs passed; ")
    assert "sampling ended at the time limit" in proof.detail
