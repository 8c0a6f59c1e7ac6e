"""The ladder: exact methods, the cheapest first.

Deciding a property is co-NP-complete in general. If no method settles a network within its budget, the
verdict is UNPROVED.
"""

from __future__ import annotations

import time
from collections.abc import Collection

import numpy as np

from nsc.arguments import is_name
from nsc.compiler.network import Network
from nsc.compiler.passes.canonical import canonical
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.answer import Method, Step
from nsc.compiler.verify.exhaustion import exhaustion
from nsc.compiler.verify.lint import lint
from nsc.compiler.verify.merges import merges
from nsc.compiler.verify.pairwise import pairwise
from nsc.compiler.verify.primitive import primitive
from nsc.compiler.verify.proof import Proof, Vector, Verdict
from nsc.compiler.verify.property import Property, sort
from nsc.compiler.verify.question import Budget, BudgetError, Question, question_of
from nsc.compiler.verify.reachable import reachable_sets
from nsc.compiler.verify.sat import MOST_COMPARATORS, sat
from nsc.errors import PropertyError
from nsc.wording import count

RANDOM_INPUTS = 4096
_RANDOM_VALUES = 1 << 21
# From this many wires on a sample takes longer than these methods, which then go before it.
_MANY_WIRES = 2048
_BEFORE_A_SAMPLE = ("primitive", "pairwise", "merges")

METHODS: dict[str, Method] = {
    "lint": lint,
    "primitive": primitive,
    "exhaustion": exhaustion,
    "pairwise": pairwise,
    "merges": merges,
    "reachable sets": reachable_sets,
    "SAT": sat,
}

# What a trial of a network of many wires uses: to state a large question to SAT takes seconds.
TRIAL_METHODS = ("lint", "primitive", "exhaustion", "pairwise", "merges", "reachable sets")


def verify(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Decide whether a network has a property, for every input.

    Args:
        network: any network; reversed comparators keep their meaning.
        property_: the property; None: the outputs ascend, wire 0 the smallest.
        budget: limits of the methods; None: `Budget()`.
        methods: keys of METHODS to use, after a sample of inputs; empty: only the sample; None: all.

    Raises:
        PropertyError: the property has another number of wires, or a method is unknown.

    Cost: O(size) and a sample of 0-1 inputs; then the methods in order, until one settles the network.
    """
    return decide(network, property_, budget, methods)[0]


def decide(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> tuple[Proof, Question, tuple[Step, ...]]:
    """Return what `verify` does, the question that it decided, and the steps of the proof."""
    property_ = sort(network.n) if property_ is None else property_
    is_list = isinstance(methods, Collection) and not isinstance(methods, str)
    if methods is not None and not (is_list and all(is_name(name, METHODS) for name in methods)):
        raise PropertyError(f"methods must be some of {', '.join(METHODS)}, got {methods!r}")
    if property_.n != network.n:
        raise PropertyError(
            f"{property_.name} is a property of {count(property_.n, 'wire')}, the network has {network.n}"
        )
    start = time.perf_counter()
    digest = canonical(network).digest
    question = question_of(network, property_, Budget() if budget is None else budget)
    progress = question.budget.progress
    reasons: list[str] = []
    steps: tuple[Step, ...] = ()

    def outcome(name: str) -> Proof | None:
        """Return what a method finds; None if it does not settle the network, with a reason if it has one."""
        nonlocal steps
        progress.phase(f"prove by {name}")
        try:
            answer = METHODS[name](question)
        except BudgetError as limit:
            reasons.append(f"{name} ended at {limit}")
            return None
        if answer is None:
            return None
        if answer.failing is not None:
            return _refuted(network, digest, property_, answer.failing, name, "found by an exact method")
        steps = answer.steps
        return Proof(
            Verdict.PROVED,
            property_.name,
            name,
            f"untangled to standard form; {answer.proved}" if question.tangled else str(answer.proved),
            digest,
            answer.states,
            answer.conflicts,
            time.perf_counter() - start,
        )

    names = [name for name in METHODS if methods is None or name in methods]
    for name in _BEFORE_A_SAMPLE if network.n >= _MANY_WIRES else ():
        if name in names:
            names.remove(name)
            if (proof := outcome(name)) is not None:
                return proof, question, steps
    progress.phase("prove by sampling")
    ranks, runs = question.ranks, question.runs
    sampled = 0
    random_count = min(RANDOM_INPUTS, _RANDOM_VALUES // network.n)
    try:
        for inputs in zero_one.sample_inputs(network.n, random_count, tuple(ranks.values()), runs):
            wrong = zero_one.first_wrong_vector(question.network, ranks, inputs)
            if wrong is not None:
                vector = tuple(inputs[wrong].astype(int).tolist())
                found = f"0-1 input {sampled + wrong} tried fails"
                return _refuted(network, digest, property_, vector, "sampling", found), question, ()
            sampled += len(inputs)
            progress.count("0-1 inputs", sampled)
            if network.n >= _MANY_WIRES:
                question.budget.check()
    except BudgetError as limit:
        reasons.append(f"sampling ended at {limit}")
    for name in names:
        if (proof := outcome(name)) is not None:
            return proof, question, steps
    size = question.network.size
    if size > MOST_COMPARATORS:
        reasons.append(f"SAT takes at most {MOST_COMPARATORS:,} comparators, these are {size:,}")
    unproved = "; ".join(reasons) or "no exact method applies"
    proof = Proof(
        Verdict.UNPROVED,
        property_.name,
        "sampling",
        f"{sampled:,} structured and random 0-1 inputs passed; {unproved}",
        digest,
        seconds=time.perf_counter() - start,
    )
    return proof, question, ()


def _refuted(
    network: Network, digest: str, property_: Property, vector: Vector, method: str, detail: str
) -> Proof:
    assert property_.fails(network, np.array([vector], dtype=bool)).all()
    failing = zero_one.permutation_of(vector)
    return Proof(
        Verdict.REFUTED,
        property_.name,
        method,
        detail,
        digest,
        counterexample=vector,
        failing_input=failing,
    )


__all__ = ["METHODS", "TRIAL_METHODS", "Question", "decide", "verify"]
