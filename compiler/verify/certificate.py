"""Certificate: a proof as a text that a program can check which shares nothing with nsc.

The page Certificates defines the format, and says why each rule is sound.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.verify.answer import Clause, Inside, Join, Merge, Step
from nsc.compiler.verify.ladder import decide
from nsc.compiler.verify.proof import Proof
from nsc.compiler.verify.property import Property, RankGroup, sort
from nsc.compiler.verify.question import Budget, Question, sorted_groups

CERTIFICATE_FORMAT = "nsc-certificate 1"
# What the format calls the proof of each method.
_PROOFS = {
    "lint": "exhaustion",
    "primitive": "primitive",
    "exhaustion": "exhaustion",
    "merges": "merges",
    "reachable sets": "patterns",
    "SAT": "clauses",
    "depth-first search": "exhaustion",
}
_FILLS = {0: "none", 1: "above", -1: "below"}

# The number of a comparator in a text, given its number in the question's network.
Numbers = Callable[[int], int]
_STEPS: dict[type[Any], Callable[[Any, Numbers], tuple[object, ...]]] = {
    Merge: lambda step, _: ("merge", step.network, _FILLS[step.fill], step.a, step.b),
    Inside: lambda step, number: ("inside", number(step.comparator)),
    Join: lambda step, number: ("join", number(step.comparator), step.patterns),
    Clause: lambda step, _: (*step.literals, 0),
}


def certify(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> tuple[Proof, str | None]:
    """Verify a network by a proof that others can check.

    Args:
        network, property_, budget, methods: as of `verify`.

    Returns:
        The proof with the digest of its certificate, and the certificate's text; None if it is not proved.

    Raises:
        PropertyError: as `verify`.

    Cost: as of `verify`; the text has about ten bytes a comparator.
    """
    property_ = sort(network.n) if property_ is None else property_
    budget = replace(Budget() if budget is None else budget, certify=True)
    proof, question, steps = decide(network, property_, budget, methods)
    if not proof:
        return proof, None
    lines = _lines(network, property_, question, proof.method, steps)
    text = "".join(f"{line}\n" for line in lines)
    return replace(proof, certificate=hashlib.sha256(text.encode()).hexdigest()), text


def _lines(
    network: Network, property_: Property, question: Question, method: str, steps: Iterable[Step]
) -> Iterator[str]:
    yield CERTIFICATE_FORMAT
    yield f"wires {network.n}"
    for layer in network.layers():
        if len(layer):
            yield _comparators("layer", layer.tolist())
    for run in property_.presorted:
        if len(run) > 1:
            yield _words("presorted", *run)
    for groups in _ascending(property_.groups):
        word = "ranks" if len(groups[0].wires) == 1 else "set"
        yield _words(word, groups[0].first, *(wire for group in groups for wire in group.wires))
    behind, _ = sorted_groups(property_)
    if behind:
        yield _comparators("behind", behind)
    yield f"proof {_PROOFS[method]}"
    number = _numbers(question)
    for step in steps:
        yield _words(*_STEPS[type(step)](step, number))
    yield "end"


def _words(*words: object) -> str:
    return " ".join(map(str, words))


def _comparators(word: str, pairs: Iterable[Collection[int]]) -> str:
    return _words(word, *(f"{lo}:{hi}" for lo, hi in pairs))


def _ascending(groups: Iterable[RankGroup]) -> list[list[RankGroup]]:
    """Return groups by their ranks, those of one wire together where their ranks follow each other."""
    ordered = sorted(groups, key=lambda group: group.first)
    together = [ordered[:1]]
    for before, group in pairwise(ordered):
        if len(before.wires) == len(group.wires) == 1 and before.first + 1 == group.first:
            together[-1].append(group)
        else:
            together.append([group])
    return together


def _numbers(question: Question) -> Numbers:
    """Return the number in the whole network of each comparator of the question's network.

    On each wire the question's network has the first comparators of the whole one.
    """
    if question.network.size == question.whole.size:
        return lambda comparator: comparator
    on_wire: list[list[int]] = [[] for _ in range(question.whole.n)]
    for index, (lo, hi) in enumerate(question.whole.comparators.tolist()):
        on_wire[lo].append(index)
        on_wire[hi].append(index)
    passed = np.zeros(question.whole.n, np.int64)
    numbers = []
    for lo, hi in question.network.comparators.tolist():
        numbers.append(on_wire[lo][passed[lo]])
        passed[[lo, hi]] += 1
    return numbers.__getitem__
