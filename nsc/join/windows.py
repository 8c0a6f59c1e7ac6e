"""Filters on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache

from nsc.compiler.windows import Window
from nsc.compiler.windows.compiling import CompiledFilter, compile_filter
from nsc.join.budget import budget_of
from nsc.runtime.windows.kernel import FilterKernel
from nsc.version import VERSION


@cache
def compiled_filter(window: Window) -> CompiledFilter:
    """Return the filter of a window, proved.

    Raises:
        UnprovedError: as `compile_filter`.
    """
    return compile_filter(window, version=VERSION, budget=budget_of(keeps=True))


@cache
def filter_kernel(window: Window) -> FilterKernel:
    """Return the kernel of a window's filter; errors as in `compiled_filter`."""
    return FilterKernel(compiled_filter(window).source)
