"""Small arrays: NumPy's own functions serve them, since the way to a kernel takes longer than the work.

A function here takes an array that NumPy's serves with the same result, and raises otherwise: any exception
leaves the call to the general way, which also says what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from nsc.numpy.arrays import NAMES, Array
from nsc.numpy.kernels import Sorted
from nsc.runtime import choosing

# From array and options to a result.
Small = Callable[..., Any]
_NUMBERS = {int, float}
_CODES = frozenset(dtype.char for dtype in NAMES)
_LARGEST = float(np.finfo(np.float32).max)
# Most values. More take NumPy as long as the general way needs to see what is asked.
_MOST = 1 << 13


def small_of(array: Any) -> Array | None:
    """Return a small array, or a list of few numbers as one; None: the general way takes it."""
    if type(array) is not np.ndarray:
        if type(array) is not list or len(array) > _MOST or not set(map(type, array)) <= _NUMBERS:
            return None
        array = np.array(array)
    dtype = array.dtype
    if 0 < array.size <= _MOST and dtype.char in _CODES and dtype.isnative and not choosing.is_prepared():
        small: Array = array
        return small
    return None


def sort(array: Array, axis: int = -1) -> Array:
    if type(axis) is not int:
        raise TypeError
    x: Array = array.copy()
    x.sort(axis)
    return x


def argsort(array: Array, axis: int = -1) -> Array:
    if type(axis) is not int:
        raise TypeError
    order: Array = array.argsort(axis, kind="stable")
    return order


def topk(array: Array, k: int, axis: int = -1, *, largest: bool = True) -> Sorted:
    if axis != -1 or type(k) is not int or not 1 <= k <= array.shape[-1] or type(largest) is not bool:
        raise ValueError
    if array.ndim > 1:
        order = array.argsort(kind="stable")
        indices = (order[..., ::-1] if largest else order)[..., :k].copy()
        return Sorted(np.take_along_axis(array, indices, -1), indices)
    n, part = array.size, slice(None, -k - 1, -1) if largest else slice(k)
    if 4 * k < n:  # few values are selected, and then sorted
        border = n - k if largest else k - 1
        places = array.argpartition(border)
        edge, some = array[places[border]], places[border:] if largest else places[:k]
        # Of values that are equal on the border NumPy takes any. Comparisons with NaN are false.
        if np.count_nonzero(array < edge if largest else array <= edge) == border + (not largest):
            some.sort()
            values = array[some]
            order = values.argsort(kind="stable")[part]
            return Sorted(values[order], some[order])
    order = array.argsort(kind="stable")[part]
    return Sorted(array[order], order)


def select(array: Array, wanted: int, axis: int = -1) -> Any:
    if axis != -1 or type(wanted) is not int:
        raise ValueError
    x = array.copy()
    x.partition(wanted)
    return x[..., wanted].copy()


def median(array: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    if keepdims is False and (axis is None or array.ndim == 1):
        return _median(array, axis)
    _check(axis, keepdims)
    with np.errstate(all="ignore"):
        return np.median(array, axis, keepdims=keepdims)


def nanmedian(array: Array, axis: int | None = None, *, keepdims: bool = False) -> Any:
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise ValueError  # NumPy warns of samples without a number
    return median(array, axis, keepdims=keepdims)


def _median(array: Array, axis: object) -> Any:
    """Return the median of all values, in a tenth of NumPy's time."""
    _check(axis)
    if axis not in (None, 0, -1):
        raise ValueError
    x = array.flatten()
    x.sort()
    n, last = x.size, x[-1]
    number = array.dtype.type if array.dtype.kind == "f" else np.float64
    if last != last:
        return last
    # In float64 nothing warns, and the sum of two values is exact or rounded as in their own type.
    low, high = float(x[(n - 1) // 2]), float(x[n // 2])
    if n % 2 == 0:
        low = (low + high) / 2
        if number is np.float32 and abs(low) > _LARGEST / 2:  # the sum overflows
            low = math.copysign(math.inf, low)
    return number(low)


def quantile(array: Array, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    _check(axis, keepdims, q)
    with np.errstate(all="ignore"):
        return np.quantile(_wide(array), q, axis, keepdims=keepdims)


def percentile(array: Array, q: Any, axis: int | None = None, *, keepdims: bool = False) -> Any:
    _check(axis, keepdims, q)
    with np.errstate(all="ignore"):
        return np.percentile(_wide(array), q, axis, keepdims=keepdims)


def _check(axis: object, keepdims: object = False, q: object = 0) -> None:
    """Leave arguments that NumPy takes and nsc refuses to the general way."""
    numbers = {*map(type, q)} if type(q) is list else {type(q)}
    if (axis is not None and type(axis) is not int) or type(keepdims) is not bool or not numbers <= _NUMBERS:
        raise TypeError


def _wide(array: Array) -> Array:
    """Return floating-point numbers; in types of integers NumPy's differences may not fit."""
    if array.dtype.kind == "f":
        return array
    if array.dtype.itemsize > 4:
        raise TypeError
    return array.astype(np.float64)
