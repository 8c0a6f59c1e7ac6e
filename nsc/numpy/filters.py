"""Filters: a result for the window around each value, as in scipy.ndimage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from inspect import signature
from typing import Any, ParamSpec

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import real, whole, wholes
from nsc.contract.windows import (
    MODES,
    MOST_VALUES,
    NanRule,
    PlaceOf,
    PlaceOfPercentile,
    PlaceOfRank,
    check_mode,
    check_nan,
    least_of,
    origins_of,
    outside_of,
    place_of,
    place_of_median,
)
from nsc.errors import OperandError, OperandTypeError, WindowError
from nsc.numpy.calls import NAMES, Array, Axes, axes_of, check_mask, plain, public, read, thread_count
from nsc.numpy.chunks import by_windows
from nsc.numpy.rules import mean
from nsc.numpy.windows import Box, Windows, by_numpy, windowed

Arguments = ParamSpec("Arguments")


def _box(function: str, ndim: int, size: Any, footprint: Any, origin: Any, axes: Axes) -> Box:
    """Return the box of a call; errors as in `median_filter`."""
    at = axes_of(function, axes, ndim)
    if (size is None) == (footprint is None):
        found = "neither" if size is None else "both"
        raise WindowError(f"nsc.numpy.{function}: give a window by size or by footprint, got {found}")
    places = None if footprint is None else _places(function, len(at), footprint)
    sizes = _sizes(function, len(at), size) if places is None else places.shape
    before = [size // 2 + shift for size, shift in zip(sizes, origins_of(sizes, origin), strict=True)]
    if axes is None and places is None:
        return Box(sizes, tuple(before), None)
    if places is not None:  # without rows that lie behind all places and the value itself
        spans = [
            slice(min(first, int(found.min())), max(first, int(found.max())) + 1)
            for first, found in zip(before, places.nonzero(), strict=True)
        ]
        places = places[tuple(spans)]
        sizes, before = places.shape, [first - span.start for first, span in zip(before, spans, strict=True)]
    along = dict(zip(at, zip(sizes, before, strict=True), strict=True))
    both = [along.get(axis, (1, 0)) for axis in range(ndim)]
    sizes = tuple(size for size, _ in both)
    if places is not None:
        places = None if places.all() else places.transpose(np.argsort(at)).reshape(sizes)
    return Box(sizes, tuple(first for _, first in both), places)


def _places(function: str, ndim: int, footprint: Any) -> Array:
    found = plain(function, footprint, "footprint").astype(bool)
    if found.ndim != ndim or ndim == 0:
        raise WindowError(
            f"nsc.numpy.{function}: footprint must have an axis for each of the {ndim} axes, got shape "
            f"{found.shape}"
        )
    if not found.any():
        raise WindowError(f"nsc.numpy.{function}: footprint has no place: set one or more of its values")
    return found


def _sizes(function: str, ndim: int, size: Any) -> tuple[int, ...]:
    one = whole(size)
    listed = wholes(size) if one is None else (one,) * ndim
    if one is not None and not 1 <= ndim <= 3:
        raise WindowError(
            f"nsc.numpy.{function}: one size is for 1 to 3 axes, the array has {ndim}: give a size for "
            "each axis, 1 for those along which nothing is mixed, or name axes"
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
    box = _box("filter", ndim, options["size"], options["footprint"], options["origin"], options["axes"])
    sides = [(first, size - 1 - first) for size, first in zip(box.sizes, box.before, strict=True)]
    return sides, options["mode"] == "wrap"


@public(by_windows(_reach))
def median_filter(
    array: ArrayLike,
    size: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    footprint: ArrayLike | None = None,
    axes: Axes = None,
    nan: NanRule = "largest",
    mask: ArrayLike | None = None,
    min_count: int | None = None,
    workers: int | None = None,
) -> Array:
    """Return the median of the window around each value, as scipy.ndimage.median_filter.

    One size is for all axes, as in scipy: `median_filter(rgb, 3)` of a rows × columns × 3 image mixes the
    colours. To mix some axes alone, name them, as `axes=(0, 1)`, or give a size for each axis, with 1 for
    the others: (3, 3, 1). With `mode="nearest"` the results equal cv2.medianBlur's.

    Args:
        array: of one to three axes, or of any number if `size` or `axes` say which are mixed; types as in
            `sort`.
        size: of the window, a number for each axis, or one for all. It covers i - size // 2 …
            i - size // 2 + size - 1.
        mode: the values outside of the array: reflect, nearest, mirror, wrap or constant. With shrink there
            are none: windows are cut at the border.
        cval: the value outside, for the mode constant. Also the result for integers whose window has fewer
            numbers than `min_count`.
        origin: how many places earlier the window begins, one number for all axes, or a number for each.
            With (size - 1) // 2 the window ends at i: along time it looks back alone.
        footprint: in place of a size, an array whose true values are the window's places, as scipy takes it.
        axes: the axes of the window; None: all.
        nan: what NaN in a window means:

            - largest: NaN is larger than every number.
            - propagate: a window with NaN gives NaN.
            - ignore: NaN is missing, as in nanmedian.
            - keep: as ignore, and NaN and masked values stay as they are.
        mask: an array of the same shape, True for values that are missing.
        min_count: how many numbers a window must have where values may be missing; None: 1. Floats with
            fewer become NaN.
        workers: the most threads, or -1; None: as many as `get_num_threads` returns.

    The median of an even number of values is the upper of the two middle ones, as in scipy. Where values of
    floating-point types may be missing (`nan="ignore"` or "keep", a mask, `mode="shrink"`), it is their mean,
    as in nanmedian.

    Raises:
        WindowError: no such window, or an origin that moves the window off i.
        OperandTypeError: a type that is not served, or an argument of another type.
        OperandError: no such mode or rule; a cval that the type does not have; a mask of another shape; a
            min_count that no window has; workers neither positive nor -1.

    Cost: windows of up to 225 values have kernels, which share work between neighbours. NumPy sorts larger
    ones, and a warning says so. Up to 32 channels behind the window are filtered where they lie. More are
    copied first, and so are arrays whose window axes lie further apart. Missing values take 1.1 to 2.5 times
    as long while most windows lack at most four, and ten times or more where they lack more.

    >>> median_filter([[1, 9, 3], [4, 5, 6], [7, 8, 2]], 3)[1, 1]
    np.int64(5)
    >>> median_filter([7, 1, 2, 9, 9], 3, origin=1)  # of a value and the two before it
    array([7, 7, 2, 2, 9])
    >>> median_filter([1.0, np.nan, 5.0, 2.0], 3, mode="shrink", nan="ignore")
    array([1. , 3. , 3.5, 3.5])
    """
    return _filter(
        "median", None, array, size, mode, cval, origin, footprint, axes, nan, mask, min_count, workers
    )


@public(by_windows(_reach))
def rank_filter(
    array: ArrayLike,
    rank: int,
    size: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    footprint: ArrayLike | None = None,
    axes: Axes = None,
    nan: NanRule = "largest",
    mask: ArrayLike | None = None,
    min_count: int | None = None,
    workers: int | None = None,
) -> Array:
    """Return the value of a rank of the window around each value, as scipy.ndimage.rank_filter.

    Args:
        rank: 0 the smallest, -1 the largest. Where values are missing, a rank below the middle counts from
            the smallest number, one above it from the largest, and the middle is the median. A window that
            has too few numbers gives NaN, or cval for integers.
        array, size, mode, cval, origin, footprint, axes, nan, mask, min_count, workers: as in
            `median_filter`, and so are the errors.

    >>> rank_filter([5, 1, 4], 0, 3)
    array([1, 1, 1])
    """
    number = whole(rank)
    if number is None:
        raise OperandTypeError(f"nsc.numpy.rank_filter: rank must be an integer, got {rank!r}")
    return _filter(
        "rank", number, array, size, mode, cval, origin, footprint, axes, nan, mask, min_count, workers
    )


@public(by_windows(_reach))
def percentile_filter(
    array: ArrayLike,
    percentile: float,
    size: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    *,
    footprint: ArrayLike | None = None,
    axes: Axes = None,
    nan: NanRule = "largest",
    mask: ArrayLike | None = None,
    min_count: int | None = None,
    workers: int | None = None,
) -> Array:
    """Return a percentile of the window around each value, as scipy.ndimage.percentile_filter.

    The result is the value of rank count * percentile / 100, rounded down, of the window's numbers; for 100
    the largest.

    Args:
        percentile: in -100 … 100; negative ones count from 100.
        array, size, mode, cval, origin, footprint, axes, nan, mask, min_count, workers: as in
            `median_filter`, and so are the errors.

    >>> percentile_filter([5, 1, 4, 2], 80, 3)
    array([5, 5, 4, 4])
    """
    number = real(percentile)
    if number is None or not -100 <= number <= 100:
        raise OperandError(
            f"nsc.numpy.percentile_filter: percentile must be a number in -100 … 100, got {percentile!r}"
        )
    at = PlaceOfPercentile(number + 100 if number < 0 else number)
    return _filter(
        "percentile", at, array, size, mode, cval, origin, footprint, axes, nan, mask, min_count, workers
    )


def _as_in(
    other: Callable[Arguments, Array],
) -> Callable[[Callable[..., Array]], Callable[Arguments, Array]]:
    """Return a decorator that makes a filter public, with another filter's arguments and no others."""
    known = signature(other)

    def decorate(function: Callable[..., Array]) -> Callable[Arguments, Array]:
        @wraps(function)
        def call(*arguments: Arguments.args, **options: Arguments.kwargs) -> Array:
            bound = known.bind(*arguments, **options)
            return function(*bound.args, **bound.kwargs)

        call.__signature__ = known  # type: ignore[attr-defined]
        return public(by_windows(_reach))(call)

    return decorate


@_as_in(median_filter)
def minimum_filter(*arguments: Any, **options: Any) -> Array:
    """Return the least value of the window around each value, as scipy.ndimage.minimum_filter.

    Arguments and errors as in `median_filter`.

    >>> minimum_filter([5, 1, 4, 2], 3)
    array([1, 1, 1, 2])
    """
    return _filter("minimum", 0, *arguments, **options)


@_as_in(median_filter)
def maximum_filter(*arguments: Any, **options: Any) -> Array:
    """Return the greatest value of the window around each value, as scipy.ndimage.maximum_filter.

    Arguments and errors as in `median_filter`.

    >>> maximum_filter([5, 1, 4, 2], 3)
    array([5, 5, 4, 4])
    """
    return _filter("maximum", -1, *arguments, **options)


def _filter(
    kind: str,
    selected: int | PlaceOfPercentile | None,
    array: ArrayLike,
    size: Any = None,
    mode: str = "reflect",
    cval: float = 0.0,
    origin: Any = 0,
    footprint: ArrayLike | None = None,
    axes: Axes = None,
    nan: NanRule = "largest",
    mask: ArrayLike | None = None,
    min_count: int | None = None,
    workers: int | None = None,
) -> Array:
    """Filter as `median_filter`; selected: a rank, a percentile, or None for the median."""
    function, name = f"{kind}_filter", f"nsc.numpy.{kind}_filter"
    x = read(function, array)
    threads = thread_count(function, workers, x.size)
    check_mode(name, mode)
    check_nan(name, nan)
    box = _box(function, x.ndim, size, footprint, origin, axes)
    count = box.values
    hidden = None if mask is None else check_mask(function, plain(function, mask, "mask"), x.shape)
    is_float = x.dtype.kind == "f"
    skips_nan = is_float and nan in ("ignore", "keep")
    may_miss = skips_nan or hidden is not None or mode == "shrink"
    if isinstance(selected, PlaceOfPercentile):
        place: PlaceOf = selected
    elif selected is None or -count <= selected < count:
        place = place_of(selected, count, may_miss and is_float)
    else:
        raise WindowError(
            f"{name}: rank of a window of {count} values must be in {-count} … {count - 1}, "
            f"0 the smallest, got {selected}"
        )
    # Means of float16 are rounded once, from float32.
    wide = x.astype(np.float32) if place is place_of_median and x.dtype == np.float16 else x
    outside = np.array(outside_of(name, NAMES[x.dtype], cval), wide.dtype)
    least = least_of(name, min_count, count, may_miss)
    none = (np.array(np.nan, wide.dtype) if is_float else outside) if may_miss else None
    windows = Windows(
        box.sizes, box.before, box.gaps, MODES[mode], outside, place, mean, none, least, skips_nan, hidden
    )
    if not x.size:
        return np.empty_like(x)
    peer = _by_scipy if _is_scipys(wide, windows) else by_numpy
    values = windowed(name, wide, windows, threads, peer).astype(x.dtype, copy=False)
    if nan == "propagate" and is_float:
        is_nan, has_outside = np.isnan(x), np.array(outside != outside)
        is_nan = is_nan if hidden is None else is_nan & ~hidden
        if is_nan.any() or has_outside:
            none = np.array(False) if mode == "shrink" else None
            among = replace(
                windows, outside=has_outside, place_of=PlaceOfRank(-1), none=none, least=1, mask=None
            )
            values[windowed(name, is_nan, among, threads)] = np.nan
    if nan == "keep":
        np.copyto(values, x, where=x != x if hidden is None else hidden | (x != x))
    return values


def _is_scipys(x: Array, windows: Windows) -> bool:
    """Return whether scipy's filter serves: it slides long windows along one axis."""
    # Scipy has no rule for NaN, and no whole numbers above int64's.
    return (
        x.ndim == 1
        and MOST_VALUES < windows.values <= x.size
        and not windows.is_extreme
        and windows.none is None
        and windows.gaps is None
        and x.dtype != np.uint64
        and find_spec("scipy") is not None
        and not (x != x).any()
    )


def _by_scipy(x: Array, windows: Windows) -> Array:
    from scipy import ndimage

    (size,), (before,), rank = windows.sizes, windows.before, windows.tables.low[0]
    mode, shift = windows.mode.name.lower(), before - size // 2
    values: Array = ndimage.rank_filter(x, rank, size, None, None, mode, windows.outside[()], shift)
    return values
