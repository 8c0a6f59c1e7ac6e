"""Filters on demand: compiled when first asked for, then kept for the process."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from nsc.contract.window import Window
from nsc.errors import NscError
from nsc.runtime.build import kept
from nsc.runtime.choosing import Kind
from nsc.runtime.windows.kernel import FilterFunction, FilterKernel
from nsc.version import VERSION

if TYPE_CHECKING:
    from nsc.compiler.windows.compiling import CompiledFilter


@cache
def filter_kind(window: Window, dtype: str, channels: int) -> Kind[FilterFunction]:
    """Return the calls of the filter of a window, for a type of values and a number of channels."""
    task = _task(window, dtype, channels)
    built = partial(_built, task, window, dtype, channels)
    return Kind(partial(_kept, task), built, _build_seconds(window.values), factor=10.0)


@cache
def rolling_kind(
    size: int, ranks: tuple[int, ...], dtype: str, has_bottleneck: bool
) -> Kind[tuple[FilterFunction, ...]]:
    """Return the calls of filters for some ranks of windows along one axis.

    Args:
        size: of the windows.
        ranks: a filter each.
        dtype: a key of ELEMENTS.
        has_bottleneck: whether bottleneck is the peer, which is faster than NumPy.
    """
    windows = [Window(1, 1, size, rank) for rank in ranks]
    tasks = [_task(window, dtype, 1) for window in windows]

    def kept_ones() -> tuple[FilterFunction, ...] | None:
        found = [_kept(task) for task in tasks]
        return None if None in found else tuple(filter(None, found))

    def built_ones() -> tuple[FilterFunction, ...]:
        return tuple(_built(task, window, dtype, 1) for task, window in zip(tasks, windows, strict=True))

    return Kind(kept_ones, built_ones, len(ranks) * _build_seconds(size), 3.0 if has_bottleneck else 10.0)


def _task(window: Window, dtype: str, channels: int) -> str:
    return f"filter {window.shape} {window.rank} {dtype} {channels}"


def _build_seconds(values: int) -> float:
    return 1 + values / 25


def _kept(task: str) -> FilterFunction | None:
    found = kept.find(task)
    try:
        return None if found is None else FilterFunction.of_library(library=found[0], **found[1])
    except (NscError, TypeError):
        return None


def _built(task: str, window: Window, dtype: str, channels: int) -> FilterFunction:
    kernel = filter_kernel(window)
    function = kernel.function(dtype, channels)
    said = {"name": kernel.source.name, "facts": kernel.source.facts}
    kept.keep(task, kernel.build(dtype, channels), said)
    return function


@cache
def compiled_filter(window: Window) -> CompiledFilter:
    """Return the filter of a window, proved.

    Raises:
        UnprovedError: as `compile_filter`.
    """
    # Imported late: most calls find their filter without the compiler of networks.
    from nsc.compiler.windows.compiling import compile_filter
    from nsc.join.budget import budget_of

    return compile_filter(window, version=VERSION, budget=budget_of(keeps=True))


@cache
def filter_kernel(window: Window) -> FilterKernel:
    """Return the kernel of a window's filter; errors as in `compiled_filter`."""
    return FilterKernel(compiled_filter(window).source)
