"""Exact kernels on arrays: what sorts, the layout in memory that a kernel reads, and its parts in threads.

This file alone decides what sorts: a kernel, or NumPy. NumPy sorts axes of more than MOST values, and all
axes and windows where there is no compiler.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nsc.compiler.selection import Selection
from nsc.contract.exact import MOST
from nsc.errors import ToolchainError
from nsc.join.exact import exact_kernel
from nsc.numpy.arrays import Array, dtype_name
from nsc.numpy.threads import thread_count
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.exact.kernel import ExactFunction, layout_of, places_fit
from nsc.runtime.threads import parts_of, share_out

Built = TypeVar("Built")

# Of threads that need a kernel at the same time one proves its network; the others find it.
BUILDING = threading.Lock()


class Sorted(NamedTuple):
    """Values along an axis, and the place that each had there.

    >>> import nsc
    >>> nsc.numpy.sort([3, 1, 2], return_indices=True).indices
    array([1, 2, 0])
    """

    values: Array
    indices: Array


def kernel_for(function: str, n: int, selection: Selection | None, x: Array) -> ExactFunction | None:
    """Return the kernel for n values of an array's type, built; None: NumPy sorts.

    Raises:
        BuildError: there is a compiler and it failed.
        UnprovedError: as `exact_kernel`.
    """
    return None if n > MOST else with_compiler(_built, n, selection, dtype_name(function, x))


@cache
def _built(n: int, selection: Selection | None, dtype: str) -> ExactFunction:
    with BUILDING:
        find_toolchain()  # before a network is proved
        return exact_kernel(n, selection).function(dtype)


def with_compiler(built: Callable[..., Built], *arguments: object) -> Built | None:
    """Return a kernel that a function builds; None, after one warning, on a machine without a compiler."""
    try:
        return built(*arguments)
    except ToolchainError as error:
        _warn(str(error))
        return None


@cache
def _warn(error: str) -> None:
    """Warn once of each reason."""
    warnings.warn(
        f"nsc: {error}. Until then nsc.numpy sorts with NumPy, many times slower, with the same results",
        RuntimeWarning,
        stacklevel=5,
    )


def by_numpy(
    x: Array, axis: int, selection: Selection | None, descending: bool, index_dtype: np.dtype[Any] | None
) -> Sorted:
    """Sort or select along an axis with NumPy; without an `index_dtype`, indices are empty."""
    n = x.shape[axis]
    ranks = None if selection is None else list(selection.outputs(n).values())
    if index_dtype is None:
        values = np.sort(x, axis=axis) if ranks is None else np.partition(x, sorted(ranks), axis=axis)
        indices = np.empty(0, np.int64)
    else:
        # In descending order ties keep their order too: the flipped array is sorted, and its result flipped.
        order = np.argsort(np.flip(x, axis) if descending else x, axis=axis, kind="stable")
        indices = (np.subtract(n - 1, order) if descending else order).astype(index_dtype)
        values = np.take_along_axis(x, indices, axis)
    if descending:
        values, indices = np.flip(values, axis), np.flip(indices, axis) if indices.size else indices
    if ranks is not None:
        values = values.take(ranks, axis)
        indices = indices.take(ranks, axis) if index_dtype is not None else indices
    return Sorted(np.ascontiguousarray(values), np.ascontiguousarray(indices))


def run(
    function: str,
    x: Array,
    axis: int,
    selection: Selection | None,
    workers: int | None,
    descending: bool = False,
    index_dtype: np.dtype[Any] | None = None,
) -> Sorted:
    """Sort or select along an axis, from 0 on; without an `index_dtype`, indices are empty."""
    threads, n = thread_count(function, workers), x.shape[axis]
    if x.size == 0:
        outputs = n if selection is None else len(selection.outputs(n))
        results = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
        return Sorted(np.empty(results, x.dtype), np.empty(results, index_dtype or np.int64))
    if index_dtype is not None and not places_fit(n, x.itemsize):
        found = run(function, x.astype(np.int16), axis, selection, workers, descending, index_dtype)
        return Sorted(found.values.astype(x.dtype), found.indices)
    kernel = kernel_for(function, n, selection, x)
    if kernel is None:
        return by_numpy(x, axis, selection, descending, index_dtype)
    arranged, along, back = _arranged(x, axis)
    results = (*arranged.shape[:along], kernel.source.outputs, *arranged.shape[along + 1 :])
    values = np.empty(results, x.dtype)
    indices = np.empty(0 if index_dtype is None else results, index_dtype or np.int64)
    _call(kernel, arranged, around(arranged, along), values, indices, descending, threads)
    return Sorted(back(values), indices if index_dtype is None else back(indices))


def around(x: Array, axis: int) -> tuple[int, int, int]:
    """Return how many values lie in front of an axis, on it, and behind it."""
    return math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])


def _arranged(x: Array, axis: int) -> tuple[Array, int, Callable[[Array], Array]]:
    """Return an array in C order that a kernel can read, its axis, and what turns a result's axes back."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        arranged, along, back = _arranged(np.ascontiguousarray(x.T), x.ndim - 1 - axis)
        return arranged, along, lambda result: back(result).T
    if layout_of(*around(x, axis)) is None:
        moved = np.ascontiguousarray(np.moveaxis(x, axis, -1))
        return moved, x.ndim - 1, lambda result: np.ascontiguousarray(np.moveaxis(result, -1, axis))
    return np.ascontiguousarray(x), axis, lambda result: result


def _call(
    kernel: ExactFunction,
    x: Array,
    shape: tuple[int, int, int],
    values: Array,
    indices: Array,
    descending: bool,
    threads: int,
) -> None:
    layout = layout_of(*shape)
    assert layout is not None  # _arranged saw to it
    index_bytes = indices.itemsize if indices.size else 0

    def do(part: int, parts: int) -> None:
        addresses = values.ctypes.data, indices.ctypes.data
        kernel.call(x.ctypes.data, layout, *addresses, index_bytes, descending, part=part, parts=parts)

    share_out(do, threads, parts_of(threads, work_of(kernel, x, index_bytes)))


def work_of(kernel: ExactFunction | None, x: Array, index_bytes: int) -> float:
    """Return how much work it is to sort an array, in the unit of LEAST_WORK."""
    if kernel is None:
        return x.nbytes * 100.0  # about what NumPy takes
    # A word with an index has twice the width, and takes twice the operations to make and to read.
    return x.nbytes * kernel.source.operations / kernel.source.n * (4 if index_bytes else 1)
