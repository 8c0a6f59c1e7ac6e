"""Verification: a proof that a network sorts, a counterexample, or an honest "unproved".

Deciding it is co-NP-complete in general, so exact methods are tried from the cheapest, and what
none settles within its budget is UNPROVED, never "ok".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np

from nsc.compiler import reachable, zero_one
from nsc.compiler.network import Network
from nsc.compiler.passes import untangle
from nsc.compiler.zero_one import Vector

# 2^20 inputs of some hundred comparators take about 0.1 s; beyond, reachable sets come first.
EXHAUSTIVE_WIRES = 20
RANDOM_INPUTS = 4096


class Verdict(Enum):
    """What verification says of a network."""

    SORTS = "sorts"
    DOES_NOT_SORT = "does not sort"
    UNPROVED = "unproved"


@dataclass(frozen=True)
class Proof:
    """The outcome of a verification.

    Attributes:
        verdict: sorts, does not sort, or unproved.
        method: which method settled it, a key of METHODS, or "sampling".
        detail: what was done, in one sentence with its figures.
        network: digest of the network it speaks of.
        counterexample: a 0-1 input that comes out unsorted, if the network does not sort.
        failing_input: a permutation of 0 … n-1 that comes out unsorted, likewise.
    """

    verdict: Verdict
    method: str
    detail: str
    network: str
    counterexample: Vector | None = None
    failing_input: Vector | None = None

    def __post_init__(self) -> None:
        assert (self.verdict is Verdict.DOES_NOT_SORT) == (self.counterexample is not None)

    def to_json(self) -> str:
        """Return the proof as JSON text; the same proof, the same bytes."""
        data = {"format": "nsc-proof/1", **self.__dict__, "verdict": self.verdict.value}
        return json.dumps(data, indent=1) + "\n"


def verify(network: Network) -> Proof:
    """Decide whether a network sorts every input ascending, wire 0 the smallest.

    Cost: O(size) and a sample of 0-1 inputs first; then the first method that applies. Bitonic and
    odd-even merge networks on 1,024 wires take about a second, as does odd-even transposition.
    """
    sampled = 0
    for inputs in zero_one.sample_inputs(network.n, RANDOM_INPUTS):
        found = zero_one.first_unsorted(network, zero_one.pack(inputs), len(inputs))
        if found is not None:
            vector = tuple(inputs[found].astype(int).tolist())
            return _refuted(network, vector, "sampling", f"0-1 input {sampled + found} tried fails")
        sampled += len(inputs)
    tangled = bool((network.comparators[:, 0] > network.comparators[:, 1]).any())
    standard = network
    if tangled:
        # The sorted 0-1 inputs are among the samples, so untangling ends with the identity here.
        standard, outputs = untangle(network)
        assert (outputs == np.arange(network.n)).all()
    for name, method in METHODS.items():
        result = method(standard)
        if isinstance(result, str):
            detail = f"untangled to standard form; {result}" if tangled else result
            return Proof(Verdict.SORTS, name, detail, network.digest)
        if result is not None:
            return _refuted(network, result, name, "found by an exact method")
    return Proof(
        Verdict.UNPROVED,
        "sampling",
        f"{sampled:,} structured and random 0-1 inputs passed; no exact method fits the budget",
        network.digest,
    )


def _refuted(network: Network, vector: Vector, method: str, detail: str) -> Proof:
    failing_input = zero_one.permutation_of(vector)
    for example in (vector, failing_input):
        assert (np.diff(network.apply(np.array(example))) < 0).any()
    return Proof(Verdict.DOES_NOT_SORT, method, detail, network.digest, vector, failing_input)


# A method takes a network in standard form and returns a sentence that it sorts, a 0-1 input that
# comes out unsorted, or None when it does not apply or its budget is spent.
Method = Callable[[Network], str | Vector | None]


def _trivial(network: Network) -> str | None:
    return "one wire is always sorted" if network.n == 1 else None


def _primitive(network: Network) -> str | Vector | None:
    """A network of neighbours only sorts iff it sorts n, n-1, …, 1.

    Source: de Bruijn 1974; Knuth 5.3.4, exercise 36.
    """
    if (np.diff(network.comparators, axis=1) != 1).any():
        return None
    out = network.apply(np.arange(network.n)[::-1])
    wrong = np.flatnonzero(np.diff(out) < 0)
    if len(wrong):
        threshold = int(out[wrong[0]])
        return tuple(int(value >= threshold) for value in range(network.n)[::-1])
    return f"only neighbours are compared, and the reversed input of {network.n} values comes out sorted"


def _exhaustive(network: Network) -> str | Vector | None:
    if network.n > EXHAUSTIVE_WIRES:
        return None
    return zero_one.exhaust(network) or f"all 2^{network.n} 0-1 inputs come out sorted"


def _reachable_sets(network: Network) -> str | Vector | None:
    try:
        outcome = reachable.search(network)
    except reachable.BudgetError:
        return None
    if outcome.failing is not None:
        return outcome.failing
    return f"every reachable 0-1 pattern is sorted; at most {outcome.peak:,} in one component"


METHODS: dict[str, Method] = {
    "trivial": _trivial,
    "primitive": _primitive,
    "exhaustive": _exhaustive,
    "reachable sets": _reachable_sets,
}
