"""Checks of built kernels: a package's functions and the exact kernel of its task, which calls run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt

from nsc.compiler.formats import read_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Property, Run, check_emitted, parse, read_proof
from nsc.contract.interface import Status
from nsc.errors import PackageError, ToolchainError
from nsc.join.check import Check
from nsc.join.exact import exact_kernel_of
from nsc.join.exact_check import on_negatives, run_in_every_way
from nsc.join.relaxed_calls import RelaxedKernel
from nsc.join.relaxed_check import broken_law, run_exactly
from nsc.runtime.kernel import Kernel
from nsc.runtime.library import Functions

# Takes ten times as long for an input as an exact kernel.
_RELAXED = "values and P"


def read_package(folder: Path) -> tuple[Kernel, Network, Property]:
    """Return a package's kernel, its network, and the property that this was proved to have.

    Raises:
        PackageError: `nsc compile` did not write the folder, or its files were changed since.
    """
    kernel = Kernel.from_folder(folder)
    network = read_network(folder / "network.json")
    proof = read_proof(folder / "proof.json")
    return kernel, network, parse(proof.property, network.n)


def check_package(kernel: Kernel, network: Network, property_: Property, budget: Budget) -> list[Check]:
    """Run the built CPU kernel, and the exact kernel of its task; return what each part did, for each type.

    Values and P are compared at a steepness that makes them exact. What no such steepness shows, mixes and
    gradients, is compared with P and with differences of results, on random samples.

    Raises:
        PackageError: the package has no CPU kernel.
        ToolchainError, BuildError: it cannot be built.
    """
    if "cpu" not in kernel.sources:
        raise PackageError(
            f"{kernel.name} is compiled for {', '.join(kernel.sources)}: there is no CPU kernel to run"
        )
    kernel.build()
    library = kernel.library()
    if library is None:
        raise ToolchainError(f"{kernel.name} could not be built")
    wires, ranks = (list(range(network.n)),) * 2
    if kernel.outputs is not None:
        wires, ranks = list(kernel.outputs.wires), list(kernel.outputs.ranks)
    exact = exact_kernel_of(kernel)
    checks = []
    for real in sorted(kernel.reals):
        relaxed = RelaxedKernel(kernel, library.functions[real], real)
        parts: dict[str, Run] = {
            _RELAXED: run_exactly(relaxed, wires, ranks),
            "nsc_sort": on_negatives(_own_sort(kernel.name, library.functions[real], real, len(ranks))),
        }
        if exact is not None:
            parts["exact kernel"] = on_negatives(run_in_every_way(exact, real))
        # A wrong kernel may return any number.
        with np.errstate(all="ignore"):
            found = check_emitted(network, property_, ranks, parts, budget, slow=[_RELAXED])
            checks += [Check.of(part, real, emitted) for part, emitted in found.items()]
            wrong = broken_law(relaxed, network)
        checks.append(Check("routings and gradients", real, relaxed.samples, "random samples", None, wrong))
    return checks


def _own_sort(name: str, functions: Functions, real: str, outputs: int) -> Run:
    """Return what runs a package's own exact sort, which C programs call, and torch beyond 1,024 values."""

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.int64]]:
        x = np.ascontiguousarray(values, dtype=np.dtype(real))
        out = np.empty((len(x), outputs), dtype=x.dtype)
        indices = np.empty(out.shape, dtype=np.int64)
        status = functions.sort(len(x), x.ctypes.data, out.ctypes.data, indices.ctypes.data, None)
        if status != Status.OK:
            raise MemoryError(f"{name}: not enough memory to sort {len(x)} samples")
        return out, indices

    return run
