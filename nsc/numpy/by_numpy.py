"""Sorting and selection along an axis in NumPy's vectorised steps: what serves where no kernel does.

Kernels give the same results, but for signs: here a sort of values alone may leave -0 and 0 in any order.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nsc.numpy.arrays import Array

# To select more runs of ranks than this takes NumPy about as long as a sort.
_MOST_RUNS = 4
# From this length on, rows in which equal values lie on the border of what is selected are done one by one.
_LONG = 256
# Fewer values are sorted by argsort, more as whole numbers that hold a value and its place.
_FEW = 256


def values_by_numpy(x: Array, axis: int, ranks: Sequence[int] | None, descending: bool = False) -> Array:
    """Return the sorted values along an axis, or the values of some ranks, in the order of the ranks."""
    if ranks is None:
        values = x.copy(order="C")
        values.sort(axis=axis)
        return np.ascontiguousarray(np.flip(values, axis)) if descending else values
    # NumPy selects along the last axis several times as fast as along others.
    is_last = axis == x.ndim - 1
    rows = (x if is_last else np.moveaxis(x, axis, -1)).copy(order="C")
    found = _values_of(rows, ranks)
    return np.ascontiguousarray(found if is_last else np.moveaxis(found, -1, axis))


def indices_by_numpy(x: Array, axis: int, ranks: Sequence[int] | None, descending: bool = False) -> Array:
    """Return the places of the sorted values along an axis, or of some ranks; ties keep their order."""
    is_last = axis == x.ndim - 1
    rows = np.ascontiguousarray(x if is_last else np.moveaxis(x, axis, -1))
    n = rows.shape[-1]
    if ranks is None:
        # In descending order ties keep their order too: the flipped array is sorted, and its result flipped.
        found = n - 1 - _order(rows[..., ::-1])[..., ::-1] if descending else _order(rows)
    else:
        flat = _places_of(rows.reshape(-1, n), ranks)
        found = flat.reshape(*rows.shape[:-1], len(ranks))
    return np.ascontiguousarray(found if is_last else np.moveaxis(found, -1, axis))


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
    """Return the first and the last of ranks that follow each other."""
    runs: list[tuple[int, int]] = []
    for rank in sorted(ranks):
        if runs and runs[-1][1] == rank - 1:
            runs[-1] = (runs[-1][0], rank)
        else:
            runs.append((rank, rank))
    return runs


def _places_of(rows: Array, ranks: Sequence[int]) -> Array:
    """Return the places of some ranks of rows; of equal values the one in front has the lower rank."""
    n, count = rows.shape[-1], len(ranks)
    low, high = min(ranks), max(ranks)
    if high - low + 1 != count or (low > 0 and high < n - 1) or count > n // 8:
        return _order(rows)[:, list(ranks)]
    border = low if low else high
    edge = _values_of(rows.copy(), [border])
    # Comparisons with NaN are false: NaN lies behind a lower edge. A row with an edge of NaN is done alone.
    with np.errstate(invalid="ignore"):
        is_chosen = ~(rows < edge) if low else rows <= edge
    counts = np.count_nonzero(is_chosen, axis=-1)
    is_plain = counts == count
    listed = [rank - low for rank in ranks]
    found = np.empty((len(rows), count), np.int64)
    if is_plain.all():
        found[:] = _ordered(rows, _columns_of(is_chosen, count))[:, listed]
        return found
    found[is_plain] = _ordered(rows[is_plain], _columns_of(is_chosen[is_plain], count))[:, listed]
    others = np.flatnonzero(~is_plain)
    if n < _LONG:
        found[others] = _order(rows[others])[:, list(ranks)]
        return found
    for row in others:
        places = np.flatnonzero(is_chosen[row]) if counts[row] > count else np.arange(n)
        chosen = _ordered(rows[row : row + 1], places[np.newaxis])[0]
        found[row] = (chosen[len(chosen) - count :] if low else chosen[:count])[listed]
    return found


def _columns_of(is_chosen: Array, count: int) -> Array:
    """Return the columns of what is chosen, so many in each row."""
    columns: Array = np.flatnonzero(is_chosen).reshape(-1, count) % is_chosen.shape[1]
    return columns


def _ordered(rows: Array, places: Array) -> Array:
    """Return ascending places in the order of what lies there; places of equal values stay ascending."""
    order = _order(np.take_along_axis(rows, places, -1))
    return np.take_along_axis(places, order, -1)


def _order(rows: Array) -> Array:
    """Return a stable argsort of the last axis.

    NumPy sorts whole numbers by vector instructions, but sorts places without them. So a value of up to 32
    bits and its place are sorted as one number. Of wider values the fast order serves where none are equal.
    """
    n = rows.shape[-1]
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
