"""Checks of built kernels: a package's kernel is run on the 0-1 inputs that settle its property."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nsc.compiler.formats import read_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Emitted, Property, check_emitted, parse, read_proof
from nsc.errors import PackageError, ToolchainError
from nsc.runtime.kernel import Kernel


def read_package(folder: Path) -> tuple[Kernel, Network, Property]:
    """Return a package's kernel, its network, and the property that this was proved to have.

    Raises:
        PackageError: `nsc compile` did not write the folder, or its files were changed since.
    """
    kernel = Kernel.from_folder(folder)
    network = read_network(folder / "network.json")
    proof = read_proof(folder / "proof.json")
    return kernel, network, parse(proof.property, network.n)


def check_package(
    kernel: Kernel, network: Network, property_: Property, budget: Budget
) -> Iterator[tuple[str, Emitted]]:
    """Run the built CPU kernel; yield each arithmetic type with the outcome.

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
    ranks = list(range(network.n)) if kernel.outputs is None else list(kernel.outputs.ranks)
    for real in sorted(kernel.reals):
        sort = library.functions[real].sort

        def run(
            values: npt.NDArray[np.float64], real: str = real, sort: Callable[..., int] = sort
        ) -> tuple[npt.NDArray[np.floating], npt.NDArray[np.int64]]:
            x = np.ascontiguousarray(values, dtype=np.dtype(real))
            out = np.empty((len(x), len(ranks)), dtype=x.dtype)
            indices = np.empty(out.shape, dtype=np.int64)
            status = sort(len(x), x.ctypes.data, out.ctypes.data, indices.ctypes.data, None)
            if status:
                raise MemoryError(f"{kernel.name}: not enough memory to sort {len(x)} samples")
            return out, indices

        yield real, check_emitted(network, property_, ranks, run, budget)
