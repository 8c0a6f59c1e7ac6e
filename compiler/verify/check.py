"""Check: whether a proof that was kept is of this network."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.passes.canonical import canonical
from nsc.compiler.verify.proof import Proof
from nsc.compiler.verify.property import parse
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


def check_proof(network: Network, proof: Proof) -> Proof:
    """Return the proof if it is of this network, however written down; a counterexample is tried.

    Raises:
        PropertyError: it is of another network, or its counterexample is none.
    """
    digest = canonical(network).digest
    if proof.network != digest:
        raise PropertyError(
            f"the proof is of network {proof.network[:12]}…, this one is {digest[:12]}… in canonical form: "
            "verify it anew"
        )
    asked = parse(proof.property, network.n)
    if proof.counterexample is not None:
        vector = np.array([proof.counterexample])
        fits = vector.shape == (1, network.n) and bool(np.isin(vector, (0, 1)).all())
        if not fits or not asked.fails(network, vector.astype(bool)).all():
            raise PropertyError("the proof's counterexample comes out right: verify the network anew")
    return proof
