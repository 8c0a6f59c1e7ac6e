"""Checks of built kernels: a package's functions and the exact kernel of its task, which calls run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from nsc.audit.check import Check, Claim
from nsc.audit.exact import on_negatives, run_in_every_way
from nsc.audit.relaxed import broken_law, run_exactly
from nsc.audit.relaxed_calls import RelaxedKernel
from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.verify import MANY_WIRES, Budget, Proof, Property, Run, check_emitted, parse
from nsc.contract.manifest import NETWORK, PROOF
from nsc.errors import PackageError
from nsc.join.on_demand import exact_kernel_of
from nsc.runtime.relaxed.kernel import Kernel

# Takes ten times as long for an input as an exact kernel.
_RELAXED = "values and P"
# The same where there are too many wires for P.
_RELAXED_OF_MANY = "values and ranks"


def relaxed_claim(files: Mapping[str, str]) -> Claim:
    """Return what a package of a relaxed network claims.

    Raises:
        PackageError: nsc did not write the files, or they were changed since.
    """
    kernel = Kernel(files)
    network = parse_network(files[NETWORK], format="nsc")
    property_ = parse(Proof.from_json(files[PROOF]).property, network.n)
    return Claim(network, property_, partial(_check, kernel, network, property_))


def _check(kernel: Kernel, network: Network, property_: Property, budget: Budget) -> list[Check]:
    """Run the built CPU kernel, and the exact kernel of its task; return what each part did, for each type.

    Values and P are compared at a steepness that makes them exact. What no such steepness shows, as mixes and
    gradients, is compared with plain arithmetic on random samples.

    Raises:
        PackageError: the package has no CPU kernel.
        ToolchainError, BuildError: it cannot be built.
    """
    if "cpu" not in kernel.sources:
        raise PackageError(
            f"{kernel.name} is compiled for {', '.join(kernel.sources)}: there is no CPU kernel to run"
        )
    library = kernel.own_library()
    wires, ranks = (list(range(network.n)),) * 2
    if kernel.outputs is not None:
        wires, ranks = list(kernel.outputs.wires), list(kernel.outputs.ranks)
    exact = exact_kernel_of(kernel)
    of_relaxed = _RELAXED if kernel.n < MANY_WIRES else _RELAXED_OF_MANY
    checks = []
    for real in sorted(kernel.reals):
        relaxed = RelaxedKernel(kernel, library.functions[real], real)
        parts: dict[str, Run] = {
            of_relaxed: run_exactly(relaxed, wires, ranks),
        }
        if exact is not None:
            parts["exact kernel"] = on_negatives(run_in_every_way(exact, real))
        # A wrong kernel may return any number.
        with np.errstate(all="ignore"):
            found = check_emitted(network, property_, ranks, parts, budget, slow=[of_relaxed])
            checks += [Check.of(part, real, emitted) for part, emitted in found.items()]
            wrong = broken_law(relaxed, network)
        checks.append(Check("routings and gradients", real, relaxed.samples, "random samples", None, wrong))
    return checks
