"""The ladder: exact methods from the cheapest, and an honest "unproved".

Deciding a property is co-NP-complete in general; what no method settles within its budget is
UNPROVED, never "ok".
"""

from __future__ import annotations

import time
from collections.abc import Collection

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.passes.canonical import canonical
from nsc.compiler.verify import zero_one
from nsc.compiler.verify.answer import Method
from nsc.compiler.verify.exhaustion import exhaustion
from nsc.compiler.verify.generated import generated_exhaustion
from nsc.compiler.verify.lint import lint
from nsc.compiler.verify.primitive import primitive
from nsc.compiler.verify.proof import Proof, Vector, Verdict
from nsc.compiler.verify.property import Property, sort
from nsc.compiler.verify.question import Budget, BudgetError, Question, question
from nsc.compiler.verify.reachable import reachable_sets
from nsc.compiler.verify.sat import MOST_COMPARATORS, is_installed, sat
from nsc.errors import PropertyError
from nsc.wording import argument, count

RANDOM_INPUTS = 4096
_RANDOM_VALUES = 1 << 21

METHODS: dict[str, Method] = {
    "lint": lint,
    "primitive": primitive,
    "exhaustion": exhaustion,
    "reachable sets": reachable_sets,
    "SAT": sat,
    "generated exhaustion": generated_exhaustion,
}

# The methods whose outcome does not depend on how fast the machine is, but for parts of a network that SAT
# settles only near its limit.
UNTIMED = ("lint", "primitive", "exhaustion", "reachable sets")


def verify(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Decide whether a network has a property, for every input.

    Args:
        network: any network; reversed comparators keep their meaning.
        property_: what is asked; None: whether it sorts ascending, wire 0 the smallest.
        budget: what may be spent.
        methods: keys of METHODS to go by alone, none for a sample of inputs; None: all.

    Raises:
        PropertyError: the property is one of another number of wires, or a method that is unknown.

    Cost: O(size) and a sample of 0-1 inputs first; then the first method that applies.
    """
    wanted = sort(network.n) if property_ is None else property_
    if not isinstance(wanted, Property):
        raise PropertyError(f"{argument('property')} must be text or a Property, got {wanted!r}")
    unknown = [] if methods is None else [name for name in methods if name not in METHODS]
    if isinstance(methods, str) or unknown:
        raise PropertyError(f"methods must be some of {', '.join(METHODS)}, got {methods!r}")
    if wanted.n != network.n:
        raise PropertyError(
            f"{wanted.name} is asked of {count(wanted.n, 'wire')}, the network has {network.n}"
        )
    start = time.perf_counter()
    digest = canonical(network).digest
    asked = question(network, wanted, Budget() if budget is None else budget)
    progress = asked.budget.progress
    progress.phase("prove by sampling")
    ranks, runs = asked.ranks, asked.runs
    sampled = 0
    random_count = min(RANDOM_INPUTS, _RANDOM_VALUES // network.n)
    for inputs in zero_one.sample_inputs(network.n, random_count, tuple(ranks.values()), runs):
        found = zero_one.first_wrong_vector(asked.network, ranks, inputs)
        if found is not None:
            vector = tuple(inputs[found].astype(int).tolist())
            return _refuted(
                network, digest, wanted, vector, "sampling", f"0-1 input {sampled + found} tried fails"
            )
        sampled += len(inputs)
        progress.count("0-1 inputs", sampled)
    spent = []
    for name, method in METHODS.items():
        if methods is not None and name not in methods:
            continue
        progress.phase(f"prove by {name}")
        try:
            answer = method(asked)
        except BudgetError as ended:
            spent.append(f"{name} ended at {ended}")
            continue
        if answer is None:
            continue
        if answer.failing is not None:
            return _refuted(network, digest, wanted, answer.failing, name, "found by an exact method")
        detail = f"untangled to standard form; {answer.proved}" if asked.tangled else str(answer.proved)
        return Proof(
            Verdict.PROVED,
            wanted.name,
            name,
            detail,
            digest,
            answer.states,
            answer.conflicts,
            time.perf_counter() - start,
        )
    if not is_installed():
        spent.append("SAT needs pip install 'nsc[verify]'")
    elif asked.network.size > MOST_COMPARATORS:
        spent.append(f"SAT takes at most {MOST_COMPARATORS:,} comparators, these are {asked.network.size:,}")
    why = "; ".join(spent) or "no exact method applies"
    return Proof(
        Verdict.UNPROVED,
        wanted.name,
        "sampling",
        f"{sampled:,} structured and random 0-1 inputs passed; {why}",
        digest,
        seconds=time.perf_counter() - start,
    )


def _refuted(
    network: Network, digest: str, wanted: Property, vector: Vector, method: str, detail: str
) -> Proof:
    assert wanted.fails(network, np.array([vector], dtype=bool)).all()
    failing = zero_one.permutation_of(vector)
    return Proof(
        Verdict.REFUTED,
        wanted.name,
        method,
        detail,
        digest,
        counterexample=vector,
        failing_input=failing,
    )


__all__ = ["METHODS", "UNTIMED", "Question", "verify"]
