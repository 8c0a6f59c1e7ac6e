"""The stages of the compiler, once in words and once as calls."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass, replace

from nsc.compiler.describe import describe, is_family
from nsc.compiler.network import Network
from nsc.compiler.optimize import MOST_OPTIMIZED, remove_redundant, smallest_first
from nsc.compiler.package import Package
from nsc.compiler.passes import relayer, restrict
from nsc.compiler.relaxed.rendering import render
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule, schedule
from nsc.compiler.verify import TRIAL_METHODS, Budget, Proof, Property, Verdict, verify_once
from nsc.compiler.verify.question import BudgetError
from nsc.compiler.verify.reachable import FEW_STATES
from nsc.compiler.verify.sat import FEW_PROPAGATIONS
from nsc.errors import UnprovedError, VerificationError
from nsc.wording import argument


@dataclass(frozen=True)
class Compiled:
    """The results of the stages for a request.

    Attributes:
        network: the compiled network: the one requested, or the part of it that the selected values need.
        proof: the proof that it does what it is compiled for.
        package: the generated texts.
    """

    network: Network
    proof: Proof
    package: Package


def compile_network(request: Request, budget: Budget | None = None) -> Compiled:
    """Describe, transform, prove, schedule, render.

    describe:  family, file or lists → Network
    transform: Network + Property → Network, the part that the wanted values need
    prove:     Network + Property → Proof; a refuted network is refused, an unproved one too unless the
               request accepts it; for a few selections there are several networks to try
    schedule:  Network + outputs → Schedule
    render:    Schedule + Relaxation → Package, the texts of the generated folder

    `package.write` puts the result on disk.

    Args:
        request: what to compile.
        budget: what proofs may take, and who is told of the stages; None: the defaults, and nobody.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: ranks or wires that the network does not have.
        VerificationError: the network does not sort, or does not select what it should.
        UnprovedError: no method settled it, and the request does not accept that.
    """
    budget = Budget() if budget is None else budget
    scheduled, proof = scheduled_network(request, budget)
    budget.progress.phase("render")
    return Compiled(scheduled.network, proof, render(request, scheduled, proof))


def scheduled_network(request: Request, budget: Budget) -> tuple[Schedule, Proof]:
    """Return the schedule of a request's network, with its proof: all stages but the last."""
    described = describe(request.network, request.n, request.format, request.index_base, budget.progress)
    property_ = request.property_of(described.n)
    budget.progress.phase("transform")
    network, proof = _first_that_holds(described, property_, request, budget)
    budget.progress.phase("schedule")
    return _scheduled(network, request), proof


def compile_again(network: Network, proof: Proof, request: Request) -> Package:
    """Schedule and render a network that was compiled and proved before, for other types or targets.

    Args:
        network: the compiled network.
        proof: that it does what the request says.
        request: for this network, as it stands.
    """
    return render(request, _scheduled(network, request), proof)


def _scheduled(network: Network, request: Request) -> Schedule:
    outputs = request.outputs(network.n)
    return schedule(network, None if outputs is None else tuple(outputs))


def _first_that_holds(
    network: Network, property_: Property, request: Request, budget: Budget
) -> tuple[Network, Proof]:
    """Return the first candidate that has the property, transformed, with its proof.

    Most requests have one candidate, the network itself. Two kinds of selection have more:

    - A selection from `best` has every network that nsc can construct for its ranks. Candidates with fewer
      half operations (minima and maxima) come first. There are many, so each proof gets a small budget. If
      no proof succeeds, the first candidate is tried with the whole budget. If the request accepts unproved
      networks, only this last try is made.
    - A selection of two neighbouring ranks has two candidates: the network, and the network with one more
      comparator at its end, of the two selected wires. This comparator is for networks that leave the two
      values in any order, such as those for the median of an even number.
    """

    def proved(
        network: Network, budget: Budget, methods: Collection[str] | None = None
    ) -> tuple[Network, Proof]:
        network = transform(network, property_, request.remove_redundant, budget)
        return network, prove(network, property_, request.unproved, budget, methods)

    if request.select is None:
        return proved(network, budget)
    if is_family(request.network) and request.network == "best":
        networks = smallest_first(property_)
        methods = None if property_.n <= MOST_OPTIMIZED else TRIAL_METHODS
        quick = replace(budget, states=FEW_STATES, propagations=FEW_PROPAGATIONS)
        for smaller in () if request.unproved else networks:
            with contextlib.suppress(UnprovedError):
                return proved(smaller, quick, methods)
        return proved(networks[0], budget)
    ranks = request.select.ranks
    if len(ranks) != 2 or max(ranks) - min(ranks) != 1:
        return proved(network, budget)
    try:
        return proved(network, budget)
    except VerificationError:
        lower, upper = sorted(property_.ranks, key=property_.ranks.__getitem__)
        return proved(Network.from_layers(network.n, [*network.layers(), [(lower, upper)]]), budget)


def transform(network: Network, property_: Property, remove: bool, budget: Budget) -> Network:
    """Return the part of a network that the wanted values need; a network that sorts stays as it is.

    Args:
        network: any network.
        property_: what it is compiled for.
        remove: whether comparators that exact results do not need are removed.
        budget: what the search for these may take.

    Raises:
        UnprovedError: the search ended at the budget.
    """
    if remove:
        try:
            network = remove_redundant(network, property_, budget)
        except BudgetError as limit:
            raise UnprovedError(
                f"redundant comparators are found by reachable sets, which ended at {limit}: compile "
                f"without {argument('remove_redundant', True)}"
            ) from None
    elif property_.is_sort:
        return network
    return relayer(restrict(network, property_.ranks))


def prove(
    network: Network,
    property_: Property | None = None,
    unproved: bool = False,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Return the proof that a network has a property.

    Args:
        network: any network.
        property_: what it should do; None: sort.
        unproved: whether a network that no method settled is accepted.
        budget, methods: as `verify` takes them.

    Raises:
        VerificationError: it lacks the property; the message and the error carry a counterexample.
        UnprovedError: no method settled it, and `unproved` is false.
    """
    proof = verify_once(network, property_, budget, methods)
    claim = "sort" if proof.property == "sort" else f"select {proof.property}"
    if proof.verdict is Verdict.REFUTED:
        assert proof.counterexample is not None
        assert proof.failing_input is not None
        raise VerificationError(
            f"the network does not {claim}: 0-1 input {_vector(proof.counterexample)} and integer "
            f"input {_vector(proof.failing_input)} come out "
            f"{'unsorted' if proof.property == 'sort' else 'wrong'}",
            proof.counterexample,
            proof.failing_input,
        )
    if proof.verdict is Verdict.UNPROVED and not unproved:
        raise UnprovedError(
            f"the network is unproved: {proof.detail}. To compile it all the same, on your word that "
            f"it {'sorts' if proof.property == 'sort' else f'selects {proof.property}'}, add "
            f"{argument('unproved', True)}"
        )
    return proof


def _vector(values: tuple[int, ...]) -> str:
    shown = " ".join(map(str, values[:64]))
    return shown if len(values) <= 64 else f"{shown} … ({len(values)} values)"
