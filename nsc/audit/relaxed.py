"""Checks of built relaxed kernels, and of the exact kernels for their tasks, which calls run too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from importlib.util import find_spec

import numpy as np
import numpy.typing as npt

from nsc.audit.check import Check, Claim
from nsc.audit.exact import on_negatives, run_in_every_way
from nsc.compiler.formats import parse_network
from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Proof, Property, Run, check_emitted, parse, stable_order
from nsc.contract.interface import Status
from nsc.contract.manifest import NETWORK, PROOF
from nsc.contract.routings import ROUTINGS
from nsc.errors import INSTALL_TORCH, PackageError, ToolchainError
from nsc.join.on_demand import exact_kernel_of
from nsc.runtime.relaxed.kernel import Kernel, register_kernel
from nsc.runtime.relaxed.library import Engine, Functions, Library

_Reals = npt.NDArray[np.floating]

# The names of parts in reports. An input of the first takes ten times as long as one of the second.
_RELAXED = "values and ranks"
_EXACT = "exact kernel"
# At this steepness a comparator whose inputs differ by 1 or more has the weights 0 and 1 within 1e-19, in
# both types and for every relaxation.
_STEEP = 1e20


def relaxed_claim(files: Mapping[str, str]) -> Claim:
    """Return the claim of a package of a relaxed network.

    Raises:
        PackageError: nsc did not write the files, or they were changed since.
    """
    kernel = register_kernel(files)
    network = parse_network(files[NETWORK], format="nsc")
    property_ = parse(Proof.from_json(files[PROOF]).property, network.n)
    return network, property_, partial(_check, kernel, network, property_)


def _check(kernel: Kernel, network: Network, property_: Property, budget: Budget) -> Iterator[Check]:
    """Run the built CPU kernel and the exact kernel of its task; yield a check of each part, for each type.

    Without a compiler the prebuilt engine runs in the kernel's place, and no exact kernel.

    Values and ranks are compared at a steepness that makes them exact. Mixes and gradients, which such a
    steepness does not show, are compared with the plain reference on random samples.
    """
    if "cpu" not in kernel.sources:
        raise PackageError(
            f"{kernel.name} is compiled for {', '.join(kernel.sources)}: there is no CPU kernel to run"
        )
    kernel.specialise()
    library = _library(kernel)
    wires, ranks, descends = (*(list(range(network.n)),) * 2, False)
    if kernel.outputs is not None:
        wires, ranks = list(kernel.outputs.wires), list(kernel.outputs.ranks)
        descends = kernel.outputs.descends
    exact = exact_kernel_of(kernel)
    for real in sorted(kernel.reals):
        functions = library.functions[real]
        assert functions is not None
        parts: dict[str, Run] = {_RELAXED: _run_exactly(kernel, functions, real, wires, ranks)}
        if exact is not None:
            try:
                parts[_EXACT] = on_negatives(run_in_every_way(exact, real, descends))
            except ToolchainError as error:
                yield Check(_EXACT, real, 0, f"without a compiler, which builds it: {error}", None, None)
        # A wrong kernel may return any number.
        with np.errstate(all="ignore"):
            found = check_emitted(network, property_, ranks, parts, budget, slow=[_RELAXED])
        yield from (Check.of(part, real, emitted) for part, emitted in found.items())
        yield _check_laws(kernel, real)


def _library(kernel: Kernel) -> Library | Engine:
    """Return the network's own library, or without a compiler the engine, if it is prebuilt."""
    try:
        return kernel.own_library()
    except ToolchainError:
        if not kernel.is_prebuilt:
            raise
        return kernel.engine()


def _check_laws(kernel: Kernel, real: str) -> Check:
    part = "routings and gradients"
    if find_spec("torch") is None:
        reason = f"without PyTorch, which computes the reference: {INSTALL_TORCH}"
        return Check(part, real, 0, reason, None, None)
    from nsc.audit.laws import broken_law, samples_of

    return Check(part, real, samples_of(kernel.n), "random samples", None, broken_law(kernel, real))


def _run_exactly(kernel: Kernel, functions: Functions, real: str, wires: list[int], ranks: list[int]) -> Run:
    """Return a function for `check_emitted` that runs a kernel where it must be exact: values, and ranks.

    A stable sort gives each entry of a 0-1 input its rank. The kernel runs on the ranks as numbers 1 … n, and
    again with the infinities in the place of 1 and n. An index is -1 where a value or a rank is wrong.
    """
    n, steepness = kernel.n, np.array(_STEEP, real)
    # Each result's wire has its rank, from 1 on, as payload. The transposed routing turns it into ranks of
    # items.
    numbers = np.zeros((n, 1), real)
    numbers[wires, 0] = np.add(ranks, 1)

    def forward(x: _Reals) -> tuple[_Reals, _Reals]:
        """Return the values, and the ranks of items, both (batch, n)."""
        values, routed = np.empty_like(x), np.empty_like(x)
        status = functions.forward(
            *(ROUTINGS["transposed"].code, len(x), x.ctypes.data, steepness.ctypes.data, 0),
            *(numbers.ctypes.data, 0, 1, values.ctypes.data, routed.ctypes.data, None),
        )
        if status != Status.OK:
            raise MemoryError(f"{kernel.name}: the built kernel answers {Status(status).name}")
        return values, routed

    def run(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        order = stable_order(values)
        rank_of = np.empty_like(order)
        np.put_along_axis(rank_of, order, np.arange(n)[None], axis=1)
        indices = order[:, ranks]
        wanted = np.zeros(order.shape, real)
        np.put_along_axis(wanted, indices, np.add(ranks, 1).astype(real)[None], axis=1)
        for ends in ((1, n), (-np.inf, np.inf)):
            keys = np.arange(1, n + 1, dtype=real)
            keys[[0, -1]] = ends
            got, of_items = forward(keys[rank_of])
            indices = np.where(got[:, wires] == keys[ranks], indices, -1)
            # Written so that NaN is wrong.
            indices[~(abs(of_items - wanted) < 1e-12).all(axis=1)] = -1
        return np.take_along_axis(values, order[:, ranks], axis=1), indices

    return run
