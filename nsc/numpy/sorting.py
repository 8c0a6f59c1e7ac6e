"""Sorting and selection along an axis: sort, argsort, topk, top_k, select, partition, argpartition.

NaN and NaT come last in every order. Of equal values the one with the lower index comes first.
"""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nsc.arguments import flag, is_name, whole, wholes
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.by_numpy import (
    small_argpartition,
    small_argsort,
    small_partition,
    small_select,
    small_sort,
    small_top_k,
    small_topk,
)
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
        descending: whether the largest value comes first; NaN and NaT come last in both orders.
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

    They are the first k of a `sort` in that order: of equal values the one with the lower index comes first,
    and NaN is taken only where there are fewer than k numbers.

    Args:
        array, axis, index_dtype, workers: as in `sort`.
        k: how many; 0 gives empty results.
        largest: True: the k largest. False: the k smallest, smallest first.

    Raises:
        OperandError: k outside 0 … the length of the axis; or as in `sort`.

    >>> topk([3, 1, 4, 1, 5], 2)
    Sorted(values=array([5, 4]), indices=array([4, 2]))
    >>> topk([3, 1, 4, 1, 5], 2, largest=False).indices
    array([1, 3])
    """
    return _top("topk", array, k, axis, flag("largest", largest, OperandTypeError), index_dtype, workers)


@public(by_samples, small_top_k)
def top_k(
    array: ArrayLike,
    k: int,
    *,
    axis: int | None = -1,
    mode: str = "largest",
    sorted: bool = True,
    index_dtype: DTypeLike = np.int64,
    workers: int | None = None,
) -> Sorted:
    """Return the k largest or smallest values along an axis and their indices, as numpy.top_k of NumPy 2.6.

    It is `topk` under NumPy's name. Results have an order even where NumPy's have none.

    Args:
        array, k, axis, index_dtype, workers: as in `topk`.
        mode: "largest" or "smallest".
        sorted: is taken for NumPy's sake; results are always sorted.

    Raises:
        OperandError: another mode; or as in `topk`.

    >>> top_k([3.0, np.nan, 4.0], 2), top_k([3.0, np.nan, 4.0], 1, mode="smallest").values
    (Sorted(values=array([4., 3.]), indices=array([2, 0])), array([3.]))
    """
    flag("sorted", sorted, OperandTypeError)
    if not is_name(mode, ("largest", "smallest")):
        raise OperandError(f"nsc.numpy.top_k: mode must be 'largest' or 'smallest', got {mode!r}")
    return _top("top_k", array, k, axis, mode == "largest", index_dtype, workers)


def _top(
    function: str,
    array: ArrayLike,
    k: int,
    axis: int | None,
    largest: bool,
    index_dtype: DTypeLike,
    workers: int | None,
) -> Sorted:
    """Return the first k values of an order, and their indices; errors as in `topk`."""
    x, axis = read_along(function, array, axis)
    count, length = whole(k), x.shape[axis]
    if count is None or not 0 <= count <= length:
        raise OperandError(
            f"nsc.numpy.{function}: k must be an integer in 0 … {length}, the length of the axis, got {k!r}"
        )
    index = index_dtype_of(function, index_dtype)
    return sort_along(function, x, axis, tuple(range(count)), workers, largest, index)


@public(by_samples, small_select)
def select(array: ArrayLike, wanted: Any, axis: int | None = -1, *, workers: int | None = None) -> Array:
    """Return the values of some ranks along an axis, in their order; rank 0 is the smallest.

    `partition` puts the same values at these ranks.

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
    ranks = _ranks_of("select", "ranks", wanted, x.shape[axis])
    if len({*ranks}) < len(ranks):
        raise OperandError(f"nsc.numpy.select: each rank once, got {wanted!r}")
    values = sort_along("select", x, axis, ranks, workers).values
    return values if whole(wanted) is None else np.take(values, 0, axis)


def _ranks_of(function: str, name: str, wanted: Any, length: int) -> tuple[int, ...]:
    """Return one rank or some, from 0 on; errors as in `select`."""
    one = whole(wanted)
    listed = wholes(wanted if one is None else [one])
    if not listed or not -length <= min(listed) <= max(listed) < length:
        raise OperandError(
            f"nsc.numpy.{function}: {name} must be integers in 0 … {length - 1}, got {wanted!r}"
        )
    return tuple(rank % length for rank in listed)


@public(by_samples, small_partition)
def partition(
    array: ArrayLike,
    kth: Any,
    axis: int | None = -1,
    *,
    descending: bool = False,
    workers: int | None = None,
) -> Array:
    """Return a copy of an array in which the values of some ranks are where a `sort` would put them.

    No value in front of such a place comes behind its value in the order, no value behind it comes before.
    A kernel sorts short axes, which is faster than to partition them.

    Args:
        array, axis, descending, workers: as in `sort`.
        kth: a place or several; negative places count from the end.

    Raises:
        OperandError: a place that the axis does not have; or as in `sort`.

    >>> int(partition([3, 1, 4, 1, 5], 2)[2]), int(partition([3, 1, 4, 1, 5], 0, descending=True)[0])
    (3, 5)
    """
    return _partitioned("partition", array, kth, axis, descending, None, workers).values


@public(by_samples, small_argpartition)
def argpartition(
    array: ArrayLike,
    kth: Any,
    axis: int | None = -1,
    *,
    descending: bool = False,
    workers: int | None = None,
) -> Array:
    """Return indices that partition an array, as numpy.argpartition. Arguments and errors as in `partition`.

    >>> int(argpartition([3, 1, 4, 1, 5], 4)[4])
    4
    """
    index = np.dtype(np.int64)
    return _partitioned("argpartition", array, kth, axis, descending, index, workers).indices


def _partitioned(
    function: str,
    array: ArrayLike,
    kth: Any,
    axis: int | None,
    descending: bool,
    index_dtype: np.dtype[Any] | None,
    workers: int | None,
) -> Sorted:
    """Return a partitioned array, or its indices if their type is given; errors as in `partition`."""
    descends = flag("descending", descending, OperandTypeError)
    x, axis = read_along(function, array, axis)
    places = _ranks_of(function, "kth", kth, x.shape[axis])
    return sort_along(function, x, axis, None, workers, descends, index_dtype, places)
