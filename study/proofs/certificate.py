"""Certificate: a proof as a text that a program can check which shares nothing with nsc.

The page Certificates defines the format, and says why each rule is sound.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise

from nsc.arguments import path_of
from nsc.compiler.describe import Named, describe
from nsc.compiler.driver import Compiled, compile_again
from nsc.compiler.formats import save
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.verify.ladder import decide
from nsc.compiler.verify.ladder import verify as verify_network
from nsc.compiler.verify.proof import Proof
from nsc.compiler.verify.property import Property, RankGroup, property_of
from nsc.compiler.verify.question import Budget, Inside, Join, Merge, Question, Step, sorted_groups
from nsc.errors import NetworkError, UnprovedError
from nsc.join.budget import MAX_MEMORY, budget_of

CERTIFICATE_FORMAT = "nsc-certificate 1"
# The format's name for the proof of each method.
_PROOFS = {
    "primitive": "primitive",
    "exhaustion": "exhaustion",
    "merges": "merges",
    "reachable sets": "patterns",
    "SAT": "clauses",
}
_FILLS = {0: "none", 1: "above", -1: "below"}


class _Numbers:
    """The numbers of comparators and variables in a text, given those in the question's network.

    The question's network is in standard form, and may lack comparators that no output depends on. On every
    wire it has the first comparators of the whole network in standard form.
    """

    def __init__(self, network: Network, behind: Iterable[tuple[int, int]], question: Question) -> None:
        self._inputs = network.n
        place = list(range(network.n))
        on_wire: list[list[int]] = [[] for _ in range(network.n)]
        for number, (lo, hi) in enumerate([*network.comparators.tolist(), *behind]):
            low, high = place[lo], place[hi]
            on_wire[low].append(number)
            on_wire[high].append(number)
            if low > high:
                place[lo], place[hi] = high, low
        passed = [0] * network.n
        self._numbers: list[int] = []
        for lo, hi in question.network.comparators.tolist():
            self._numbers.append(on_wire[lo][passed[lo]])
            passed[lo] += 1
            passed[hi] += 1

    def comparator(self, index: int) -> int:
        """Return the number of a comparator."""
        return self._numbers[index]

    def literal(self, literal: int) -> int:
        """Return a literal: a comparator has two variables, which come behind the variables of the inputs."""
        index, which = divmod(abs(literal) - self._inputs - 1, 2)
        if not 0 <= index < len(self._numbers):
            return literal
        variable = self._inputs + 1 + 2 * self._numbers[index] + which
        return variable if literal > 0 else -variable


def verify(
    network: Named,
    n: int | None = None,
    *,
    property: str | Property = "sort",
    methods: Collection[str] | None = None,
    format: str | None = None,
    index_base: int | None = None,
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
    certificate: str | os.PathLike[str] | None = None,
) -> Proof:
    """Decide whether a network sorts, or has another property, for every input.

    Args:
        network, n, format, index_base: the network, as in `compile`.
        property: "sort", or another as `nsc verify --property` takes it, such as "median" or "top-8".
        methods: names of methods to use alone; None: all.
        max_memory: MB that the method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: each method counts its steps, so that the
            verdict is the same on every machine.
        certificate: a file for the proof as a text that tools/check_certificate.py checks; nothing is
            written if the network is not proved. None: no file.

    Raises:
        NetworkError: no such family or file, or no network in it; a certificate that cannot be written.
        PropertyError: no such property, a property of another number of wires, an unknown method, or a limit
            that is no number of its kind.

    >>> verify("bitonic", 8).sentence(), verify([(0, 1)], 3).sentence()
    ('sorts', 'does not sort')
    """
    budget = budget_of(max_memory, time_limit)
    described = describe(network, n, format, index_base)
    property_ = property_of(property, described.n)
    if certificate is None:
        return verify_network(described, property_, budget, methods)
    file = path_of("a certificate's file", certificate, NetworkError)
    proof, text = certify(described, property_, budget, methods)
    if text is not None:
        save(text.encode(), file)
    return proof


def certify(
    network: Network, property_: Property, budget: Budget, methods: Collection[str] | None = None
) -> tuple[Proof, str | None]:
    """Verify a network by a proof that others can check.

    Args:
        network, property_, budget, methods: as in `verify`.

    Returns:
        The proof with the digest of its certificate, and the certificate's text; None if it is not proved.

    Raises:
        PropertyError: as `verify`.

    Cost: as `verify`; the text has about ten bytes a comparator.
    """
    if property_.off_by:  # the checkers know exact ranks alone
        return decide(network, property_, budget, methods)[0], None
    proof, question, steps = decide(network, property_, replace(budget, certify=True), methods)
    if not proof:
        return proof, None
    lines = _lines(network, property_, question, proof.method, steps)
    text = "".join(f"{line}\n" for line in lines)
    return replace(proof, certificate=hashlib.sha256(text.encode()).hexdigest()), text


def certified(compiled: Compiled, request: Request, budget: Budget) -> tuple[Compiled, str]:
    """Return what was compiled, with a proof that others can check, and the certificate's text.

    Raises:
        UnprovedError: no method that has certificates settled it.

    Cost: another proof.
    """
    proof, certificate = certify(compiled.network, request.property_of(compiled.network.n), budget)
    if certificate is None:
        raise UnprovedError(f"{proof.sentence()}: {proof.detail}; there is no certificate")
    return replace(
        compiled, proof=proof, package=compile_again(compiled.network, proof, request)
    ), certificate


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
    numbers: _Numbers | None = None
    for step in steps:
        if isinstance(step, Merge):
            yield _words("merge", step.network, _FILLS[step.fill], step.a, step.b)
            continue
        # Networks of millions of comparators have merges alone, which need none of these numbers.
        numbers = numbers or _Numbers(network, behind, question)
        if isinstance(step, Inside):
            yield _words("inside", numbers.comparator(step.comparator))
        elif isinstance(step, Join):
            yield _words("join", numbers.comparator(step.comparator), step.patterns)
        else:
            yield _words(*map(numbers.literal, step.literals), 0)
    yield "end"


def _words(*words: object) -> str:
    return " ".join(map(str, words))


def _comparators(word: str, pairs: Iterable[Collection[int]]) -> str:
    return _words(word, *(f"{lo}:{hi}" for lo, hi in pairs))


def _ascending(groups: Iterable[RankGroup]) -> list[list[RankGroup]]:
    """Return groups by their ranks; groups of one wire are together where their ranks follow each other."""
    ordered = sorted(groups, key=lambda group: group.first)
    together = [ordered[:1]]
    for before, group in pairwise(ordered):
        if len(before.wires) == len(group.wires) == 1 and before.first + 1 == group.first:
            together[-1].append(group)
        else:
            together.append([group])
    return together
