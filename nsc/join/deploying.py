"""Deploying: packages, and the exact kernels of their tasks, as a C++ source for programs without Python."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nsc.compiler.deploy import Deployed, render
from nsc.contract.interface import REALS
from nsc.errors import LoweringError
from nsc.join.on_demand import exact_kernel_of
from nsc.runtime.exact.windows import FilterKernel
from nsc.runtime.relaxed.kernel import Kernel
from nsc.version import VERSION
from nsc.wording import argument


def deployed_source(name: str, command: str, kernels: Mapping[Kernel | FilterKernel, Collection[str]]) -> str:
    """Return the text of a source.

    Args:
        name: of the file, without its suffix.
        command: the command that makes it, for its first lines.
        kernels: maps a kernel to the types of values that it is built for, keys of ELEMENTS. For a relaxed
            kernel these are the types of the exact kernel beside it.

    Raises:
        LoweringError: a package without kernels for processors, or with its library in its source.
    """
    relaxed = [_deployed(each, dtypes) for each, dtypes in kernels.items() if isinstance(each, Kernel)]
    filters = [(each.source, dtypes) for each, dtypes in kernels.items() if isinstance(each, FilterKernel)]
    return render(name, command, VERSION, relaxed, filters)


def served_dtypes(kernel: Kernel) -> tuple[str, ...]:
    """Return the types of values whose relaxed operators a kernel serves."""
    return tuple(dtype for real in kernel.manifest.reals for dtype in REALS[real].serves)


def _deployed(kernel: Kernel, dtypes: Collection[str]) -> Deployed:
    if "cpu" not in kernel.sources:
        raise LoweringError(
            f"{kernel.name} has no kernels for processors, which alone are deployed: compile it with "
            f"{argument('targets', ('cpu', 'cuda'))}"
        )
    exact = exact_kernel_of(kernel) if dtypes else None
    source = None if exact is None else exact.source
    return Deployed(kernel.spec, kernel.manifest, kernel.sources["cpu"], source, dtypes)
