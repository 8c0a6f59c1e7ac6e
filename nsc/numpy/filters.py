"""Filters: the value of a rank of the window around each value, as in scipy.ndimage."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import is_name, real, whole, wholes
from nsc.compiler.windows import Window
from nsc.contract.windows import MODES
from nsc.errors import OperandError, WindowError
from nsc.join.filters import compiled_filter, window_kernel
from nsc.numpy.arrays import Array, dtype_name, thread_count
from nsc.runtime.threads import share_out
from nsc.runtime.window import Images


def median_filter(
    array: ArrayLike, size: Any, mode: str = "reflect", cval: float = 0.0, *, workers: int = 1
) -> Array:
    """Return the median of the window around each value, as scipy.ndimage.median_filter.

    Args:
        array: of one to three axes, or more if `size` has two or three numbers, for the last axes. Types are
            those of `sort`.
        size: of the window, a number for each axis, or one for all axes; at most 225 values. It covers
            i - size // 2 … i - size // 2 + size - 1. Of an even number of values the upper median is taken.
        mode: what stands outside: reflect, nearest, mirror, wrap or constant.
        cval: the value outside, for the mode constant.
        workers: threads, or -1.

    Raises:
        WindowError: no such window.
        OperandTypeError: a type that is not served.
        OperandError: no such mode, or a cval that the type does not have; workers neither positive nor -1.

    >>> median_filter([[1, 9, 3], [4, 5, 6], [7, 8, 2]], 3)[1, 1]
    np.int64(5)
    """
    return _filter("median_filter", array, None, size, mode, cval, workers)


def rank_filter(
    array: ArrayLike, rank: int, size: Any, mode: str = "reflect", cval: float = 0.0, *, workers: int = 1
) -> Array:
    """Return the value of a rank of the window around each value, as scipy.ndimage.rank_filter.

    Args:
        rank: 0 the smallest, -1 the largest.
        array, size, mode, cval, workers: and errors, as in `median_filter`.

    >>> rank_filter([5, 1, 4], 0, 3)
    array([1, 1, 1])
    """
    return _filter("rank_filter", array, rank, size, mode, cval, workers)


def _filter(
    function: str,
    array: ArrayLike,
    rank: int | None,
    size: Any,
    mode: str,
    cval: float,
    workers: int,
) -> Array:
    x, threads = np.asarray(array), thread_count(function, workers)
    dtype = dtype_name(function, x)
    if not is_name(mode, MODES):
        raise OperandError(f"nsc.numpy.{function}: mode must be one of {', '.join(MODES)}, got {mode!r}")
    window = _window(function, x, size, rank)
    outside = _outside(function, x.dtype, cval)
    lying = np.ascontiguousarray(x)
    values = np.empty(x.shape, x.dtype)
    if values.size:
        shape = (1,) * (2 - x.ndim) + x.shape
        images = Images.without_gaps(shape, 3 if window.planes > 1 else 2)
        kernel = window_kernel(window)

        def do(part: int, parts: int) -> None:
            addresses = lying.ctypes.data, images, values.ctypes.data
            kernel.call(dtype, *addresses, MODES[mode], outside.ctypes.data, part=part, parts=parts)

        share_out(do, threads, values.nbytes * compiled_filter(window).operations)
    return values


def _window(function: str, x: Array, size: Any, rank: int | None) -> Window:
    one = whole(size)
    listed = wholes(size) if one is None else (one,) * x.ndim
    if one is not None and not 1 <= x.ndim <= 3:
        raise WindowError(
            f"nsc.numpy.{function}: one size is for 1 to 3 axes, the array has {x.ndim}: give a size for "
            "each of the last two or three axes"
        )
    if not listed or len(listed) > min(3, x.ndim):
        raise WindowError(
            f"nsc.numpy.{function}: size must be an integer, or one for each of the last axes, 3 at most, "
            f"of an array of {x.ndim}; got {size!r}"
        )
    sizes = listed if len(listed) > 1 else (1, *listed)
    return _median_window(sizes) if rank is None else Window.of(sizes, rank)


@cache
def _median_window(sizes: tuple[int, ...]) -> Window:
    return Window.of(sizes)


def _outside(function: str, dtype: np.dtype[Any], cval: float) -> Array:
    number = real(cval)
    if number is None and not isinstance(cval, bool):
        raise OperandError(f"nsc.numpy.{function}: cval must be a number, got {cval!r}")
    with np.errstate(all="ignore"):
        exact = whole(cval)
        try:
            outside = np.array(cval if exact is None else exact).astype(dtype)
            has_it = dtype.kind == "f" or bool(outside == cval)
        except OverflowError:
            has_it = False
    if not has_it:
        raise OperandError(f"nsc.numpy.{function}: cval must be a number that {dtype} has, got {cval!r}")
    return outside
