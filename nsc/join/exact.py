"""Exact kernels on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache

from nsc.compiler.exact import compile_exact
from nsc.compiler.selection import Selection, median, ranks, top_k
from nsc.contract.exact import MOST
from nsc.errors import UnprovedError
from nsc.join.budget import budget_of
from nsc.runtime.exact import ExactKernel
from nsc.runtime.kernel import Kernel
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


def exact_kernel_of(kernel: Kernel) -> ExactKernel | None:
    """Return the exact kernel for the task of a package; None for more than MOST values, or without a proof.

    Where there is none, the package's own sort serves exact calls.
    """
    if kernel.n > MOST:
        return None
    selection = None
    if kernel.outputs is not None:
        wanted = kernel.outputs.ranks
        named = (
            each
            for each in (top_k(len(wanted)), *([median()] if kernel.n % 2 else []))
            if tuple(each.outputs(kernel.n).values()) == wanted
        )
        selection = next(named, ranks(*wanted))
    try:
        return exact_kernel(kernel.n, selection)
    except UnprovedError:
        return None
