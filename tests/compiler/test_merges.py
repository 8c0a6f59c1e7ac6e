"""Catches structure that is not recognised in a family, or is seen in a network that does not sort."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import numpy as np
import pytest
from strategies import sorts_all

from nsc.compiler.families import FAMILIES
from nsc.compiler.network import Network
from nsc.compiler.passes import untangle
from nsc.compiler.verify import Budget, Verdict, parse, verify
from nsc.compiler.verify.merges import merges, pairwise
from nsc.compiler.verify.property import sort
from nsc.compiler.verify.question import question_of

METHOD_OF = {**dict.fromkeys(("bitonic", "odd_even_merge", "merge_exchange"), merges), "pairwise": pairwise}


def answer_of(network, property_=None, method=merges):
    return method(question_of(network, property_ or sort(network.n), Budget()))


@pytest.mark.parametrize("family", METHOD_OF)
def test_families_are_proved_at_any_n(family):
    for n in (*range(2, 35), 64, 100, 127, 129):
        answer = answer_of(FAMILIES[family](n), method=METHOD_OF[family])
        assert answer is not None, n
        times = n - 1 if METHOD_OF[family] is merges else (n - 1).bit_length()
        assert re.search(r"\d+", answer.proved)[0] == str(times), n


def test_wires_may_have_any_names():
    """What a network of renamed wires leaves ascends in the order of their old names, and in no other."""
    draw = random.Random(0)
    for family, method in METHOD_OF.items():
        names = draw.sample(range(24), 24)
        pairs = FAMILIES[family](24).comparators.tolist()
        renamed = Network.from_comparators(24, [[names[wire] for wire in pair] for pair in pairs])
        in_order = parse("rank-" + ",".join(map(str, range(24))), 24, names)
        assert answer_of(renamed, in_order, method) is not None
        assert answer_of(renamed, method=method) is None


@pytest.mark.slow("proofs and searches are long")
def test_nothing_is_proved_that_does_not_sort():
    """Of networks near those that merge, with renamed wires and comparators more, fewer or others."""
    draw, proved = random.Random(1), 0
    for _ in range(300):
        n = draw.randrange(3, 9)
        names = draw.sample(range(n), n)
        pairs = [
            [names[wire] for wire in pair]
            for pair in FAMILIES[draw.choice([*METHOD_OF])](n).comparators.tolist()
        ]
        for _ in range(draw.randrange(3)):
            place = draw.randrange(len(pairs))
            pairs[place : place + draw.randrange(2)] = draw.choice(([], [draw.sample(range(n), 2)]))
        network = untangle(Network.from_comparators(n, pairs)).network
        if any(answer_of(network, method=method) is not None for method in (merges, pairwise)):
            proved += 1
            assert sorts_all(n, network.comparators.tolist())
    assert proved > 60


@pytest.mark.slow("proofs and searches are long")
@pytest.mark.parametrize("family", METHOD_OF)
def test_a_network_with_a_changed_comparator_is_left_to_other_methods(family):
    draw = random.Random(family)
    for _ in range(60):
        n = draw.choice((5, 8, 12, 16, 33, 64))
        comparators = FAMILIES[family](n).comparators.tolist()
        place = draw.randrange(len(comparators))
        kept = draw.choice(comparators[place])
        comparators[place] = sorted((kept, draw.choice([w for w in range(n) if w not in comparators[place]])))
        answer = answer_of(Network.from_comparators(n, comparators), method=METHOD_OF[family])
        # A few wires have several networks that merge.
        assert answer is None or (n <= 8 and sorts_all(n, comparators)), (n, place)


@pytest.mark.parametrize("family", METHOD_OF)
def test_a_comparator_more_or_less_is_no_merge(family):
    whole = FAMILIES[family](32).comparators
    for place in range(0, len(whole), 7):
        less = Network.from_comparators(32, np.delete(whole, place, axis=0))
        assert answer_of(less, method=METHOD_OF[family]) is None
    # Behind the last merge it changes nothing.
    more = Network.from_comparators(32, [*whole.tolist(), [3, 9]])
    assert answer_of(more, method=METHOD_OF[family]) is not None


def test_presorted_runs_are_merged():
    half_cleaners = [[(a, a + d) for a in range(16) if not a & d] for d in (4, 2, 1)]
    merge = Network.from_layers(16, [[(a, 15 - a) for a in range(8)], *half_cleaners])
    assert answer_of(merge, parse("merge-8+8", 16)).proved == "1 merge of sorted wires: 1 by bitonic merges"
    assert answer_of(merge) is None
    assert answer_of(FAMILIES["bitonic"](16), parse("median", 16)) is None
    in_order = sort(2)
    for run in ((0, 1), (1, 0)):
        question = replace(in_order, presorted=(run,))
        assert (answer_of(Network.from_layers(2, [[(0, 1)]]), question) is None) == (run == (1, 0))


@pytest.mark.nightly("networks of millions of comparators are built")
@pytest.mark.parametrize("family", METHOD_OF)
def test_65536_wires_are_proved(family):
    proof = verify(FAMILIES[family](1 << 16))
    assert (proof.verdict, proof.method) == (Verdict.PROVED, METHOD_OF[family].__name__)
