"""Check: whether a saved proof belongs to a network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nsc.compiler.network import Network
from nsc.compiler.passes.canonical import canonical
from nsc.compiler.verify.ladder import METHODS
from nsc.compiler.verify.proof import CANONICAL_DIGEST, Proof
from nsc.compiler.verify.property import Property, parse
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
        values = np.array(proof.failing_input)
        if sorted(values.tolist()) != list(range(network.n)) or not _fails(network, claim, values):
            raise PropertyError(
                'the proof was changed: its "failing_input" is not a permutation that comes out wrong'
            )
    return proof


def _fails(network: Network, claim: Property, values: npt.NDArray[np.int64]) -> bool:
    """Return whether a permutation comes out wrong."""
    out = network.apply(values)
    return any(
        sorted(out[list(group.wires)].tolist()) != list(range(group.first, group.first + len(group.wires)))
        for group in claim.groups
    )
