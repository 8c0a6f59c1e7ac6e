"""nsc.verify: whether a network has a property, with a certificate if one is asked for."""

from __future__ import annotations

import os
from collections.abc import Collection

from nsc.arguments import path_of
from nsc.compiler.describe import Named, describe
from nsc.compiler.formats import save
from nsc.compiler.verify import Proof, Property, property_of
from nsc.compiler.verify import verify as verify_network
from nsc.errors import NetworkError
from nsc.join.budget import MAX_MEMORY, budget_of
from nsc.study.proofs.certificate import certify

__all__ = ["verify"]


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
