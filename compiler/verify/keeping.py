"""Keeping: proofs that were found once, for programs that use the same network again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace

from nsc.compiler.network import Network
from nsc.compiler.passes.canonical import canonical
from nsc.compiler.verify.ladder import verify
from nsc.compiler.verify.proof import Proof, Verdict
from nsc.compiler.verify.property import Property, sort
from nsc.compiler.verify.question import Budget
from nsc.errors import PropertyError


def verify_once(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Return the proof that the budget's archive keeps of a network; else verify the network and keep it.

    An UNPROVED network is kept only after a trial: with another budget, or more installed, it may be proved.

    Args:
        network, property_, methods: as of `verify`.
        budget: as of `verify`; without an archive nothing is kept.
    """
    property_ = sort(network.n) if property_ is None else property_
    budget = Budget() if budget is None else budget
    archive = budget.archive
    if archive is None:
        return replace(verify(network, property_, budget, methods), seconds=None)
    name = _name(network, property_, budget, methods)
    kept = _read(archive.read(name))
    if kept is not None and (kept.property, kept.canonical) == (property_.name, canonical(network).digest):
        return kept
    proof = replace(verify(network, property_, budget, methods), seconds=None)
    if proof.verdict is Verdict.PROVED or (proof.verdict is Verdict.UNPROVED and budget.is_trial):
        archive.write(name, proof.to_json())
    return proof


def _name(network: Network, property_: Property, budget: Budget, methods: Collection[str] | None) -> str:
    """Return a name that only the same network, property and counts share."""
    allowed = None if methods is None else sorted(methods)
    asked = (network.digest, property_.name, allowed, budget.states, budget.propagations, budget.memory)
    return f"proof-{network.n}-{hashlib.sha256(repr(asked).encode()).hexdigest()[:24]}"


def _read(text: str | None) -> Proof | None:
    try:
        return None if text is None else Proof.from_json(text)
    except PropertyError:
        return None
