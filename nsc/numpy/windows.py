"""Filters in NumPy's vectorised steps: what serves where no kernel does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from nsc.contract.windows import Mode
from nsc.numpy.arrays import Array

# Values that are written out at a time.
_VALUES = 1 << 22


def filter_by_numpy(
    x: Array, sizes: Sequence[int], before: Sequence[int], rank: int, mode: Mode, outside: Array
) -> Array:
    """Return the value of a rank of the window around each value.

    Args:
        x: an array with at least one value.
        sizes, before: the window along each axis, and how many places before its value it begins.
        rank: 0 the smallest.
        mode, outside: what stands outside of the array, and its value for the mode constant.
    """
    padded = np.ascontiguousarray(x)
    for axis, (size, first) in enumerate(zip(sizes, before, strict=True)):
        if size > 1:
            padded = _extended(padded, axis, size, first, mode, outside)
    volume = math.prod(sizes)
    if rank in (0, volume - 1):
        return extremes(padded, sizes, is_least=rank == 0)
    windows = windows_of(padded, sizes)
    values = np.empty(x.shape, x.dtype)
    step = max(1, _VALUES // (math.prod(x.shape[1:]) * volume))
    for start in range(0, len(x), step):
        some = windows[start : start + step]
        rows = some.reshape(*some.shape[: x.ndim], volume)
        values[start : start + step] = np.partition(rows, rank, axis=-1)[..., rank]
    return values


def windows_of(x: Array, sizes: Sequence[int]) -> Array:
    """Return all windows inside an array in C order; NumPy has a slower function for it."""
    places = (length - size + 1 for length, size in zip(x.shape, sizes, strict=True))
    windows: Array = np.ndarray((*places, *sizes), x.dtype, x, 0, (*x.strides, *x.strides))
    return windows


def _extended(x: Array, axis: int, size: int, before: int, mode: Mode, outside: Array) -> Array:
    """Return an array extended along an axis by what windows of a size reach."""
    extended: Array = x.take(_places(x.shape[axis], size, before, mode), axis)
    if mode is Mode.CONSTANT:
        ends = np.moveaxis(extended, axis, 0)
        ends[:before] = outside
        ends[len(ends) - (size - 1 - before) :] = outside
    return np.ascontiguousarray(extended)


@lru_cache(maxsize=64)
def _places(length: int, size: int, before: int, mode: Mode) -> Array:
    """Return which value of an axis stands at each place of an extended one."""
    places = np.arange(-before, length + size - 1 - before)
    if mode is Mode.WRAP:
        return places % length
    if mode in (Mode.NEAREST, Mode.CONSTANT) or length == 1:
        return places.clip(0, length - 1)
    # A row and its reversal repeat; a mirrored row lacks both ends in the reversal.
    period = 2 * length - (2 if mode is Mode.MIRROR else 0)
    places %= period
    return np.minimum(places, period - (0 if mode is Mode.MIRROR else 1) - places)


def extremes(x: Array, sizes: Sequence[int], is_least: bool) -> Array:
    """Return the least value of each window inside an array, or the greatest; NaN is larger than every
    number.

    Cost: a pass over the array for each bit of each size. Windows of 2, 4, 8 … values are made of two
    halves, and the wanted one of two that overlap.
    """
    join = np.fmin if is_least else np.maximum
    for axis, size in enumerate(sizes):
        if size == 1:
            continue
        along = np.moveaxis(x, axis, 0)
        width = 1
        while 2 * width <= size:
            along, width = join(along[:-width], along[width:]), 2 * width
        rest = size - width
        x = np.moveaxis(join(along[: len(along) - rest], along[rest:]) if rest else along, 0, axis)
    return np.ascontiguousarray(x)
