"""The ladder: exact methods, the cheapest first.

Deciding a property is co-NP-complete in general. If no method settles a network within its budget, the
verdict is UNPROVED.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import numpy as np

from nsc.arguments import is_name
from nsc.compiler.network import Network
from nsc.compiler.passes import canonical
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.merges import merges, pairwise
from nsc.compiler.verify.proof import Proof, Verdict
from nsc.compiler.verify.property import Property, sort
from nsc.compiler.verify.question import Answer, Budget, BudgetError, Method, Question, Step, question_of
from nsc.compiler.verify.reachable import reachable_sets
from nsc.compiler.verify.sat import MOST_COMPARATORS, sat
from nsc.compiler.verify.zero_one import permutation_of
from nsc.errors import PropertyError
from nsc.wording import count

RANDOM_INPUTS = 4096
_RANDOM_VALUES = 1 << 21
# From this many wires on a sample takes longer than these methods, which then go before it.
_MANY_WIRES = 2048
_BEFORE_A_SAMPLE = ("primitive", "pairwise", "merges")

METHODS: dict[str, Method] = {
    "primitive": zero_one.primitive,
    "exhaustion": zero_one.exhaustion,
    "pairwise": pairwise,
    "merges": merges,
    "reachable sets": reachable_sets,
    "SAT": sat,
}

# A trial of a network of many wires uses these: to state a large question to SAT takes seconds.
TRIAL_METHODS = tuple(name for name in METHODS if name != "SAT")


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
    progress, ranks = question.budget.progress, question.ranks
    sampled = 0

    def proof(verdict: Verdict, method: str, detail: str, **facts: Any) -> Proof:
        return Proof(verdict, property_.name, method, detail, digest, **facts)

    def sample(question: Question) -> Answer | None:
        nonlocal sampled
        random_count = min(RANDOM_INPUTS, _RANDOM_VALUES // network.n)
        inputs_of = zero_one.sample_inputs(network.n, random_count, tuple(ranks.values()), question.runs)
        for inputs in inputs_of:
            wrong = zero_one.first_wrong_vector(question.network, ranks, inputs)
            sampled += len(inputs) if wrong is None else wrong
            if wrong is not None:
                return Answer(failing=tuple(inputs[wrong].astype(int).tolist()))
            progress.count("0-1 inputs", sampled)
            if network.n >= _MANY_WIRES:
                question.budget.check()
        return None

    names = [name for name in METHODS if methods is None or name in methods]
    before = [name for name in names if name in _BEFORE_A_SAMPLE and network.n >= _MANY_WIRES]
    reasons: list[str] = []
    for name in (*before, "sampling", *(name for name in names if name not in before)):
        progress.phase(f"prove by {name}")
        try:
            answer = sample(question) if name == "sampling" else METHODS[name](question)
        except BudgetError as limit:
            reasons.append(f"{name} ended at {limit}")
            continue
        if answer is not None and answer.failing is not None:
            assert property_.fails(network, np.array([answer.failing], dtype=bool)).all()
            detail = f"0-1 input {sampled} tried fails" if name == "sampling" else "found by an exact method"
            vectors = {"counterexample": answer.failing, "failing_input": permutation_of(answer.failing)}
            return proof(Verdict.REFUTED, name, detail, **vectors), question, ()
        if answer is not None:
            detail = (
                f"untangled to standard form; {answer.proved}" if question.tangled else str(answer.proved)
            )
            counts = {"states": answer.states, "conflicts": answer.conflicts}
            seconds = time.perf_counter() - start
            return proof(Verdict.PROVED, name, detail, **counts, seconds=seconds), question, answer.steps
    size = question.network.size
    if size > MOST_COMPARATORS:
        reasons.append(f"SAT takes at most {MOST_COMPARATORS:,} comparators, these are {size:,}")
    unproved = "; ".join(reasons) or "no exact method applies"
    detail = f"{sampled:,} structured and random 0-1 inputs passed; {unproved}"
    seconds = time.perf_counter() - start
    return proof(Verdict.UNPROVED, "sampling", detail, seconds=seconds), question, ()
