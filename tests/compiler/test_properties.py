"""Catches a wrong verdict on any property, and a diagnosis that names another fault than the network has."""

import itertools
import random

import numpy as np
import pytest
from strategies import run, tangled

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.optimize import optimize
from nsc.compiler.passes import canonical, reflect, restrict, untangle
from nsc.compiler.verify import METHODS, Budget, Proof, Verdict, check_proof, diagnose, parse, sort, verify
from nsc.compiler.verify.question import question_of
from nsc.errors import PropertyError

pytestmark = pytest.mark.slow("proofs and searches are long")

FOUR = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (2, 3)], [(1, 2)]])


def inputs_of(property_):
    """Return all 0-1 inputs whose presorted runs ascend."""
    vectors = np.array(list(itertools.product([False, True], repeat=property_.n)))
    for wires in property_.presorted:
        vectors = vectors[(np.diff(vectors[:, list(wires)].astype(int), axis=1) >= 0).all(axis=1)]
    return vectors


def wrong_on(network, property_, values):
    """Return whether a permutation of 0 … n - 1 comes out wrong."""
    out = run(network.comparators.tolist(), values)
    return any(
        abs(value - group.first - k) > property_.off_by
        for group in property_.groups
        for k, value in enumerate(sorted(out[wire] for wire in group.wires))
    )


def holds(network, property_):
    """Return whether a network has a property, on all permutations; shares no code with the methods."""
    for values in itertools.permutations(range(property_.n)):
        if any([values[k] for k in run] != sorted(values[k] for k in run) for run in property_.presorted):
            continue
        if wrong_on(network, property_, values):
            return False
    return True


def draw_case(draw, most):
    """Return a network of 1 to `most` wires, which sorts, nearly sorts or is random, and a property."""
    n = draw.randint(1, most)
    pairs = []
    if n > 1 and draw.random() < 0.6:
        pairs = FAMILIES[draw.choice(list(FAMILIES))](n).comparators.tolist()
        for _ in range(draw.randint(0, 2)):
            if pairs and draw.random() < 0.5:
                del pairs[draw.randrange(len(pairs))]
            else:
                pairs.insert(draw.randint(0, len(pairs)), draw.sample(range(n), 2))
    elif n > 1:
        pairs = [draw.sample(range(n), 2) for _ in range(draw.randint(0, 14))]
    k = draw.randint(1, n)
    form = draw.choice(
        ["sort", f"top-{k}", f"bottom-{k}", f"top-{k}-set", f"bottom-{k}-set", f"rank-{k - 1}", "median"]
        + ([f"merge-{k}+{n - k}"] if k < n else [])
    )
    outputs = {"r": 1, "m": 2 - n % 2}.get(form[0], k)
    names_wires = form != "sort" and not form.startswith("merge") and draw.random() < 0.4
    wires = draw.sample(range(n), outputs) if names_wires else None
    first = draw.randint(0, max(0, n - 2))
    run = f"{first}-{draw.randint(first + 1, n - 1)}" if n > 1 and draw.random() < 0.3 else ""
    presorted = "" if form.startswith("merge") else run
    off_by = draw.randint(1, n - 1) // 2 if n > 2 and draw.random() < 0.4 else 0
    return Network.from_comparators(n, pairs), parse(form, n, wires, presorted, off_by)


def test_every_method_agrees_with_brute_force():
    draw = random.Random(0)
    settled = {(name, proved): 0 for name in METHODS for proved in (True, False)}
    for _ in range(160):
        network, property_ = draw_case(draw, 7)
        if property_.is_sort and draw.random() < 0.5:
            network = tangled(untangle(network).network, np.random.default_rng(draw.randrange(99)))
        vectors = inputs_of(property_)
        truth = not property_.fails(network, vectors).any()
        proof = verify(network, property_)
        assert proof.verdict is (Verdict.PROVED if truth else Verdict.REFUTED)
        assert proof.canonical == canonical(network).digest
        failing = [] if truth else [proof.counterexample]
        assert truth or wrong_on(network, property_, proof.failing_input)
        for name, method in METHODS.items():
            answer = method(question_of(network, property_, Budget()))
            if answer is not None:
                assert (answer.proved is not None) == truth, name
                failing += [] if truth else [answer.failing]
                settled[name, truth] += 1
        allowed = set(map(tuple, vectors.astype(int).tolist()))
        assert allowed.issuperset(failing)
        assert all(property_.fails(network, np.array(failing, dtype=bool).reshape(-1, network.n)))
    assert all(settled[name, True] for name in METHODS)
    assert all(settled[name, False] for name in ("exhaustion", "reachable sets", "SAT"))


def test_verdicts_on_0_1_inputs_hold_on_all_inputs():
    draw = random.Random(0)
    truths = []
    for _ in range(60):
        network, property_ = draw_case(draw, 5)
        truths.append(holds(network, property_))
        assert (verify(network, property_).verdict is Verdict.PROVED) == truths[-1]
    assert 10 < sum(truths) < 50


@pytest.mark.parametrize(
    ("name", "n", "text"),
    [
        ("bitonic", 256, "top-8"),
        ("merge_exchange", 512, "merge-256+256"),
        ("merge_exchange", 25, "median"),
        ("odd_even", 100, "bottom-5"),
        ("pairwise", 32, "rank-15"),
    ],
)
def test_large_selections_are_proved_and_refuted(name, n, text):
    network = FAMILIES[name](n)
    assert verify(network, parse(text, n)).verdict is Verdict.PROVED
    property_ = parse(text, n)
    wires = [wire for group in property_.groups for wire in group.wires]
    small = restrict(network, wires)
    assert small.size <= network.size
    assert verify(small, property_).verdict is Verdict.PROVED
    last = np.flatnonzero(np.isin(small.comparators, wires).any(axis=1))[-1]
    less = Network.from_comparators(n, np.delete(small.comparators, last, axis=0))
    assert verify(less, property_).verdict is Verdict.REFUTED


def test_reflected_and_tangled_networks_keep_reflected_properties():
    draw = random.Random(0)
    for _ in range(40):
        network, _ = draw_case(draw, 6)
        n = network.n
        assert reflect(reflect(network)) == network
        for rank in range(n):
            verdict = verify(network, parse(f"rank-{rank}", n)).verdict
            assert verify(reflect(network), parse(f"rank-{n - 1 - rank}", n)).verdict is verdict
        sorts = verify(network).verdict
        if sorts is Verdict.PROVED and (network.comparators[:, 0] < network.comparators[:, 1]).all():
            assert verify(tangled(network, np.random.default_rng(0))).verdict is sorts


@pytest.mark.parametrize(
    ("text", "n", "options", "message"),
    [
        ("sorted", 4, {}, "no property is called 'sorted'; there are: sort, top-K"),
        ("top-5", 4, {}, "4 wires has 1 to 4 such outputs"),
        ("top-0", 4, {}, "1 to 4"),
        ("rank-4", 4, {}, "of 4 wires the ranks are 0 … 3"),
        ("merge-2+3", 4, {}, "together have 4 wires"),
        ("merge-4+0", 4, {}, "not empty"),
        ("merge-2+2", 4, {"presorted": "0-1"}, "together have 4 wires"),
        ("median", 5, {"wires": [1, 2]}, "has 1 output, wires names 2 wires"),
        ("median", 5, {"wires": [5]}, "outside 0 … 4"),
        ("top-2", 5, {"wires": [1, 1]}, "an output wire is named twice"),
        ("rank-1,1", 5, {}, "a rank is named twice"),
        ("top-٢", 5, {}, "no property is called"),
        ("sort", 5, {"presorted": "٠-١"}, "found '٠-١'"),
        ("sort", 5, {"presorted": "3-1"}, "lower wire first; found '3-1'"),
        ("sort", 5, {"presorted": "0-3,3-4"}, "presorted wire is named twice"),
        ("sort", 5, {"presorted": "0-5"}, "outside 0 … 4"),
        ("sort", 5, {"off_by": 5}, "of 5 wires a rank is 0 to 4 off, got off_by=5"),
        ("median, at most 5 off", 5, {}, "got off_by=5"),
        ("median, at most off", 5, {}, "no property is called"),
    ],
)
def test_impossible_properties_are_refused(text, n, options, message):
    with pytest.raises(PropertyError, match=message):
        parse(text, n, **options)
    with pytest.raises(PropertyError, match="the network has 4"):
        verify(FOUR, sort(5))


@pytest.mark.parametrize("text", ["sort", "median", "top-2", "top-3-set", "rank-0", "merge-2+3"])
def test_the_name_of_a_property_is_parsed_again(text):
    property_ = parse(text, 5)
    assert parse(property_.name, 5) == property_
    if text in ("median", "rank-0"):
        property_ = parse(text, 5, [3], "0-1,2-4", 2)
        assert property_.name == f"{text} on wires 3, presorted 0-1,2-4, at most 2 off"
        assert parse(property_.name, 5) == property_
    for presorted in ("", ",", " 0-1", "0-1, 2-4", "0-1 ,\t2-4,", "00-1,2-004"):
        if not text.startswith("merge"):
            property_ = parse(text, 5, presorted=presorted)
            assert parse(property_.name, 5) == property_
        assert parse(property_.name, 5) == property_


def test_a_diagnosis_is_the_lightest_counterexample_its_wires_and_a_mend():
    pairs = FOUR.comparators.tolist()
    less = Network.from_comparators(4, pairs[:-1])
    failure = diagnose(less, sort(4), (0, 1, 0, 1))
    assert sum(failure.vector) == 2
    assert sort(4).fails(less, np.array([failure.vector], dtype=bool)).all()
    assert set(failure.wires) == {1, 2}
    assert failure.layer == 1
    assert failure.mend.words == "insert (1, 2) behind layer 1"
    turned = Network.from_layers(4, [[(0, 2), (1, 3)], [(0, 1), (3, 2)], [(1, 2)]])
    assert diagnose(turned, sort(4), verify(turned).counterexample).mend.words == "turn (3, 2) in layer 1"
    nothing = Network.from_layers(3, [])
    failure = diagnose(nothing, sort(3), (1, 0, 0))
    assert (failure.vector, failure.layer, failure.mend) == ((1, 0, 0), None, None)
    last = Network.from_layers(3, [[(0, 2)], [(0, 1)]])  # (1, 0) in front would do too
    assert diagnose(last, sort(3), verify(last).counterexample).mend.words == "insert (1, 2) in front"
    reversed_ = Network.from_layers(2, [[(0, 1)]])
    bottom = parse("bottom-2", 2, [1, 0])
    assert (
        diagnose(reversed_, bottom, verify(reversed_, bottom).counterexample).mend.words
        == "turn (0, 1) in layer 0"
    )


def test_a_rank_that_may_be_off_is_mended_and_loses_what_it_does_not_need():
    near = parse("rank-1", 4, off_by=1)
    nothing = Network.from_layers(4, [])
    failure = diagnose(nothing, near, verify(nothing, near).counterexample)
    assert verify(Network.from_comparators(4, [(failure.mend.lo, failure.mend.hi)]), near)
    whole = FAMILIES["merge_exchange"](9)
    sizes = []
    for off_by in range(4):
        property_ = parse("median", 9, off_by=off_by)
        smaller = optimize(whole, property_, Budget()).network
        assert verify(smaller, property_)
        sizes.append(smaller.size)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[3] < sizes[0]


def test_a_removed_comparator_is_mended():
    n = 9
    whole = FAMILIES["merge_exchange"](n)
    for index in range(0, whole.size, 3):
        less = Network.from_comparators(n, np.delete(whole.comparators, index, axis=0))
        proof = verify(less)
        if proof.verdict is Verdict.REFUTED:
            failure = diagnose(less, sort(n), proof.counterexample)
            assert failure.mend is not None
            assert sum(failure.vector) <= sum(proof.counterexample)


def test_a_heavy_counterexample_of_many_wires_is_made_lighter():
    whole = FAMILIES["bitonic"](64)
    less = Network.from_comparators(64, whole.comparators[:-1])
    proof = verify(less)
    failure = diagnose(less, sort(64), proof.counterexample)
    assert sort(64).fails(less, np.array([failure.vector], dtype=bool)).all()
    assert sum(failure.vector) <= sum(proof.counterexample)
    assert failure.mend is None


def test_proofs_are_stored_and_checked():
    median = parse("median", 4)
    for network, property_ in ((FOUR, sort(4)), (FOUR, median), (Network.from_layers(4, []), median)):
        proof = verify(network, property_)
        parsed = Proof.from_json(proof.to_json())
        assert parsed == proof
        assert check_proof(network, parsed) == proof
        with pytest.raises(PropertyError, match="is of another network"):
            check_proof(FAMILIES["odd_even"](4), parsed)
    forged = Proof.from_json(proof.to_json().replace(proof.canonical, FOUR.digest))
    with pytest.raises(PropertyError, match="counterexample"):
        check_proof(FOUR, forged)


def test_a_proof_holds_for_every_form_of_its_network():
    network = FAMILIES["bitonic"](8)
    proof = verify(network)
    spread = Network.from_layers(8, [[pair] for pair in network.comparators.tolist()])
    for same in (untangle(network).network, spread):
        assert same != network
        assert check_proof(same, proof) == proof
    fewer = Network.from_comparators(8, network.comparators[:-1])
    with pytest.raises(PropertyError, match="is of another network"):
        check_proof(fewer, proof)


@pytest.mark.parametrize("text", ["", '{"format": "nsc-proof/1"}', "[" * 100_000])
def test_text_that_is_no_proof_is_refused(text):
    with pytest.raises(PropertyError, match=r"not a proof|the proof was changed"):
        Proof.from_json(text)
