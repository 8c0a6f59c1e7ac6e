"""Verification: whether a network has a property: proved, refuted or unproved.

A property becomes one question: do some wires carry their ranks for every 0-1 input? A sample of
inputs comes first, then the cheapest exact method that applies (`ladder`). A proof names the digest of the
network's canonical form, so it holds in every format and layering. Nobody needs to trust the prover: a
certificate has the steps of a method, of few kinds, and a checker can follow each step from the text alone.
For a network that is wrong, `rank_errors` counts how often, and how far.

Commands, `nsc.verify` and `nsc.emit` prove anew. Operators and filters keep their proofs in the folder
of the build cache (`saved`), because every process would pay for them. A kept proof is trusted as much as
the libraries beside it: whoever can write there can run code in the process.
"""

from nsc.compiler.verify.emitted import MANY_WIRES, Emitted, Run, check_emitted, stable_order
from nsc.compiler.verify.failure import Failure, Mend, diagnose
from nsc.compiler.verify.ladder import METHODS, TRIAL_METHODS, verify
from nsc.compiler.verify.proof import CANONICAL_DIGEST, CERTIFICATE_DIGEST, NETWORK_DIGEST, Proof, Verdict
from nsc.compiler.verify.property import FORMS, Property, parse, property_of, sort
from nsc.compiler.verify.question import Budget
from nsc.compiler.verify.rank_errors import OutputErrors, RankErrors, rank_errors
from nsc.compiler.verify.saved import check_proof, read_proof, verify_once

__all__ = [
    "CANONICAL_DIGEST",
    "CERTIFICATE_DIGEST",
    "FORMS",
    "MANY_WIRES",
    "METHODS",
    "NETWORK_DIGEST",
    "TRIAL_METHODS",
    "Budget",
    "Emitted",
    "Failure",
    "Mend",
    "OutputErrors",
    "Proof",
    "Property",
    "RankErrors",
    "Run",
    "Verdict",
    "check_emitted",
    "check_proof",
    "diagnose",
    "parse",
    "property_of",
    "rank_errors",
    "read_proof",
    "sort",
    "stable_order",
    "verify",
    "verify_once",
]
