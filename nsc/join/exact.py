"""Exact kernels on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache

from nsc.compiler.exact.compiling import compile_exact
from nsc.compiler.selection import SELECTIONS, Selection
from nsc.contract.exact import MOST
from nsc.errors import PackageError, UnprovedError
from nsc.join.budget import budget_of
from nsc.runtime.exact.kernel import ExactKernel
from nsc.runtime.relaxed.kernel import Kernel
from nsc.version import VERSION


@cache
def exact_kernel(n: int, select: Selection | None = None) -> ExactKernel:
    """Return the exact kernel for n values.

    Args:
        n: values of a sample, at least 1.
        select: what is selected; None: all values, sorted.

    Raises:
        NetworkError, PropertyError, UnprovedError: as `compile_exact`.
    """
    return ExactKernel(compile_exact(n, select, VERSION, budget_of(keeps=True)))


def selection_of(kernel: Kernel) -> Selection | None:
    """Return what a package selects; None: it sorts."""
    form = kernel.manifest.selection
    if form is None or kernel.outputs is None:
        return None
    if form not in SELECTIONS:
        raise PackageError(f"{kernel.name} has the selection {form!r}, not one of {', '.join(SELECTIONS)}")
    return SELECTIONS[form](kernel.outputs.ranks)


def exact_kernel_of(kernel: Kernel) -> ExactKernel | None:
    """Return the exact kernel for a package's task; None: more than MOST values, or no proof."""
    if kernel.n > MOST:
        return None
    try:
        return exact_kernel(kernel.n, selection_of(kernel))
    except UnprovedError:
        return None
