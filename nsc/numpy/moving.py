"""Statistics of windows that move along an axis, such as time, as in pandas and bottleneck."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import flag, whole
from nsc.contract.windows import MOST_VALUES, Mode, Place, place_of_median
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.calls import Array, axis_of, is_chunked, public, read, thread_count
from nsc.numpy.chunks import by_windows, read_chunked
from nsc.numpy.rules import Rule, levels_of, mean, rule_of
from nsc.numpy.statistics import MEDIAN, at_place, float_of
from nsc.numpy.windows import Windows, by_numpy, windowed

# Values that a pass over the places of a window reads; they fit a core's second-level cache.
_PASS = 1 << 15
# Takes some rows and their windows, and returns results.
Peer = Callable[[Array, Windows], Array]
_LEAST = Rule(lambda _: (Place(0, 0),), mean)
_GREATEST = Rule(lambda count: (Place(count - 1, count - 1),), mean)


class Rolling:
    """Windows along an axis, as `rolling` returns them. Each method is a statistic of every window.

    Results have the shape of the array; they are float64, or of its floating-point type. A result is NaN if
    its window has fewer numbers than `min_periods`. Results of a Dask array are lazy.

    >>> rolling([1.0, 5.0, 2.0, 8.0], 3).max()
    array([nan, nan,  5.,  8.])
    """

    def __init__(self, x: Array, axis: int, window: int, least: int, ahead: int, workers: int | None) -> None:
        self._x, self._places, self._workers = x, (axis, window, least, ahead), workers

    def __repr__(self) -> str:
        axis, window, least, _ = self._places
        return f"Rolling(window={window}, axis={axis}, min_periods={least})"

    def median(self) -> Array:
        """Return the medians; for an even number of values, the mean of the two middle ones.

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
        level = levels_of("rolling", q, method)
        if level.ndim:
            raise OperandTypeError(f"nsc.numpy.rolling: q must be one real number, got {q!r}")
        return self._each("quantile", level, method)

    def rank(self) -> Array:
        """Return the rank of each window's last value in the array among its numbers, 1 the smallest.

        Equal values have the mean of their ranks. The rank of NaN is NaN.

        Cost: a pass over the array for each place of the window.

        >>> rolling([1.0, 5.0, 2.0, 8.0, 2.0], 3).rank()
        array([nan, nan, 2. , 3. , 1.5])
        """
        return self._each("rank")

    def _each(self, name: str, *arguments: Any) -> Array:
        return _statistic(self._x, name, arguments, *self._places, workers=self._workers)


def _reach(ndim: int, options: Mapping[str, Any]) -> tuple[list[tuple[int, int]], bool]:
    """Return how far windows reach along each axis; they do not go on at the other end."""
    ahead = options["ahead"]
    sides = [(0, 0)] * ndim
    sides[options["axis"]] = options["window"] - 1 - ahead, ahead
    return sides, False


@public(by_windows(_reach))
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
    """Return a statistic of all windows; a method of _Windows has its name."""
    moved = np.moveaxis(array, axis, -1)
    rows = moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])
    if name not in ("min", "max"):  # bottleneck takes extremes where the values lie
        rows = np.ascontiguousarray(rows)
    # A window reaches no further than the array.
    most = max(0, rows.shape[1] - 1)
    sides = min(window - 1 - ahead, most), min(ahead, most)
    windows = _Windows(rows, *sides, least, thread_count("rolling", workers, rows.size))
    if rows.size and least <= windows.window:
        found = getattr(windows, name)(*arguments)
    else:
        found = np.full(rows.shape, np.nan, windows.dtype)
    return np.ascontiguousarray(np.moveaxis(found.reshape(moved.shape), -1, axis))


@dataclass(frozen=True)
class _Windows:
    """The windows of rows: some values before and ahead of a value. A result needs `least` numbers."""

    rows: Array
    before: int
    ahead: int
    least: int
    threads: int

    @property
    def window(self) -> int:
        """How many values a window has."""
        return self.before + 1 + self.ahead

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of results. NaN needs a floating-point type."""
        return float_of(self.rows)

    def median(self) -> Array:
        return self._by_rule(MEDIAN, self._bottlenecks("move_median"))

    def min(self) -> Array:
        return self._by_rule(_LEAST, self._bottlenecks("move_min", _by_parts))

    def max(self) -> Array:
        return self._by_rule(_GREATEST, self._bottlenecks("move_max", _by_parts))

    def quantile(self, level: Array, method: str) -> Array:
        rule = rule_of(self.dtype, level, method, is_weak=True)[1]
        is_long = MOST_VALUES < self.window <= self.rows.shape[1]
        # Pandas takes infinite values for missing ones.
        has_peer = is_long and _pandas() is not None and bool(np.isfinite(self.rows).all())
        return self._by_rule(rule, partial(self._by_pandas, rule) if has_peer else by_numpy)

    def rank(self) -> Array:
        columns = self.rows.shape[1]
        padded = np.full((len(self.rows), columns + self.window - 1), np.nan, self.dtype)
        padded[:, self.before : self.before + columns] = self.rows
        results = np.empty(self.rows.shape, self.dtype)
        lasts = self.rows[:, np.minimum(np.arange(columns) + self.ahead, columns - 1)]
        for row, ending, result in zip(padded, lasts, results, strict=True):
            for start in range(0, columns, _PASS):
                last = ending[start : start + _PASS]
                less, equal, numbers = np.zeros((3, len(last)), np.int32)
                for place in range(start, start + self.window):
                    values = row[place : place + len(last)]
                    less += values < last
                    equal += values == last
                    numbers += values == values
                is_there = (numbers >= self.least) & (equal > 0)
                result[start : start + _PASS] = np.where(is_there, less + (equal + 1) / 2, np.nan)
        return results

    def _by_rule(self, rule: Rule, peer: Peer) -> Array:
        """Return the statistic of all windows: extremes by a peer, others by a kernel or a peer."""
        # Means of types of 16 bits or fewer are exact in float32.
        is_short = self.rows.dtype.itemsize <= 2 and (rule is MEDIAN or self.dtype == np.float16)
        wide = np.dtype(np.float32) if is_short else self.dtype
        windows = Windows(
            (1, self.window),
            (0, self.before),
            None,
            Mode.SHRINK,
            np.zeros((), wide),
            place_of_median if rule is MEDIAN else lambda count: rule.places(count)[0],
            rule.join,
            np.array(np.nan, wide),
            self.least,
            skips_nan=True,
        )
        rows = self.rows.astype(wide, copy=False)
        if rule in (_LEAST, _GREATEST):
            found = peer(rows, windows)
        else:
            found = windowed("nsc.numpy.rolling", rows, windows, self.threads, peer)
        return found.astype(self.dtype, copy=False)

    def _by_pandas(self, rule: Rule, rows: Array, windows: Windows) -> Array:
        """Return the statistic of windows of finite numbers, by pandas where they lie in the rows."""
        around, columns, place = self.window - 1, rows.shape[1], rule.places(self.window)[0]
        rolling = _pandas().DataFrame(rows.T).rolling(self.window)
        low, high = (
            rolling.quantile(rank / around, interpolation="nearest").to_numpy().T[:, around:]
            for rank in (place.low, place.high)
        )
        with np.errstate(all="ignore"):
            inside = at_place(rule, place, low.astype(rows.dtype), high.astype(rows.dtype))
        first = by_numpy(rows[:, :around], windows)[:, : self.before]
        last = by_numpy(rows[:, columns - around :], windows)[:, around - self.ahead :]
        return np.concatenate([first, inside, last], axis=1)

    def _bottlenecks(self, name: str, other: Peer = by_numpy) -> Peer:
        return partial(self._by_bottleneck, name) if _bottleneck() else other

    def _by_bottleneck(self, name: str, rows: Array, windows: Windows) -> Array:
        """Return a statistic of all windows by bottleneck, which counts numbers as `least` does."""
        padded = rows
        if self.ahead:
            padded = np.concatenate([rows, np.full((len(rows), self.ahead), np.nan, rows.dtype)], axis=1)
        move = getattr(_bottleneck(), name)
        found: Array = move(padded, self.window, min_count=self.least, axis=1)[:, self.ahead :]
        if name == "move_median" and np.isinf(found).any():
            # Bottleneck's sums may be too large for the type.
            sizes = np.abs(rows[np.isfinite(rows)])
            if sizes.max(initial=0) > np.finfo(found.dtype).max / 2:
                return by_numpy(rows, windows)
        return found


def _by_parts(rows: Array, windows: Windows) -> Array:
    """Return the results by NumPy for a few rows at a time, which fit a core's cache."""
    step = max(1, _PASS // rows.shape[1])
    parts = [by_numpy(rows[start : start + step], windows) for start in range(0, len(rows), step)]
    return np.concatenate(parts)


@cache
def _bottleneck() -> Any:
    """Return the module; None if it is not installed."""
    return importlib.import_module("bottleneck") if importlib.util.find_spec("bottleneck") else None


@cache
def _pandas() -> Any:
    """Return the module; None if it is not installed."""
    return importlib.import_module("pandas") if importlib.util.find_spec("pandas") else None


def rolling(
    array: ArrayLike,
    window: int,
    axis: int | None = None,
    *,
    min_periods: int | None = None,
    center: bool = False,
    workers: int | None = None,
) -> Rolling:
    """Return windows that move along an axis, as pandas.DataFrame.rolling; their statistics are its methods.

    The window of a value is the value and the `window` - 1 values before it; with `center`,
    (`window` - 1) // 2 of them come after it. NaN and places outside of the array do not count as numbers.

    Args:
        array: of at least one axis; types as in `sort`.
        window: how many values a window has.
        axis: along which windows move; None: down the rows of a DataFrame, along the last axis of arrays.
        min_periods: how many numbers a window must have; None: all. Named min_count in bottleneck.
        center: whether the value is the middle one of its window.
        workers: the most threads, or -1; None: as many as `get_num_threads` returns.

    Raises:
        OperandTypeError: a type that is not served; a masked array, or another class than NumPy's own; an
            argument of another type.
        OperandError: a window of no values; min_periods outside 1 … window; workers neither positive nor -1.
        numpy.exceptions.AxisError: no such axis.

    Infinite numbers count as numbers, as in bottleneck; in pandas they are missing.

    Cost: minima and maxima take a pass over the array for each bit of the window. Medians and quantiles of
    up to 225 values in an array without NaN share their sorted parts, as in `rank_filter`. Others are
    selected in each window. Where bottleneck or pandas is installed and gives the same results, it is used.

    >>> rolling([1.0, 5.0, 2.0, 8.0], 3).median()
    array([nan, nan,  2.,  5.])
    """
    x = read_chunked("rolling", array) if is_chunked(array) else read("rolling", array)
    if workers is not None:
        thread_count("rolling", workers, x.size)  # refuses other workers
    if axis is None:
        axis = 0 if type(array).__name__ == "DataFrame" else -1
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
