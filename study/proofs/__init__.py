"""Proofs that leave the process: `nsc.verify` in Python, and certificates for checkers without nsc's code."""

from nsc.study.proofs.certificate import certified, certify

__all__ = ["certified", "certify"]
