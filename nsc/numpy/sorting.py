"""Sorting and selection along an axis: sort, argsort, topk, select."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nsc.arguments import flag, whole, wholes
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.by_numpy import small_argsort, small_select, small_sort, small_topk
from nsc.numpy.calls import Array, Sorted, index_dtype_of, public, read_along
from nsc.numpy.chunks import by_samples
from nsc.numpy.samples import sort_along


@overload
def sort(
    array: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    return_indices: Literal[False] = False,
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Array: ...


@overload
def sort(
    array: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    return_indices: Literal[True],
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Sorted: ...


@public(by_samples, small_sort)
def sort(
    array: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    return_indices: bool = False,
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Array | Sorted:
    """Return a sorted copy of an array, as numpy.sort.

    Args:
        array: of any shape. Axes of more than MOST values are sorted by numpy.sort.
        axis: the axis along which to sort; None: the array is flattened first.
        descending: whether the largest value, or NaN, comes first.
        return_indices: whether to return the indices too, as a stable numpy.argsort.
        index_dtype: int64 or int32.
        workers: the most threads, or -1; None: as many as `get_num_threads` returns.

    Raises:
        OperandTypeError: a type that is not served; a masked array, or another class than NumPy's own; an
            option or an axis of another type.
        OperandError: workers neither positive nor -1.
        numpy.exceptions.AxisError: no such axis.

    >>> sort([3, 1, 2]), sort([[3, 1], [2, 4]], axis=0, descending=True).tolist()
    (array([1, 2, 3]), [[3, 4], [2, 1]])
    """
    index, descends = index_dtype_of("sort", index_dtype), flag("descending", descending, OperandTypeError)
    with_indices = flag("return_indices", return_indices, OperandTypeError)
    x, axis = read_along("sort", array, axis)
    found = sort_along("sort", x, axis, None, workers, descends, index if with_indices else None)
    return found if with_indices else found.values


@public(by_samples, small_argsort)
def argsort(
    array: ArrayLike,
    axis: int | None = -1,
    *,
    descending: bool = False,
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Array:
    """Return the indices that sort an array, as a stable numpy.argsort. Arguments and errors as in `sort`.

    >>> argsort([3, 1, 2, 1])
    array([1, 3, 2, 0])
    """
    index, descends = index_dtype_of("argsort", index_dtype), flag("descending", descending, OperandTypeError)
    x, axis = read_along("argsort", array, axis)
    return sort_along("argsort", x, axis, None, workers, descends, index).indices


@public(by_samples, small_topk)
def topk(
    array: ArrayLike,
    k: int,
    axis: int | None = -1,
    *,
    largest: bool = True,
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Sorted:
    """Return the k largest values along an axis, largest first, or the k smallest, with their indices.

    The largest are the last k of a stable `sort`, reversed: if values are equal, the one that lies last comes
    first. The smallest are the first k.

    Args:
        array, axis, index_dtype, workers: as in `sort`.
        k: how many.
        largest: True: the k largest. False: the k smallest, smallest first, NaN last.

    Raises:
        OperandError: k outside 1 … the length of the axis; or as in `sort`.

    >>> topk([3, 1, 4, 1, 5], 2)
    Sorted(values=array([5, 4]), indices=array([4, 2]))
    >>> topk([3, 1, 4, 1, 5], 2, largest=False).indices
    array([1, 3])
    """
    count, is_largest = whole(k), flag("largest", largest, OperandTypeError)
    x, axis = read_along("topk", array, axis)
    length = x.shape[axis]
    if count is None or not 1 <= count <= length:
        raise OperandError(f"nsc.numpy.topk: k must be an integer in 1 … {length}, got {k!r}")
    ranks = tuple(range(length - 1, length - 1 - count, -1)) if is_largest else tuple(range(count))
    return sort_along("topk", x, axis, ranks, workers, index_dtype=index_dtype_of("topk", index_dtype))


@public(by_samples, small_select)
def select(array: ArrayLike, wanted: Any, axis: int | None = -1, *, workers: int | None = None) -> Array:
    """Return the values of some ranks along an axis, in their order; rank 0 is the smallest.

    numpy.partition puts the same values at these ranks.

    Args:
        array, axis, workers: as in `sort`.
        wanted: one rank, with which results lack the axis, or a sequence of ranks. Negative ranks count from
            the end.

    Raises:
        OperandError: a rank that the axis does not have, or a rank that is named twice; or as in `sort`.

    >>> select([[3, 1, 4, 1, 5]], 1), select([3, 1, 4, 1, 5], [0, -1])
    (array([1]), array([1, 5]))
    """
    x, axis = read_along("select", array, axis)
    length = x.shape[axis]
    one = whole(wanted)
    listed = wholes(wanted if one is None else [one])
    if not listed or not -length <= min(listed) <= max(listed) < length:
        raise OperandError(f"nsc.numpy.select: ranks must be integers in 0 … {length - 1}, got {wanted!r}")
    ranks = tuple(rank % length for rank in listed)
    if len({*ranks}) < len(ranks):
        raise OperandError(f"nsc.numpy.select: each rank once, got {wanted!r}")
    values = sort_along("select", x, axis, ranks, workers).values
    return values if one is None else np.take(values, 0, axis)
