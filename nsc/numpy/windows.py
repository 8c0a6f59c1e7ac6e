"""Windows around the values of an array: results by a kernel if that pays, or else by a peer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from nsc.contract.windows import MOST_CHANNELS, MOST_VALUES, Mode, Place, PlaceOf, Tables, Window, fold
from nsc.errors import WindowError
from nsc.join.choosing import Kind, serve
from nsc.join.on_demand import filter_kind
from nsc.numpy.calls import NAMES, Array, some_of
from nsc.runtime.devices.threads import parts_of, share_out
from nsc.runtime.exact.windows import FilterFunction, Images, Missing

# Values of windows that are written out at a time.
_WRITTEN = 1 << 22

_tables = lru_cache(maxsize=64)(Tables.of)


@dataclass(frozen=True)
class Numbers:
    """Which values of a window count as numbers; the others are missing.

    Attributes:
        mask: an array of the images' shape, True for missing values; None: there are none.
        skips_nan: whether NaN is missing.
        least: how many numbers a result needs.
        none: the value of a window with fewer, an array without axes.
    """

    mask: Array | None
    skips_nan: bool
    least: int
    none: Array


@dataclass(frozen=True)
class Windows:
    """The windows around the values of an array, and what is selected of each.

    Attributes:
        sizes: of the box around a window, along every axis of the array.
        before: how many places before its value a box begins along each axis.
        gaps: an array of these sizes, True at the places of a window; None: it has no gaps.
        mode: which values stand outside of the array.
        outside: the value for the mode constant, an array without axes.
        place_of: where the result lies among the numbers of a window.
        join: takes the values at both ranks of a place, and its share; None: a place has one rank.
        is_mean: whether it joins them to their mean.
        numbers: which values count; None: all do.
    """

    sizes: tuple[int, ...]
    before: tuple[int, ...]
    gaps: Array | None
    mode: Mode
    outside: Array
    place_of: PlaceOf
    join: Callable[[Array, Array, Any], Array] | None = None
    is_mean: bool = False
    numbers: Numbers | None = None

    @cached_property
    def values(self) -> int:
        """How many values a window has."""
        return math.prod(self.sizes) if self.gaps is None else int(np.count_nonzero(self.gaps))

    @cached_property
    def tables(self) -> Tables:
        """Which values results are made of, for each number of values that a window may lack."""
        least = self.values if self.numbers is None else self.numbers.least
        return _tables(self.place_of, self.values, least, self.is_mean)

    @property
    def is_extreme(self) -> bool:
        """Whether results are the least or the greatest of boxes without gaps that lack no value."""
        at_end = self.tables.low[0] in (0, self.values - 1)
        return at_end and self.gaps is None and self.numbers is None

    def moved(self, axes: list[int]) -> Windows:
        """Return the windows of an array whose axes are put in another order."""
        sizes, before = (tuple(each[axis] for axis in axes) for each in (self.sizes, self.before))
        gaps = None if self.gaps is None else self.gaps.transpose(axes)
        numbers = self.numbers
        if numbers is not None and numbers.mask is not None:
            numbers = replace(numbers, mask=numbers.mask.transpose(axes))
        return replace(self, sizes=sizes, before=before, gaps=gaps, numbers=numbers)

    def some(self, share: float) -> Windows:
        """Return the windows of about a share of the array, as `some_of` cuts it."""
        if self.numbers is None or self.numbers.mask is None:
            return self
        return replace(self, numbers=replace(self.numbers, mask=some_of(self.numbers.mask, share)))

    def kernels(self) -> Window | None:
        """Return the window that a kernel has for these; None: no kernel serves them."""
        ranks = self.tables.ranks
        places = () if self.gaps is None else tuple(map(int, np.flatnonzero(self.gaps)))
        try:
            return Window(*fold(self.sizes, self.before).window, ranks, places) if ranks else None
        except WindowError:
            return None


def windowed(
    function: str,
    x: Array,
    windows: Windows,
    threads: int,
    peer: Callable[[Array], Array] | None = None,
) -> Array:
    """Return the result of the window around each value.

    Args:
        function: the function that was called, for a warning.
        x: an array with at least one value; where places are joined, of float32 or float64.
        windows: the windows.
        threads: how many at most.
        peer: takes some of the array and returns their results; None: NumPy.
    """
    axes = _axes(x.shape, windows)
    if axes != sorted(axes):
        values = windowed(function, x.transpose(axes), windows.moved(axes), threads, peer)
        return np.ascontiguousarray(values.transpose(np.argsort(axes)))
    window, may_miss = windows.kernels(), windows.numbers is not None
    if windows.values > MOST_VALUES and peer is None and not windows.is_extreme:
        _warn(function, windows.values)

    def find() -> Kind[FilterFunction] | None:
        if window is None:
            return None
        images = Images.without_gaps(x.shape, fold(windows.sizes, windows.before))
        name = "NumPy" if peer is None else "bottleneck"
        return filter_kind(window, NAMES[x.dtype], images.channels, may_miss, name)

    def by_peer(x: Array, windows: Windows) -> Array:
        return by_numpy(x, windows) if peer is None else peer(x)

    return serve(
        find,
        x.size,
        x.size * windows.values,
        lambda kernel: _by_kernel(kernel, x, windows, threads) if kernel else by_peer(x, windows),
        lambda share: by_peer(some_of(x, share), windows.some(share)).size,
    )


@cache
def _warn(function: str, values: int) -> None:
    """Warn once of windows without a kernel."""
    warnings.warn(
        f"{function}: NumPy sorts each window of {values} values, which takes long: windows of up to "
        f"{MOST_VALUES} values have kernels",
        RuntimeWarning,
        stacklevel=2,
    )


def _axes(shape: tuple[int, ...], windows: Windows) -> list[int]:
    """Return the order in which kernels read an array's axes: as they are, or with the window's axes last."""
    wide = [axis for axis, size in enumerate(windows.sizes) if size > 1]
    if not wide or wide[-1] - wide[0] < 3:
        folded = fold(windows.sizes, windows.before)
        if folded.is_column or math.prod(shape[len(shape) - folded.behind :]) <= MOST_CHANNELS:
            return [*range(len(shape))]
    return [*(axis for axis in range(len(shape)) if axis not in wide), *wide]


def _by_kernel(kernel: FilterFunction, x: Array, windows: Windows, threads: int) -> Array:
    folded, numbers = fold(windows.sizes, windows.before), windows.numbers
    lying, values = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    images, outside, missing = Images.without_gaps(x.shape, folded), windows.outside, None
    if numbers is not None:
        mask = None if numbers.mask is None else np.ascontiguousarray(numbers.mask)
        address = None if mask is None else mask.ctypes.data
        missing = Missing.of(windows.tables, address, numbers.none.ctypes.data, numbers.skips_nan)

    def do(part: int, parts: int) -> None:
        kernel.call(
            lying.ctypes.data,
            images,
            folded.before,
            values.ctypes.data,
            windows.mode,
            outside.ctypes.data,
            part=part,
            parts=parts,
            missing=missing,
        )

    share_out(do, threads, parts_of(threads, x.nbytes * windows.values))
    return values


def by_numpy(x: Array, windows: Windows) -> Array:
    """Return the result of the window around each value by NumPy; arguments as in `windowed`."""
    padded, numbers, gone = (
        _extended(np.ascontiguousarray(x), windows, windows.outside),
        windows.numbers,
        None,
    )
    if numbers is not None:
        is_nan = np.isnan(x) if numbers.skips_nan and x.dtype.kind == "f" else np.zeros(x.shape, bool)
        mask = is_nan if numbers.mask is None else is_nan | numbers.mask
        is_gone = windows.mode is Mode.SHRINK or (
            numbers.skips_nan and bool(windows.outside != windows.outside)
        )
        gone = _extended(mask, windows, np.array(is_gone))
    rank = windows.tables.low[0]
    if windows.is_extreme:
        return extremes(padded, windows.sizes, is_least=rank == 0)
    some, boxes = windows_of(padded, windows.sizes), math.prod(windows.sizes)
    are_gone = None if gone is None else windows_of(gone, windows.sizes)
    values = np.empty(x.shape, x.dtype)
    step = max(1, _WRITTEN // (math.prod(x.shape[1:]) * boxes))

    def rows_of(boxes_: Array, start: int) -> Array:
        rows = boxes_[start : start + step].reshape(-1, boxes)
        found: Array = rows.copy() if windows.gaps is None else rows[:, windows.gaps.reshape(-1)]
        return found

    for start in range(0, len(x), step):
        rows, result = rows_of(some, start), values[start : start + step]
        if are_gone is None:
            rows.partition(rank, axis=-1)
            result[...] = rows[:, rank].reshape(result.shape)
        else:
            result[...] = _of_numbers(rows, rows_of(are_gone, start), windows).reshape(result.shape)
    return values


def _of_numbers(rows: Array, are_gone: Array, windows: Windows) -> Array:
    """Return the results of windows, a row each, whose missing values are flagged."""
    assert windows.numbers is not None
    rows[are_gone] = np.nan if rows.dtype.kind == "f" else _most(rows.dtype)
    rows.sort(axis=-1)
    lacks, values = are_gone.sum(axis=-1), np.full(len(rows), windows.numbers.none)
    for lack in np.unique(lacks):
        count = windows.values - int(lack)
        place = windows.place_of(count) if count >= windows.numbers.least else None
        if place is not None:
            values[lacks == lack] = _at(place, rows[lacks == lack], windows)
    return values


def _at(place: Place, rows: Array, windows: Windows) -> Array:
    if place.share is None or windows.join is None:
        low: Array = rows[:, place.low]
        return low
    with np.errstate(all="ignore"):
        return windows.join(rows[:, place.low], rows[:, place.high], place.share)


def _most(dtype: np.dtype[Any]) -> Any:
    return True if dtype.kind == "b" else np.iinfo(dtype).max


def windows_of(x: Array, sizes: tuple[int, ...]) -> Array:
    """Return all boxes inside an array in C order; NumPy has a slower function for it."""
    places = (length - size + 1 for length, size in zip(x.shape, sizes, strict=True))
    windows: Array = np.ndarray((*places, *sizes), x.dtype, x, 0, (*x.strides, *x.strides))
    return windows


def _extended(x: Array, windows: Windows, outside: Array) -> Array:
    """Return an array extended by the values that windows reach, `outside` where none of its own stands."""
    is_outside = windows.mode in (Mode.CONSTANT, Mode.SHRINK)
    for axis, (size, before) in enumerate(zip(windows.sizes, windows.before, strict=True)):
        if size > 1 or before:
            x = x.take(_places(x.shape[axis], size, before, windows.mode), axis)
            if is_outside:
                ends = np.moveaxis(x, axis, 0)
                behind = size - 1 - before
                ends[: max(0, before)] = outside
                ends[len(ends) - max(0, behind) :] = outside
    return np.ascontiguousarray(x)


@lru_cache(maxsize=64)
def _places(length: int, size: int, before: int, mode: Mode) -> Array:
    """Return the index of the value that stands at each place of an extended axis."""
    places = np.arange(-before, length + size - 1 - before)
    if mode is Mode.WRAP:
        return places % length
    if mode in (Mode.NEAREST, Mode.CONSTANT, Mode.SHRINK) or length == 1:
        return places.clip(0, length - 1)
    # A row and its reversal repeat; a mirrored row lacks both ends in the reversal.
    period = 2 * length - (2 if mode is Mode.MIRROR else 0)
    places %= period
    return np.minimum(places, period - (0 if mode is Mode.MIRROR else 1) - places)


def extremes(x: Array, sizes: tuple[int, ...], is_least: bool) -> Array:
    """Return the least value of each box inside an array, or the greatest; NaN is larger than every number.

    Cost: a pass over the array for each bit of each size. Boxes of 2, 4, 8 … values are each joined from two
    halves. The wanted box is joined from two of these that overlap.
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
