"""Sorting and selecting by NumPy, in vectorised steps, where no kernel is used.

Kernels give the same results, but for signs: here a sort of values alone may leave -0 and 0 in any order.
The functions small_… take small arrays that NumPy's own functions handle, and raise otherwise; see
`calls.public`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsc.numpy.calls import Array, Sorted
from nsc.numpy.rules import is_wide, mean_of_integers

# The ranks that are results, in their order; None: all, ascending.
Ranks = tuple[int, ...] | None

# Most runs of ranks that are selected; NumPy selects more runs no faster than it sorts.
_MOST_RUNS = 4
# Fewer values are sorted by argsort. More are packed: a whole number holds a value and its place.
_FEW = 256


def sort_by_numpy(
    x: Array,
    axis: int,
    ranks: Ranks,
    descending: bool = False,
    index_dtype: np.dtype[Any] | None = None,
    kth: Ranks = None,
) -> Sorted:
    """Sort or select along an axis.

    Args:
        x: an array with at least one value.
        axis: from 0 on.
        ranks: which results are wanted; with places all, or the first ones.
        descending: whether the largest value comes first, and NaN last; only for all results, or with places.
        index_dtype: the type of places, where ties keep their order; None: places are left empty.
        kth: the array is partitioned at these ranks; then either values or places are left empty.
    """
    if kth is not None:
        keys = mirrored(x) if descending else x
        if index_dtype is not None:
            return Sorted(np.empty(0), np.argpartition(keys, kth, axis))
        values = np.partition(keys, kth, axis)
        return Sorted(mirrored(values, values) if descending else values, np.empty(0))
    if index_dtype is None and ranks is None:
        values = mirrored(x) if descending else x.copy(order="C")
        values.sort(axis=axis)
        return Sorted(mirrored(values, values) if descending else values, np.empty(0))
    # NumPy selects along the last axis several times as fast as along others.
    is_last = axis == x.ndim - 1
    rows = x if is_last else np.moveaxis(x, axis, -1)
    if index_dtype is None:
        assert ranks is not None
        found = _values_of(rows.copy(order="C"), ranks)
        return Sorted(np.ascontiguousarray(found if is_last else np.moveaxis(found, -1, axis)), np.empty(0))
    rows = np.ascontiguousarray(rows)
    n = rows.shape[-1]
    if ranks is None:
        places = _order(rows, descending)
    else:
        found = _first_places(rows.reshape(-1, n), len(ranks), descending)
        places = found.reshape(*rows.shape[:-1], len(ranks))
    places = np.ascontiguousarray(places if is_last else np.moveaxis(places, -1, axis))
    return Sorted(taken(x, places, axis), places.astype(index_dtype, copy=False))


def mirrored(x: Array, out: Array | None = None) -> Array:
    """Return numbers in the opposite order, in which NaN stays the largest; twice, the numbers themselves."""
    found: Array = (np.negative if x.dtype.kind == "f" else np.invert)(x, out=out, order="C")
    return found


def taken(x: Array, places: Array, axis: int) -> Array:
    """Return the values at places along an axis."""
    if x.size == x.shape[axis]:  # `take` needs half of the time, but knows one sample alone
        values: Array = x.reshape(-1).take(places)
        return values
    return np.take_along_axis(x, places, axis)


def _values_of(rows: Array, ranks: Sequence[int]) -> Array:
    """Return the values of some ranks along the last axis; the rows are reordered.

    NumPy selects one rank by vector instructions, and several in one call without them.
    """
    n = rows.shape[-1]
    runs = _runs_of(ranks)
    if len(runs) > _MOST_RUNS:
        rows.sort(axis=-1)
        return rows[..., list(ranks)]
    start = 0
    for first, last in runs:  # the value of a rank comes to its place
        rest = rows[..., start:]
        if first == n - 1:
            rows[..., first] = rest.max(axis=-1)  # NaN if there is one
        elif last - first < 2:
            rest.partition(last - start, axis=-1)
            if first < last:
                rows[..., first] = rows[..., start:last].max(axis=-1)
        else:
            if first > start:
                rest.partition(first - start, axis=-1)
            rows[..., first:].partition(last - first, axis=-1)
            rows[..., first : last + 1].sort(axis=-1)
        start = last + 1
    return rows[..., list(ranks)]


def _runs_of(ranks: Sequence[int]) -> list[tuple[int, int]]:
    """Return each run of consecutive ranks as its first and its last rank."""
    low, high = min(ranks), max(ranks)
    if high - low == len(ranks) - 1:
        return [(low, high)]
    runs: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return runs


def _first_places(rows: Array, count: int, descending: bool) -> Array:
    """Return the places of the first values of rows in an order; ties keep their order."""
    n = rows.shape[-1]
    if count > n // 8:
        return _order(rows, descending)[:, :count]
    edge = _values_of(mirrored(rows) if descending else rows.copy(), [count - 1])
    edge = mirrored(edge) if descending else edge
    with np.errstate(invalid="ignore"):
        is_chosen = rows >= edge if descending else rows <= edge
        surplus = np.count_nonzero(is_chosen, axis=-1) - count
        if (surplus > 0).any():  # too many values equal the edge: the last of them go
            is_edge = rows == edge
            edges = np.count_nonzero(is_edge, axis=-1)
            places = np.arange(edges.sum()) - np.repeat(np.cumsum(edges) - edges, edges)
            goes = places >= np.repeat(edges - surplus, edges)
            is_chosen.reshape(-1)[np.flatnonzero(is_edge)[goes]] = False
    found = np.empty((len(rows), count), np.int64)
    # Comparisons with an edge that is NaN are false.
    is_plain = surplus >= 0
    plain: Any = slice(None) if is_plain.all() else is_plain
    places = np.flatnonzero(is_chosen[plain]).reshape(-1, count) % n
    order = _order(np.take_along_axis(rows[plain], places, -1), descending)
    found[plain] = np.take_along_axis(places, order, -1)
    if not is_plain.all():
        found[~is_plain] = _order(rows[~is_plain], descending)[:, :count]
    return found


def _order(rows: Array, descending: bool) -> Array:
    """Return a stable argsort of the last axis, NaN last.

    NumPy sorts whole numbers by vector instructions, but sorts places without them. So a value of up to 32
    bits and its place are sorted as one number. Long rows of float64 are sorted by NumPy's faster,
    unstable argsort, and again by the stable one if some values are equal.
    """
    n = rows.shape[-1]
    rows = mirrored(rows) if descending else rows
    if rows.itemsize > 4 and rows.dtype.kind == "f" and n > _FEW:
        order = rows.argsort(axis=-1)
        values = np.take_along_axis(rows, order, -1)
        if (values[..., 1:] > values[..., :-1]).all():
            return order
    if rows.itemsize > 4 or rows.size < _FEW or n > 1 << 32:
        return rows.argsort(axis=-1, kind="stable")
    packed: Array = _keys(rows) << 32
    packed |= np.arange(n)
    packed.sort(axis=-1)
    packed &= (1 << 32) - 1
    return packed


def _keys(rows: Array) -> Array:
    """Return whole numbers of 32 bits, as int64, in the order of values; equal values have equal numbers."""
    if rows.dtype.kind != "f":
        keys: Array = rows.astype(np.int64)
        return keys - (1 << 31) if rows.dtype == np.uint32 else keys
    bits: Array = (rows.astype(np.float32) + np.float32(0)).view(np.int32)  # -0 becomes 0
    bits ^= (bits >> 31) & np.int32(0x7FFFFFFF)
    np.copyto(bits, np.int32(0x7FFFFFFF), where=np.isnan(rows))
    return np.asarray(bits, np.int64)


def small_sort(array: Array, axis: int = -1) -> Array:
    if type(axis) is not int:
        raise TypeError
    x: Array = array.copy()
    x.sort(axis)
    return x


def small_argsort(array: Array, axis: int = -1) -> Array:
    if type(axis) is not int:
        raise TypeError
    order: Array = array.argsort(axis, kind="stable")
    return order


def small_topk(array: Array, k: int, axis: int = -1, *, largest: bool = True) -> Sorted:
    n = array.size
    if (
        array.shape != (n,)
        or axis != -1
        or type(k) is not int
        or not 1 <= k <= n
        or type(largest) is not bool
    ):
        raise ValueError
    keys = array if not largest else -array if array.dtype.kind == "f" else ~array
    if 4 * k < n:  # few values are selected, and then sorted
        some = keys.argpartition(k - 1)[:k]
        # NumPy may take any of the values that equal the last one. Comparisons with NaN are false.
        if np.count_nonzero(keys <= keys[some[-1]]) == k:
            some.sort()
            places = some[keys[some].argsort(kind="stable")]
            return Sorted(array[places], places)
    places = keys.argsort(kind="stable")[:k]
    return Sorted(array[places], places)


def small_top_k(
    array: Array, k: int, *, axis: int = -1, mode: str = "largest", sorted: bool = True
) -> Sorted:
    if type(sorted) is not bool:
        raise TypeError
    return small_topk(array, k, axis, largest={"largest": True, "smallest": False}[mode])


def small_select(array: Array, wanted: int, axis: int = -1) -> Any:
    if axis != -1 or type(wanted) is not int:
        raise ValueError
    x = array.copy()
    x.partition(wanted)
    return x[..., wanted].copy()


def small_partition(array: Array, kth: int, axis: int = -1) -> Array:
    if type(axis) is not int or type(kth) is not int:
        raise TypeError
    return np.partition(array, kth, axis)


def small_argpartition(array: Array, kth: int, axis: int = -1) -> Array:
    if type(axis) is not int or type(kth) is not int:
        raise TypeError
    return np.argpartition(array, kth, axis)


def small_median(array: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    _check(axis, keepdims)
    if keepdims or (axis is not None and array.ndim > 1):
        if is_wide(array.dtype) and axis is not None and array.shape[axis] % 2 == 0:
            x, upper = np.sort(array, axis), array.shape[axis] // 2
            middle = (x.take([rank] if keepdims else rank, axis) for rank in (upper - 1, upper))
            return mean_of_integers(*middle)
        with np.errstate(all="ignore", over="raise"):
            return np.median(array, axis, keepdims=keepdims)
    if axis not in (None, 0, -1):
        raise ValueError
    # One sample takes a tenth of NumPy's time.
    x = array.flatten()
    x.sort()
    n, last = x.size, x[-1]
    if last != last:
        return last
    number = array.dtype.type if array.dtype.kind == "f" else np.float64
    # Python's integers are exact. In float64 the sum of two float16 or float32 is exact or rounded as theirs.
    low, high = x.item((n - 1) // 2), x.item(n // 2)
    middle = low if n % 2 else (low + high) / 2
    return number(low / 2 + high / 2 if abs(middle) == math.inf else middle)


def small_nanmedian(array: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError  # NumPy warns of samples without a number
    return small_median(array, axis, keepdims=keepdims)


def small_quantile(array: Array, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _quantile(np.quantile, array, q, axis, keepdims)


def small_percentile(array: Array, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    return _quantile(np.percentile, array, q, axis, keepdims)


def _quantile(numpys: Any, array: Array, q: Any, axis: int | None, keepdims: bool) -> Any:
    _check(axis, keepdims)
    if not {*map(type, q if type(q) is list else [q])} <= {int, float}:
        raise TypeError
    if array.dtype.kind != "f":
        if array.itemsize > 4:
            raise TypeError  # NumPy's differences may not fit the type
        array = array.astype(np.float64)
    # A step that overflows, or subtracts ∞ from ∞, is left to the general way.
    with np.errstate(all="ignore", over="raise", invalid="raise"):
        return numpys(array, q, axis, keepdims=True) if keepdims else numpys(array, q, axis)


def _check(axis: object, keepdims: object) -> None:
    """Raise an error for arguments that NumPy takes and nsc refuses, so that the general way refuses them."""
    if (axis is not None and type(axis) is not int) or type(keepdims) is not bool:
        raise TypeError
