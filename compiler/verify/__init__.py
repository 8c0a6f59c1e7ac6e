"""Verification: whether a network has a property: proved, refuted or unproved."""

from nsc.compiler.verify.certificate import CERTIFICATE_FORMAT, certify
from nsc.compiler.verify.check import check_proof, read_proof
from nsc.compiler.verify.emitted import MANY_WIRES, Emitted, Run, check_emitted, stable_order
from nsc.compiler.verify.failure import Failure, Mend, diagnose
from nsc.compiler.verify.keeping import verify_once
from nsc.compiler.verify.ladder import METHODS, TRIAL_METHODS, verify
from nsc.compiler.verify.proof import CANONICAL_DIGEST, CERTIFICATE_DIGEST, NETWORK_DIGEST, Proof, Verdict
from nsc.compiler.verify.property import FORMS, Property, parse, property_of, sort
from nsc.compiler.verify.question import Archive, Budget

__all__ = [
    "CANONICAL_DIGEST",
    "CERTIFICATE_DIGEST",
    "CERTIFICATE_FORMAT",
    "FORMS",
    "MANY_WIRES",
    "METHODS",
    "NETWORK_DIGEST",
    "TRIAL_METHODS",
    "Archive",
    "Budget",
    "Emitted",
    "Failure",
    "Mend",
    "Proof",
    "Property",
    "Run",
    "Verdict",
    "certify",
    "check_emitted",
    "check_proof",
    "diagnose",
    "parse",
    "property_of",
    "read_proof",
    "sort",
    "stable_order",
    "verify",
    "verify_once",
]
