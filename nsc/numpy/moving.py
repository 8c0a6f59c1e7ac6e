"""Statistics of windows that move along an axis, such as time, as in pandas and bottleneck."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import flag, is_name, whole
from nsc.compiler.windows import MOST_VALUES
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.arrays import Array, axis_of, read
from nsc.numpy.chunks import Reach, around, by_blocks, is_chunked, read_chunked
from nsc.numpy.filters import rank_filter
from nsc.numpy.methods import METHODS, Place
from nsc.numpy.quantiles import levels_of, rule_of
from nsc.numpy.reducing import Rule, at_place, of_numbers
from nsc.numpy.samples import each_block
from nsc.numpy.statistics import MEDIAN, float_of
from nsc.numpy.threads import thread_count

# Values that a pass over the places of a window reads; they fit a core's second-level cache.
_PASS = 1 << 15


class Rolling:
    """Windows along an axis, as `rolling` returns them. Each method is a statistic of every window.

    Results have the shape of the array; they are float64, or of its floating-point type. A result is NaN if
    its window has fewer numbers than `min_periods`. Those of a Dask array are lazy.

    >>> rolling([1.0, 5.0, 2.0, 8.0], 3).max()
    array([nan, nan,  5.,  8.])
    """

    def __init__(self, x: Array, axis: int, window: int, least: int, ahead: int, workers: int | None) -> None:
        self._x, self._places, self._workers = x, (axis, window, least, ahead), workers

    def __repr__(self) -> str:
        axis, window, least, _ = self._places
        return f"Rolling(window={window}, axis={axis}, min_periods={least})"

    def median(self) -> Array:
        """Return the medians; of an even number of values, the mean of the two middle ones.

        >>> rolling([1.0, 5.0, 2.0, 8.0], 2).median()
        array([nan, 3. , 3.5, 5. ])
        """
        return self._each("median")

    def min(self) -> Array:
        """Return the least values.

        >>> rolling([4, 1, 3], 2, min_periods=1).min()
        array([4., 1., 1.])
        """
        return self._each("min")

    def max(self) -> Array:
        """Return the greatest values.

        >>> rolling([4, 1, 3], 2, min_periods=1).max()
        array([4., 4., 3.])
        """
        return self._each("max")

    def quantile(self, q: float, method: str = "linear") -> Array:
        """Return a quantile, by a method as NumPy names it.

        Args:
            q: in 0 … 1.
            method: as in `nsc.numpy.quantile`.

        Raises:
            OperandError: a q outside of 0 … 1, or no such method.
            OperandTypeError: a q that is not one real number.

        >>> rolling([1.0, 5.0, 2.0, 8.0], 3).quantile(0.25)
        array([nan, nan, 1.5, 3.5])
        """
        return self._each("quantile", q, method)

    def rank(self) -> Array:
        """Return the rank of each window's last value among its numbers, 1 the smallest.

        Equal values have the mean of their ranks. The rank of NaN is NaN.

        Cost: a pass over the array for each place of the window.

        >>> rolling([1.0, 5.0, 2.0, 8.0, 2.0], 3).rank()
        array([nan, nan, 2. , 3. , 1.5])
        """
        return self._each("rank")

    def _each(self, name: str, *arguments: Any) -> Array:
        return _statistic(self._x, name, arguments, *self._places, workers=self._workers)


def _reach(ndim: int, options: Mapping[str, Any]) -> Reach:
    """Return how far the windows of a statistic reach along each axis."""
    ahead = options["ahead"]
    sides = [(0, 0)] * ndim
    sides[options["axis"]] = options["window"] - 1 - ahead, ahead
    return sides, False


@by_blocks(around(_reach))
def _statistic(
    array: Array,
    name: str,
    arguments: tuple[Any, ...],
    axis: int,
    window: int,
    least: int,
    ahead: int,
    workers: int | None,
) -> Array:
    """Return a statistic of all windows, that of a method of _Windows."""
    windows = _Windows(array, axis, window, least, ahead, thread_count("rolling", workers))
    found: Array = getattr(windows, name)(*arguments)
    return found


class _Windows:
    """The windows of an array that lies in memory."""

    def __init__(self, x: Array, axis: int, window: int, least: int, ahead: int, threads: int) -> None:
        self._axis, self._least, self._threads = axis, least, threads
        moved = np.moveaxis(x, axis, -1)
        # A window reaches no further than the array.
        most = max(0, moved.shape[-1] - 1)
        self._ahead, self._before = min(ahead, most), min(window - 1 - ahead, most)
        self._window = self._before + 1 + self._ahead
        self._shape = moved.shape
        self._rows = np.ascontiguousarray(moved).reshape(math.prod(moved.shape[:-1]), moved.shape[-1])

    def median(self) -> Array:
        return self._by_rule(MEDIAN, float_of(self._rows))

    def min(self) -> Array:
        return self._by_rule(_LEAST, float_of(self._rows))

    def max(self) -> Array:
        return self._by_rule(_GREATEST, float_of(self._rows))

    def quantile(self, q: float, method: str) -> Array:
        if not is_name(method, METHODS):
            raise OperandError(
                f"nsc.numpy.rolling: method must be one of {', '.join(METHODS)}, got {method!r}"
            )
        level = levels_of("rolling", q)
        if level.ndim:
            raise OperandTypeError(f"nsc.numpy.rolling: q must be one real number, got {q!r}")
        # NaN needs a floating-point type.
        dtype, rule = rule_of(float_of(self._rows), level, method, is_weak=True)
        return self._by_rule(rule, dtype)

    def rank(self) -> Array:
        padded, columns = self._padded(), self._rows.shape[1]
        results = np.empty(self._rows.shape)
        for row, result in zip(padded, results, strict=True):
            for start in range(0, columns, _PASS):
                stop = min(start + _PASS, columns)
                last = row[start + self._window - 1 : stop + self._window - 1]
                less, equal, numbers = (np.zeros(stop - start, np.int32) for _ in range(3))
                for place in range(self._window):
                    values = row[start + place : stop + place]
                    less += values < last
                    equal += values == last
                    numbers += values == values
                ranks = less + (equal + 1) / 2
                result[start:stop] = np.where((numbers >= self._least) & (equal > 0), ranks, np.nan)
        return self._back(results.astype(float_of(self._rows), copy=False))

    def _by_rule(self, rule: Rule, dtype: np.dtype[Any]) -> Array:
        outer, columns = self._rows.shape
        results = np.full((outer, columns), np.nan, dtype)
        whole_ones = slice(self._before, max(0, columns - self._ahead))
        if not results.size or self._least > self._window:
            pass
        elif not self._has_filter():
            results[:] = self._sorted_windows(rule, dtype, slice(0, columns))
        else:
            if columns >= self._window:
                results[:, whole_ones] = self._filtered(rule)
            if self._least < self._window:
                first, last = min(columns, whole_ones.start), max(whole_ones.stop, 0)
                for part in (slice(0, first), slice(max(first, last), columns)):
                    results[:, part] = self._sorted_windows(rule, dtype, part)
        return self._back(results)

    def _has_filter(self) -> bool:
        """Whether a filter can serve whole windows: they are small enough, and no NaN must be left out."""
        return self._window <= MOST_VALUES and not (
            self._rows.dtype.kind == "f" and np.isnan(self._rows).any()
        )

    def _filtered(self, rule: Rule) -> Array:
        """Return the statistic of all windows inside the array. They share their sorted parts."""
        places = rule.places(self._window)
        first = self._window // 2
        inside = slice(first, first + self._rows.shape[1] - self._window + 1)
        by_rank = {
            rank: rank_filter(self._rows, rank, (1, self._window), "nearest", workers=self._threads)[
                :, inside
            ]
            for rank in {rank for place in places for rank in (place.low, place.high)}
        }
        with np.errstate(all="ignore"):
            return at_place(rule, places[0], by_rank[places[0].low], by_rank[places[0].high])

    def _sorted_windows(self, rule: Rule, dtype: np.dtype[Any], part: slice) -> Array:
        """Return the statistic of the numbers of some windows, each sorted by itself."""
        windows = np.lib.stride_tricks.sliding_window_view(self._padded(), self._window, axis=1)[:, part]
        outer, count, _ = windows.shape
        results = np.empty((1, outer, count), dtype)
        if results.size:
            each_block(
                "rolling",
                windows.swapaxes(1, 2),
                None,
                lambda block: of_numbers(block.values, rule, self._least),
                results,
                self._threads,
            )
        found: Array = results[0]
        return found

    def _padded(self) -> Array:
        """Return the array with NaN where windows reach out of it."""
        outer, columns = self._rows.shape
        padded = np.full((outer, columns + self._window - 1), np.nan, float_of(self._rows))
        padded[:, self._before : self._before + columns] = self._rows
        return padded

    def _back(self, results: Array) -> Array:
        return np.ascontiguousarray(np.moveaxis(results.reshape(self._shape), -1, self._axis))


def rolling(
    array: ArrayLike,
    window: int,
    axis: int = -1,
    *,
    min_periods: int | None = None,
    center: bool = False,
    workers: int | None = None,
) -> Rolling:
    """Return windows that move along an axis, as pandas.DataFrame.rolling; their statistics are its methods.

    The window of a value is the value and the window - 1 before it; with `center`, (window - 1) // 2 of them
    come after it. NaN and places outside of the array do not count as numbers.

    Args:
        array: of at least one axis. Types are those of `sort`.
        window: how many values it has.
        axis: along which it moves.
        min_periods: how many numbers a window must have; None: all. Named min_count in bottleneck.
        center: whether the value is the middle one of its window.
        workers: threads at most, or -1; None: those of `get_num_threads`.

    Raises:
        OperandTypeError: a type that is not served; a masked array, or another class than NumPy's own; an
            argument of another type.
        OperandError: a window of no values; min_periods outside 1 … window; workers neither positive nor -1.
        numpy.exceptions.AxisError: no such axis.

    Cost: windows of up to 225 values in an array without NaN share their sorted parts, as in `rank_filter`;
    others are sorted one by one.

    >>> rolling([1.0, 5.0, 2.0, 8.0], 3).median()
    array([nan, nan,  2.,  5.])
    """
    x = read_chunked("rolling", array) if is_chunked(array) else read("rolling", array)
    if workers is not None:
        thread_count("rolling", workers)  # refuses others
    axis = axis_of("rolling", axis, x.ndim)
    size = whole(window)
    if size is None or size < 1:
        raise OperandError(f"nsc.numpy.rolling: window must be an integer, 1 or more, got {window!r}")
    least = size if min_periods is None else whole(min_periods)
    if least is None or not 1 <= least <= size:
        raise OperandError(
            f"nsc.numpy.rolling: min_periods must be an integer in 1 … {size}, got {min_periods!r}"
        )
    ahead = (size - 1) // 2 if flag("center", center, OperandTypeError) else 0
    return Rolling(x, axis, size, least, ahead, workers)


def _taken(low: Array, _high: Array, _share: float) -> Array:
    return low


_LEAST = Rule(lambda count: (Place(0, 0),), _taken)
_GREATEST = Rule(lambda count: (Place(count - 1, count - 1),), _taken)
