"""Saved proofs: read, checked against a network, and kept for programs that use the same network again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.passes import canonical
from nsc.compiler.verify.ladder import METHODS, verify
from nsc.compiler.verify.proof import CANONICAL_DIGEST, Proof, Verdict
from nsc.compiler.verify.property import Property, parse, sort
from nsc.compiler.verify.question import Budget
from nsc.compiler.verify.zero_one import permutation_of
from nsc.errors import PropertyError

_MOST_BYTES = 1 << 24


def read_proof(path: Path) -> Proof:
    """Read a proof from a file.

    Raises:
        PropertyError: the file cannot be read or holds no proof.
    """
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(_MOST_BYTES)
    except (OSError, ValueError) as error:
        raise PropertyError(f"cannot read the proof {path}: {error}") from None
    try:
        return Proof.from_json(text)
    except PropertyError as error:
        raise PropertyError(f"{path}: {error}") from None


def check_proof(network: Network, proof: Proof, property_: Property | None = None) -> Proof:
    """Return the proof if it belongs to the network, in any format or layering; its counterexample is run.

    Args:
        network: the network.
        proof: the saved proof.
        property_: the property that the proof must have; None: any.

    Raises:
        PropertyError: the proof is of another network or property, or a change of its contents shows.
    """
    digest = canonical(network).digest
    if proof.canonical != digest:
        raise PropertyError(
            f"the proof is of another network: the {CANONICAL_DIGEST} is {proof.canonical[:12]}…, here "
            f"{digest[:12]}…: verify this one"
        )
    try:
        claim = parse(proof.property, network.n)
    except PropertyError as error:
        raise PropertyError(f'the proof was changed: "property": {error}') from None
    if proof.method not in (*METHODS, "sampling"):
        raise PropertyError(
            f'the proof was changed: "method" is one of {", ".join(METHODS)}, sampling; found '
            f"{proof.method[:40]!r}"
        )
    if property_ is not None and claim.name != property_.name:
        raise PropertyError(
            f"the proof is of the property {claim.name!r}, not of {property_.name!r}: verify it again"
        )
    if proof.counterexample is not None:
        vector = np.array([proof.counterexample])
        fits = vector.shape == (1, network.n) and bool(np.isin(vector, (0, 1)).all())
        if not fits or not claim.fails(network, vector.astype(bool)).all():
            raise PropertyError(
                'the proof was changed: its "counterexample" is not a 0-1 input that comes out wrong'
            )
        if proof.failing_input != permutation_of(proof.counterexample):
            raise PropertyError(
                'the proof was changed: its "failing_input" is not a permutation that comes out wrong'
            )
    return proof


def verify_once(
    network: Network,
    property_: Property | None = None,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Return the proof that the budget's archive keeps of a network; else verify the network and keep it.

    An UNPROVED network is kept only after a trial: with another budget, or more installed, it may be proved.

    Args:
        network, property_, methods: as in `verify`.
        budget: as in `verify`; without an archive nothing is kept.
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
