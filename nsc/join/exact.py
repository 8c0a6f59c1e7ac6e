"""Exact kernels on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache

from nsc.compiler.exact import compile_exact
from nsc.compiler.selection import Selection
from nsc.join.budget import budget_of
from nsc.runtime.exact import ExactKernel
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
