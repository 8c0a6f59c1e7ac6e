"""Exact kernels on arrays: what serves a call, the layout that a kernel reads, its parts in threads."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nsc.contract.exact import MOST
from nsc.join.exact import exact_kind
from nsc.numpy.arrays import Array, dtype_name, some_of
from nsc.numpy.by_numpy import indices_by_numpy, values_by_numpy
from nsc.numpy.threads import thread_count
from nsc.runtime.choosing import Kind
from nsc.runtime.exact.kernel import ExactFunction, layout_of, places_fit
from nsc.runtime.threads import parts_of, share_out

# The ranks that are results, in their order; None: all, ascending.
Ranks = tuple[int, ...] | None


class Sorted(NamedTuple):
    """Values along an axis, and the place that each had there.

    >>> import nsc
    >>> nsc.numpy.sort([3, 1, 2], return_indices=True).indices
    array([1, 2, 0])
    """

    values: Array
    indices: Array


def kind_of(function: str, n: int, ranks: Ranks, x: Array, has_indices: bool) -> Kind[ExactFunction] | None:
    """Return the calls that a kernel for n values of an array's type serves; None: no kernel does."""
    return None if n > MOST else exact_kind(n, ranks, dtype_name(function, x), has_indices)


def by_numpy(
    x: Array, axis: int, ranks: Ranks, descending: bool, index_dtype: np.dtype[Any] | None
) -> Sorted:
    """Sort or select along an axis with NumPy; without an `index_dtype`, indices are empty."""
    if index_dtype is None:
        return Sorted(values_by_numpy(x, axis, ranks, descending), np.empty(0, np.int64))
    indices = indices_by_numpy(x, axis, ranks, descending)
    return Sorted(np.take_along_axis(x, indices, axis), indices.astype(index_dtype, copy=False))


def run(
    function: str,
    x: Array,
    axis: int,
    ranks: Ranks,
    workers: int | None,
    descending: bool = False,
    index_dtype: np.dtype[Any] | None = None,
) -> Sorted:
    """Sort or select along an axis, from 0 on; without an `index_dtype`, indices are empty."""
    threads, n = thread_count(function, workers, x.size), x.shape[axis]
    if x.size == 0:
        outputs = n if ranks is None else len(ranks)
        results = (*x.shape[:axis], outputs, *x.shape[axis + 1 :])
        return Sorted(np.empty(results, x.dtype), np.empty(results, index_dtype or np.int64))
    if index_dtype is not None and not places_fit(n, x.itemsize):
        found = run(function, x.astype(np.int16), axis, ranks, workers, descending, index_dtype)
        return Sorted(found.values.astype(x.dtype), found.indices)
    kind = kind_of(function, n, ranks, x, index_dtype is not None)
    if kind is None:
        return by_numpy(x, axis, ranks, descending, index_dtype)
    samples = x.size // n

    def probe(share: float) -> int:
        some = some_of(x, share, axis)
        by_numpy(some, axis, ranks, descending, index_dtype)
        return int(some.size // n)

    kernel = kind.chosen(samples, x.size, probe)
    with kind.timed(kernel, samples):
        if kernel is None:
            return by_numpy(x, axis, ranks, descending, index_dtype)
        return _by_kernel(kernel, x, axis, descending, index_dtype, threads)


def _by_kernel(
    kernel: ExactFunction,
    x: Array,
    axis: int,
    descending: bool,
    index_dtype: np.dtype[Any] | None,
    threads: int,
) -> Sorted:
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
