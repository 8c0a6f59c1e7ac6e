"""Exact kernels on arrays: the layout in memory that a kernel reads, and its parts in threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nsc.compiler.selection import Selection
from nsc.join.exact import exact_kernel
from nsc.numpy.arrays import Array, around, dtype_name, split_shape, thread_count
from nsc.runtime.exact import ExactKernel, layout_of, places_fit
from nsc.runtime.threads import share_out


class Sorted(NamedTuple):
    """Values along an axis, and the place that each had there.

    >>> import nsc
    >>> nsc.numpy.sort([3, 1, 2], return_indices=True).indices
    array([1, 2, 0])
    """

    values: Array
    indices: Array


def run(
    function: str,
    array: ArrayLike,
    axis: int,
    selection: Selection | None,
    workers: int,
    descending: bool = False,
    index: np.dtype[Any] | None = None,
) -> Sorted:
    """Sort or select along an axis; without a dtype of indices these are empty."""
    x, threads = np.asarray(array), thread_count(function, workers)
    dtype_name(function, x)  # refuses others
    if index is not None and not places_fit(split_shape(function, x, axis)[1], x.itemsize):
        found = run(function, x.astype(np.int16), axis, selection, workers, descending, index)
        return Sorted(found.values.astype(x.dtype), found.indices)
    lying, place, back = _arranged(x, np.lib.array_utils.normalize_axis_index(axis, x.ndim))
    shape = split_shape(function, lying, place)
    if shape[1] == 0:
        return Sorted(x.copy(), np.empty(x.shape, index or np.int64))
    kernel = exact_kernel(shape[1], selection)
    results = (*lying.shape[:place], kernel.source.outputs, *lying.shape[place + 1 :])
    values = np.empty(results, x.dtype)
    indices = np.empty(0 if index is None else results, index or np.int64)
    if values.size:
        _call(kernel, lying, shape, values, indices, descending, threads)
    return Sorted(back(values), indices if index is None else back(indices))


def _arranged(x: Array, place: int) -> tuple[Array, int, Callable[[Array], Array]]:
    """Return an array as a kernel can read it, in C order, with the place of its axis, and the way back."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        lying, axis, back = _arranged(np.ascontiguousarray(x.T), x.ndim - 1 - place)
        return lying, axis, lambda result: back(result).T
    if layout_of(*around(x, place)) is None:
        moved = np.ascontiguousarray(np.moveaxis(x, place, -1))
        return moved, x.ndim - 1, lambda result: np.ascontiguousarray(np.moveaxis(result, -1, place))
    return np.ascontiguousarray(x), place, lambda result: result


def _call(
    kernel: ExactKernel,
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
        kernel.call(
            x.dtype.name, x.ctypes.data, layout, *addresses, index_bytes, descending, part=part, parts=parts
        )

    # A word with a place is of twice the width, and takes twice the operations to make and to read.
    work = x.nbytes * kernel.source.operations / kernel.source.n * (4 if index_bytes else 1)
    share_out(do, threads, work)
