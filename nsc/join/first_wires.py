"""Kernels of a network's first wires, compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache

from nsc.compiler.driver import compile_again, prove
from nsc.compiler.formats import parse_network
from nsc.compiler.passes import first_wires
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.request import Request
from nsc.contract.manifest import NETWORK
from nsc.join.budget import budget_of
from nsc.runtime.relaxed.kernel import Kernel, find_kernel, register_kernel


@cache
def kernel_of_first_wires(spec: str, count: int) -> Kernel:
    """Return the kernel of the first wires of a registered kernel that sorts, which the engine runs.

    Args:
        spec: the kernel's name in the process.
        count: how many wires.
    """
    kernel = find_kernel(spec)
    network = first_wires(parse_network(kernel.files[NETWORK], format="nsc"), count)
    request = Request(
        network,
        relaxation=Relaxation(kernel.sigmoid, kernel.manifest.art_lambda, kernel.error_free),
        dtypes=tuple(sorted(kernel.reals)),
        targets=tuple(kernel.sources),
        name=f"{kernel.name}_first_{count}",
        unproved=True,
    )
    # It sorts because the whole network does; a proof of its own is taken where it is quick.
    proof = prove(network, unproved=True, budget=budget_of(time_limit=0, keeps=True))
    return register_kernel(compile_again(network, proof, request).files)
