"""Filters: the value of a rank of the window around each value, as in scipy.ndimage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import whole, wholes
from nsc.contract.windows import (
    MODES,
    MOST_CHANNELS,
    Folded,
    Mode,
    Window,
    check_mode,
    fold,
    origins_of,
    outside_of,
)
from nsc.errors import OperandTypeError, WindowError
from nsc.join.choosing import serve
from nsc.join.on_demand import filter_kind
from nsc.numpy.by_numpy import filter_by_numpy
from nsc.numpy.calls import NAMES, Array, public, read, some_of, thread_count
from nsc.numpy.chunks import by_windows
from nsc.runtime.devices.threads import parts_of, share_out
from nsc.runtime.exact.windows import FilterFunction, Images


def _sizes(function: str, ndim: int, size: Any) -> tuple[int, ...]:
    one = whole(size)
    listed = wholes(size) if one is None else (one,) * ndim
    if one is not None and not 1 <= ndim <= 3:
        raise WindowError(
            f"nsc.numpy.{function}: one size is for 1 to 3 axes, the array has {ndim}: give a size for "
            "each axis, 1 for those along which nothing is mixed"
        )
    if not listed or min(listed) < 1 or len(listed) > ndim:
        raise WindowError(
            f"nsc.numpy.{function}: size must be an integer above 0, or one for each of the {ndim} axes, "
            f"got {size!r}"
        )
    if len(listed) < ndim:
        ones = (1,) * (ndim - len(listed))
        raise WindowError(
            f"nsc.numpy.{function}: size must have a number for each axis, {ndim} in all, got {size!r}: pass "
            f"{(*listed, *ones)} for colours that lie last, or {(*ones, *listed)} for a batch of images"
        )
    return listed


def _reach(ndim: int, options: Mapping[str, Any]) -> tuple[list[tuple[int, int]], bool]:
    """Return how far windows reach along each axis, and whether they go on at the other end."""
    sizes = _sizes("filter", ndim, options["size"])
    before = _before(sizes, origins_of(sizes, options["origin"]))
    sides = [(first, size - 1 - first) for size, first in zip(sizes, before, strict=True)]
    return sides, options["mode"] == "wrap"


def _before(sizes: tuple[int, ...], origins: tuple[int, ...]) -> list[int]:
    """Return how many places before its value a window begins along each axis."""
    return [size // 2 + origin for size, origin in zip(sizes, origins, strict=True)]


@public(by_windows(_reach))
def median_filter(
    array: ArrayLike,
    size: Any,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    workers: int | None = None,
) -> Array:
    """Return the median of the window around each value, as scipy.ndimage.median_filter.

    One size is for all axes, as in scipy: `median_filter(rgb, 3)` of a rows × columns × 3 image mixes the
    colours. To mix some axes alone, give a size for each axis, with 1 for the others: (3, 3, 1) for colours
    that lie last, (1, 3, 3) for a batch of grey images. With `mode="nearest"` the results equal
    cv2.medianBlur's.

    Args:
        array: of one to three axes, or of any number if `size` has several numbers; types as in `sort`.
        size: of the window, a number for each axis, or one for all axes; at most three are above 1, and the
            window has at most 225 values. It covers i - size // 2 … i - size // 2 + size - 1. If it has an
            even number of values, the result is the upper of the two middle ones, as in scipy, and not
            their mean, as in NumPy.
        mode: the values outside of the array: reflect, nearest, mirror, wrap or constant.
        cval: the value outside, for the mode constant.
        origin: how many places earlier the window begins, one number for all sizes, or a number for each
            size. With (size - 1) // 2 the window ends at i: along time it looks back alone.
        workers: the most threads, or -1; None: as many as `get_num_threads` returns.

    Raises:
        WindowError: no such window, or an origin that moves the window off i.
        OperandTypeError: a type that is not served.
        OperandError: no such mode, or a cval that the type does not have; workers neither positive nor -1.

    Cost: up to 32 channels behind the window are filtered where they lie, by a kernel that is built for their
    number. More channels are copied first, and so are arrays whose window axes lie further apart.

    >>> median_filter([[1, 9, 3], [4, 5, 6], [7, 8, 2]], 3)[1, 1]
    np.int64(5)
    >>> median_filter([7, 1, 2, 9, 9], 3, origin=1)  # of a value and the two before it
    array([7, 7, 2, 2, 9])
    """
    return _filter("median_filter", array, None, size, mode, cval, origin, workers)


@public(by_windows(_reach))
def rank_filter(
    array: ArrayLike,
    rank: int,
    size: Any,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    workers: int | None = None,
) -> Array:
    """Return the value of a rank of the window around each value, as scipy.ndimage.rank_filter.

    Args:
        rank: 0 the smallest, -1 the largest.
        array, size, mode, cval, origin, workers: as in `median_filter`, and so are the errors.

    >>> rank_filter([5, 1, 4], 0, 3)
    array([1, 1, 1])
    """
    if whole(rank) is None:
        raise OperandTypeError(f"nsc.numpy.rank_filter: rank must be an integer, got {rank!r}")
    return _filter("rank_filter", array, rank, size, mode, cval, origin, workers)


def _filter(
    function: str,
    array: ArrayLike,
    rank: int | None,
    size: Any,
    mode: str,
    cval: float,
    origin: Any,
    workers: int | None,
) -> Array:
    x = read(function, array)
    threads = thread_count(function, workers, x.size)
    name = f"nsc.numpy.{function}"
    check_mode(name, mode)
    sizes = _sizes(function, x.ndim, size)
    origins = origins_of(sizes, origin)
    outside = np.array(outside_of(name, NAMES[x.dtype], cval), x.dtype)
    axes = _axes(x.shape, sizes, origins)
    shape, is_moved = x.shape, axes != sorted(axes)
    if is_moved:
        x = x.transpose(axes)
        sizes, origins = (tuple(numbers[axis] for axis in axes) for numbers in (sizes, origins))
    folded, before = _fold(sizes, origins), _before(sizes, origins)
    window = _upper_median(folded.window) if rank is None else Window.of(folded.window, rank)
    if not x.size:
        return np.empty(shape, x.dtype)

    def by_numpy(x: Array) -> Array:
        return filter_by_numpy(x, sizes, before, window.rank, MODES[mode], outside)

    values = serve(
        lambda: filter_kind(window, NAMES[x.dtype], Images.without_gaps(x.shape, folded).channels),
        x.size,
        x.size * window.values,
        lambda kernel: by_kernel(kernel, x, folded, MODES[mode], outside, threads) if kernel else by_numpy(x),
        lambda share: by_numpy(some_of(x, share)).size,
    )
    return np.ascontiguousarray(values.transpose(np.argsort(axes))) if is_moved else values


def _axes(shape: tuple[int, ...], sizes: tuple[int, ...], origins: tuple[int, ...]) -> list[int]:
    """Return the order in which kernels read an array's axes: as they are, or with the window's axes last."""
    wide = [axis for axis, size in enumerate(sizes) if size > 1]
    if not wide or wide[-1] - wide[0] < 3:
        folded = _fold(sizes, origins)
        if folded.is_column or math.prod(shape[len(shape) - folded.behind :]) <= MOST_CHANNELS:
            return [*range(len(shape))]
    return [*(axis for axis in range(len(shape)) if axis not in wide), *wide]


def by_kernel(
    kernel: FilterFunction, x: Array, folded: Folded, mode: Mode, outside: Array, threads: int
) -> Array:
    """Return the values of a filter's rank in the window around each value.

    Args:
        kernel: for the array's type and the channels of its images.
        x: an array with at least one value.
        folded: the window.
        mode, outside: the values outside of the array, and the value for the mode constant.
        threads: how many at most.
    """
    lying, values = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    images = Images.without_gaps(x.shape, folded)

    def do(part: int, parts: int) -> None:
        addresses = lying.ctypes.data, images, folded.before, values.ctypes.data
        kernel.call(*addresses, mode, outside.ctypes.data, part=part, parts=parts)

    share_out(do, threads, parts_of(threads, x.nbytes * math.prod(folded.window)))
    return values


@cache
def _upper_median(sizes: tuple[int, int, int]) -> Window:
    return Window.of(sizes, math.prod(sizes) // 2)


_fold = cache(fold)
