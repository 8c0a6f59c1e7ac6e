"""Windows around the values of an array: results by a kernel if that pays, or else by a peer."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np

from nsc.contract.windows import (
    MOST_CHANNELS,
    MOST_VALUES,
    Folded,
    Mode,
    PlaceOf,
    Tables,
    Window,
    fold,
)
from nsc.errors import WindowError
from nsc.join.choosing import Kind, serve
from nsc.join.on_demand import filter_kind
from nsc.numpy.calls import NAMES, Array, some_of
from nsc.numpy.rules import mean
from nsc.runtime.devices.threads import parts_of, share_out
from nsc.runtime.exact.windows import FilterFunction, Images, Missing

# Values of windows that are written out at a time.
_WRITTEN = 1 << 22

_tables = lru_cache(maxsize=64)(Tables.of)
_fold = lru_cache(maxsize=64)(fold)
_images = lru_cache(maxsize=64)(Images.of)


@dataclass(frozen=True)
class Box:
    """The box around a window, along every axis of an array.

    Attributes:
        sizes: of the box.
        before: how many places before its value it begins.
        gaps: an array of these sizes, True at the places of the window; None: it has no gaps.
    """

    sizes: tuple[int, ...]
    before: tuple[int, ...]
    gaps: Array | None

    @property
    def values(self) -> int:
        """How many values a window has."""
        return math.prod(self.sizes) if self.gaps is None else int(np.count_nonzero(self.gaps))

    @property
    def folded(self) -> Folded:
        """The box as a kernel has it; errors as in `fold`."""
        return _fold(self.sizes, self.before)


@dataclass(frozen=True)
class Windows(Box):
    """The windows around the values of an array, and what is selected of each.

    Attributes:
        mode: which values stand outside of the array.
        outside: the value for the mode constant, an array without axes.
        place_of: where the result lies among the numbers of a window.
        join: takes the values at both ranks of a place, and its share.
        none: the result of a window with too few numbers, an array without axes; None: all values count as
            numbers.
        least: how many numbers a result needs.
        skips_nan: whether NaN is missing.
        mask: an array of the array's shape, True for missing values; None: there are none.
    """

    mode: Mode
    outside: Array
    place_of: PlaceOf
    join: Callable[[Array, Array, Any], Array] = mean
    none: Array | None = None
    least: int = 1
    skips_nan: bool = False
    mask: Array | None = None

    @property
    def tables(self) -> Tables:
        """Which values results are made of, for each number of values that a window may lack."""
        return _tables(self.place_of, self.values, self.values if self.none is None else self.least)

    @property
    def is_extreme(self) -> bool:
        """Whether results are the least or the greatest numbers of boxes without gaps."""
        return self.gaps is None and self.tables.is_extreme

    def moved(self, axes: tuple[int, ...]) -> Windows:
        """Return the windows of an array whose axes are put in another order."""
        sizes, before = (tuple(each[axis] for axis in axes) for each in (self.sizes, self.before))
        gaps, mask = (None if each is None else each.transpose(axes) for each in (self.gaps, self.mask))
        return replace(self, sizes=sizes, before=before, gaps=gaps, mask=mask)

    def some(self, share: float) -> Windows:
        """Return the windows of about a share of the array, as `some_of` cuts it."""
        return self if self.mask is None else replace(self, mask=some_of(self.mask, share))

    def kernels(self) -> Window | None:
        """Return the window that a kernel has for these; None: no kernel serves them."""
        places = () if self.gaps is None else tuple(map(int, np.flatnonzero(self.gaps)))
        with suppress(WindowError):
            return _window(self.folded.window, self.tables.ranks, places) if self.tables.ranks else None
        return None


@lru_cache(maxsize=64)
def _window(box: tuple[int, int, int], ranks: tuple[int, ...], places: tuple[int, ...]) -> Window:
    return Window(*box, ranks, places)


def _by_kernel(kernel: FilterFunction, x: Array, windows: Windows, threads: int) -> Array:
    axes = _axes(x.shape, windows.sizes, windows.before)
    if axes is not None:
        values = _by_kernel(kernel, x.transpose(axes), windows.moved(axes), threads)
        return np.ascontiguousarray(values.transpose(np.argsort(axes)))
    lying, values, missing = np.ascontiguousarray(x), np.empty(x.shape, x.dtype), None
    if windows.none is not None:
        mask = None if windows.mask is None else np.ascontiguousarray(windows.mask)
        address = None if mask is None else mask.ctypes.data
        missing = Missing.of(windows.tables, address, windows.none.ctypes.data, windows.skips_nan)
    images, outside = _images(x.shape, windows.folded), windows.outside.ctypes.data
    addresses = lying.ctypes.data, images, values.ctypes.data, windows.mode, outside
    do = partial(kernel.call, *addresses, missing, None)
    share_out(do, threads, parts_of(threads, x.nbytes * windows.values))
    return values


def by_numpy(x: Array, windows: Windows) -> Array:
    """Return the result of the window around each value by NumPy; arguments as in `windowed`."""
    x = np.ascontiguousarray(x)
    padded, gone = _extended(x, windows, windows.outside), None
    rank, is_extreme = windows.tables.low[0], windows.is_extreme
    if windows.none is not None:
        gone = np.isnan(x) if windows.skips_nan else np.zeros(x.shape, bool)
        gone = gone if windows.mask is None else gone | windows.mask
        is_nan = bool(windows.outside != windows.outside)
        gone = _extended(gone, windows, windows.mode is Mode.SHRINK or (windows.skips_nan and is_nan))
        # Missing values come last, but first where the greatest number is the result.
        end = np.fmin.reduce(padded, axis=None) if is_extreme and rank else padded.max()
        padded = np.where(gone, end, padded)
    if is_extreme:
        values = _extremes(padded, windows.sizes, is_least=rank == 0)
        if gone is not None and windows.none is not None:
            np.copyto(values, windows.none, where=_sums(~gone, windows.sizes) < windows.least)
        return values
    values, count = np.empty(x.shape, x.dtype), windows.values

    def rows_of(extended: Array) -> Array:
        boxes = _boxes_of(extended, windows.sizes)[part]
        rows: Array = boxes.copy() if windows.gaps is None else boxes[..., windows.gaps]
        return rows.reshape(-1, count)

    for part in _parts(x.shape, max(1, _WRITTEN // count)):
        rows, result = rows_of(padded), values[part]
        if gone is None:
            rows.partition(rank, axis=-1)
            result[...] = rows[:, rank].reshape(result.shape)
        else:
            result[...] = _of_numbers(rows, rows_of(gone).sum(axis=-1), windows).reshape(result.shape)
    return values


def _parts(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Yield parts of an array of about `most` values: some of the first axis, or parts of one of it."""
    length, rest = shape[0], math.prod(shape[1:])
    step = max(1, most // rest)
    for start in range(0, length, step):
        part = slice(start, start + step)
        if rest <= most or len(shape) == 1:
            yield (part,)
        else:
            yield from ((part, *others) for others in _parts(shape[1:], most))


@np.errstate(all="ignore")
def _of_numbers(rows: Array, lacks: Array, windows: Windows) -> Array:
    """Return the results of windows, a row each; `lacks` says how many of a row's values are missing."""
    rows.sort(axis=-1)
    values = np.full(len(rows), windows.none)
    for lack in np.unique(lacks):
        count, these = windows.values - int(lack), lacks == lack
        place = windows.place_of(count) if count >= windows.least else None
        if place is not None:
            values[these] = rows[these, place.low]
            if place.share is not None:
                values[these] = windows.join(values[these], rows[these, place.high], place.share)
    return values


def _sums(x: Array, sizes: tuple[int, ...]) -> Array:
    """Return how many values of each box inside an array are true."""
    for axis, size in enumerate(sizes):
        if size > 1:
            sums = np.cumsum(np.moveaxis(x, axis, 0), axis=0, dtype=np.int32)
            sums[size:] -= sums[:-size].copy()
            x = np.moveaxis(sums[size - 1 :], 0, axis)
    return x


def _boxes_of(x: Array, sizes: tuple[int, ...]) -> Array:
    """Return all boxes inside an array in C order; NumPy has a slower function for it."""
    places = (length - size + 1 for length, size in zip(x.shape, sizes, strict=True))
    boxes: Array = np.ndarray((*places, *sizes), x.dtype, x, 0, (*x.strides, *x.strides))
    return boxes


def _extended(x: Array, windows: Windows, outside: Array | bool) -> Array:
    """Return an array extended by the values that windows reach, `outside` where none of its own stands."""
    for axis, (size, before) in enumerate(zip(windows.sizes, windows.before, strict=True)):
        if size > 1:
            places, is_outside = _places(x.shape[axis], size, before, windows.mode)
            x = x.take(places, axis)
            if is_outside is not None:
                at: Any = (*[slice(None)] * axis, is_outside)
                x[at] = outside
    return np.ascontiguousarray(x)


@lru_cache(maxsize=64)
def _places(length: int, size: int, before: int, mode: Mode) -> tuple[Array, Array | None]:
    """Return the index of the value at each place of an extended axis, and where none stands there."""
    places = np.arange(-before, length + size - 1 - before)
    if mode is Mode.WRAP:
        return places % length, None
    if mode in (Mode.CONSTANT, Mode.SHRINK):
        return places.clip(0, length - 1), (places < 0) | (places >= length)
    if mode is Mode.NEAREST or length == 1:
        return places.clip(0, length - 1), None
    # A row and its reversal repeat; a mirrored row lacks both ends in the reversal.
    lacks = mode is Mode.MIRROR
    period = 2 * length - 2 * lacks
    places %= period
    return np.minimum(places, period - 1 + lacks - places), None


def _extremes(x: Array, sizes: tuple[int, ...], is_least: bool) -> Array:
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


def windowed(
    function: str,
    x: Array,
    windows: Windows,
    threads: int,
    peer: Callable[[Array, Windows], Array] = by_numpy,
) -> Array:
    """Return the result of the window around each value.

    Args:
        function: the function that was called, for a warning.
        x: an array with at least one value; where places are joined, of float32 or float64.
        windows: the windows.
        threads: how many at most.
        peer: takes some of the array and its windows, and returns their results.
    """
    count = windows.values
    if count > MOST_VALUES and peer is by_numpy and not windows.is_extreme:
        _warn(function, count)

    def find() -> Kind[FilterFunction] | None:
        axes, shape, moved = _axes(x.shape, windows.sizes, windows.before), x.shape, windows
        if axes is not None:
            shape, moved = tuple(shape[axis] for axis in axes), windows.moved(axes)
        window = moved.kernels()
        if window is None:
            return None
        channels = _images(shape, moved.folded).channels
        name = "NumPy" if peer is by_numpy else "bottleneck"
        return filter_kind(window, NAMES[x.dtype], channels, windows.none is not None, name)

    return serve(
        find,
        x.size,
        x.size * count,
        lambda kernel: _by_kernel(kernel, x, windows, threads) if kernel else peer(x, windows),
        lambda share: peer(some_of(x, share), windows.some(share)).size,
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


@lru_cache(maxsize=64)
def _axes(shape: tuple[int, ...], sizes: tuple[int, ...], before: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the order in which kernels read an array's axes: the window's axes last; None: as they are."""
    wide = [axis for axis, size in enumerate(sizes) if size > 1]
    if not wide or wide[-1] - wide[0] < 3:
        folded = _fold(sizes, before)
        if folded.is_column or math.prod(shape[len(shape) - folded.behind :]) <= MOST_CHANNELS:
            return None
    order = (*(axis for axis in range(len(shape)) if axis not in wide), *wide)
    return None if order == tuple(range(len(shape))) else order
