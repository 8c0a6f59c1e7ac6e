"""Medians, quantiles and trimmed means along axes, of all values or of the numbers, with and without weights.

A `Rule` says which ranks of a sample a result reads, and how it joins their values. NaN is larger than every
number, so the numbers of a sorted sample lie in front, and their count gives a sample its own ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import real
from nsc.contract.windows import Place
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.by_numpy import small_median, small_nanmedian, small_percentile, small_quantile
from nsc.numpy.calls import (
    TIMES,
    Array,
    Axes,
    axes_of,
    check_out,
    keeps_axes,
    public,
    read,
    thread_count,
)
from nsc.numpy.chunks import by_samples
from nsc.numpy.rules import Rule, is_wide, levels_of, mean, mean_of_integers, rule_of
from nsc.numpy.samples import Samples, SortedBlock, Statistic, each_block
from nsc.numpy.weights import (
    Weighted,
    mean_of_rows,
    of_weights,
    read_weights,
    weighted_median,
    weighted_quantiles,
    weighted_trimmed_mean,
)

# Samples of up to so many values are searched for NaN rank by rank. Longer ones are grouped by their counts
# of numbers.
_FEW = 64


@public(by_samples, small_median)
def median(
    array: ArrayLike,
    axis: Axes = None,
    *,
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the median along axes, as numpy.median: NaN where there is a NaN, float64 for integers.

    The median of times is a time, NaT where there is a NaT. The mean of two durations is cut towards 0, as
    in NumPy; the mean of two dates, which NumPy lacks, is cut towards the earlier one.

    With weights, the median is the value with at most half of the whole weight below it and at most half
    above it. If there are two such values, the median is their mean. Equal weights change nothing. Whole
    weights give the median of values that are repeated so many times. Weights are summed in float64.

    Args:
        array: of any shape. Samples of more than MOST values are sorted by NumPy.
        axis: the axes of a sample; None: all, as in NumPy.
        weights: of the array's shape, or of the shape of the named axes; none negative, not all 0.
        keepdims: whether the axes of a sample stay, with length 1.
        out: where to write the results, of their shape; None: to a new array.
        workers: the most threads, or -1; None: as many as `get_num_threads` returns.

    Raises:
        OperandTypeError: a type that is not served; a masked array, or another class than NumPy's own; an
            argument of another type.
        OperandError: no values along the axes; weights or an `out` that do not fit; workers neither positive
            nor -1.
        numpy.exceptions.AxisError: no such axis.

    Source of the weighted form: the lower and upper weighted median of F. Y. Edgeworth (1888).

    >>> median([[3, 1, 4], [1, 5, 9]], axis=1), median([[3, 1, 4, 1]])
    (array([3., 5.]), np.float64(2.0))
    >>> median([[1.0, 7.0], [2.0, 8.0], [6.0, 9.0]], axis=0, weights=[1, 1, 3])  # three clients
    array([6., 9.])
    """
    return _Reduction.of("median", array, axis, keepdims, out, workers).median(weights)


@public(by_samples, small_nanmedian)
def nanmedian(
    array: ArrayLike,
    axis: Axes = None,
    *,
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the median of the numbers along axes, as numpy.nanmedian.

    A sample without a number gives NaN, without a warning. The weight of a NaN does not count. Arguments and
    errors as in `median`.

    Cost: a sort, and one pass over its results.

    >>> nanmedian([[3.0, np.nan, 4.0], [np.nan, 5.0, np.nan]], axis=1)
    array([3.5, 5. ])
    """
    return _Reduction.of("nanmedian", array, axis, keepdims, out, workers).median(weights)


@public(by_samples, small_quantile)
def quantile(
    array: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return quantiles along axes, as numpy.quantile: NaN where there is a NaN.

    Methods are NumPy's, with its names. Results of inverted_cdf, closest_observation, lower, higher and
    nearest are values of the array. Results of the other methods lie between two values; if one of the two is
    infinite, so is the result, and NaN between -∞ and ∞. For integers these methods compute in float64.

    Args:
        q: in 0 … 1, of any shape. Its axes come in front of the axes that are kept.
        method: one of NumPy's.
        weights: as in `median`; only for the method inverted_cdf, as in NumPy.
        array, axis, keepdims, out, workers: as in `median`.

    Raises:
        OperandError: a q outside of 0 … 1; no such method; weights for another method; or as in `median`.
        OperandTypeError: a q of numbers that are not real; or as in `median`.

    >>> quantile([1.0, 2.0, 4.0], [0.5, 0.75]), quantile([[3, 1, 2]], 0.5, axis=1, method="lower")
    (array([2., 3.]), array([2]))
    >>> quantile([1, 2, 3], 0.5, weights=[1, 1, 3], method="inverted_cdf")
    np.int64(3)
    """
    asked = _Reduction.of("quantile", array, axis, keepdims, out, workers)
    return asked.quantiles(q, method, weights)


@public(by_samples)
def nanquantile(
    array: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return quantiles of the numbers along axes, as numpy.nanquantile.

    A sample without a number gives NaN, without a warning. The weight of a NaN does not count. Arguments and
    errors as in `quantile`.

    Cost: a sort, and one pass over its results for each q.

    >>> nanquantile([[1.0, np.nan, 2.0], [4.0, 8.0, 6.0]], 0.5, axis=1)
    array([1.5, 6. ])
    """
    asked = _Reduction.of("nanquantile", array, axis, keepdims, out, workers)
    return asked.quantiles(q, method, weights)


@public(by_samples, small_percentile)
def percentile(
    array: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return percentiles along axes, as numpy.percentile: as `quantile`, with q in 0 … 100.

    >>> percentile([1.0, 2.0, 3.0, 4.0, 5.0], [25, 50])
    array([2., 3.])
    """
    asked = _Reduction.of("percentile", array, axis, keepdims, out, workers)
    return asked.quantiles(q, method, weights)


@public(by_samples)
def nanpercentile(
    array: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    *,
    method: str = "linear",
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return percentiles of the numbers along axes, as numpy.nanpercentile: as `nanquantile`, q in 0 … 100.

    >>> nanpercentile([1.0, np.nan, 3.0], 50)
    np.float64(2.0)
    """
    asked = _Reduction.of("nanpercentile", array, axis, keepdims, out, workers)
    return asked.quantiles(q, method, weights)


@public(by_samples)
def trimmed_mean(
    array: ArrayLike,
    proportion: float,
    axis: Axes = None,
    *,
    weights: ArrayLike | None = None,
    keepdims: bool = False,
    out: Array | None = None,
    workers: int | None = None,
) -> Array:
    """Return the mean without the smallest and largest values, as scipy.stats.trim_mean.

    At each end int(proportion · n) of n values are left out. NaN is the result where there is a NaN. Sums are
    in float64; results are float64, or of the array's floating-point type.

    With weights, the share `proportion` of the whole weight is left out at each end. One value may lose a
    part of its weight. The result is the weighted mean of the rest. Equal weights give the mean without
    weights if proportion · n is whole.

    Args:
        proportion: in 0 … 1/2, less than 1/2.
        array, axis, weights, keepdims, out, workers: as in `median`.

    Raises:
        OperandError: no such proportion; or as in `median`.

    Source of the weighted form: the mean of the inverse distribution function between two levels, as
    P. J. Huber, Robust Statistics (1981), section 3.3, writes the trimmed mean.

    >>> values = [1.0, 2.0, 3.0, 100.0]
    >>> trimmed_mean(values, 0.25), trimmed_mean(values, 0.25, weights=[1, 2, 2, 1])
    (np.float64(2.5), np.float64(2.5))
    """
    asked = _Reduction.of("trimmed_mean", array, axis, keepdims, out, workers)
    share, dtype, n = real(proportion), float_of(asked.x), asked.samples.shape[1]
    if share is None or not 0 <= share < 0.5:
        raise OperandError(
            f"nsc.numpy.trimmed_mean: proportion must be at least 0 and less than 1/2, got {proportion!r}"
        )
    if weights is not None:
        return asked.by_weights((), dtype, partial(weighted_trimmed_mean, share), weights)
    cut = int(share * n)

    def of_block(block: SortedBlock) -> list[Array]:
        return [mean_of_rows(block.values[cut : n - cut])]

    return asked.results((), dtype, Statistic(of_block))


@dataclass(frozen=True)
class _Reduction:
    """The arguments that all statistics share: an array, its samples, and where results go.

    Attributes:
        function: the function that was called, for messages. If its name begins with nan, NaN is left out.
        x: the array.
        axes: the axes of a sample, in the order named.
        samples: how the array is read.
        keepdims: whether these axes stay, with length 1.
        out: where results are written; None: to a new array.
        threads: how many at most.
    """

    function: str
    x: Array
    axes: tuple[int, ...]
    samples: Samples
    keepdims: bool
    out: Array | None
    threads: int

    @classmethod
    def of(
        cls, function: str, array: ArrayLike, axis: object, keepdims: bool, out: Any, workers: int | None
    ) -> _Reduction:
        """Read the arguments that all statistics share; errors as in `median`."""
        x = read(function, array)
        keepdims = keeps_axes(keepdims) and x.ndim > 0
        if x.ndim == 0 and axis is None:
            x = x.reshape(1)
        axes = axes_of(function, axis, x.ndim)
        samples = Samples.of(x, axes)
        if samples.shape[1] == 0:
            raise OperandError(
                f"nsc.numpy.{function}: an axis of no values has no {function.removeprefix('nan')}"
            )
        return cls(function, x, axes, samples, keepdims, out, thread_count(function, workers, x.size))

    def median(self, weights: ArrayLike | None) -> Array:
        """Return the medians, as `median` defines them."""
        if self.x.dtype.kind in TIMES:
            return self._median_of_times(weights)
        if weights is None:
            return self.by_rule((), float_of(self.x), _MEDIAN_OF_WIDE if is_wide(self.x.dtype) else MEDIAN)
        return self.by_weights((), float_of(self.x), weighted_median, weights)

    def _median_of_times(self, weights: ArrayLike | None) -> Array:
        if weights is not None:
            raise OperandTypeError(f"nsc.numpy.median: weights need numbers, got {self.x.dtype}")
        numbers = replace(self, x=self.x.view(np.int64), out=None)
        mean = _mean_of_dates if self.x.dtype.kind == "M" else _mean_of_durations
        of_numbers = numbers.by_rule((), numbers.x.dtype, replace(MEDIAN, join=mean))
        found = np.asarray(of_numbers).view(self.x.dtype)
        found[np.isnat(self.x).any(self.axes, keepdims=self.keepdims)] = "NaT"
        check_out("median", self.out, found.shape, found.dtype)
        if self.out is None:
            return found[()]
        np.copyto(self.out, found, casting="same_kind")
        return self.out

    def quantiles(self, q: ArrayLike, method: str, weights: ArrayLike | None) -> Array:
        """Return the quantiles, as `quantile` defines them; in percent for a function of percentiles."""
        levels = levels_of(self.function, q, method)
        if weights is None:
            dtype, rule = rule_of(self.x.dtype, levels, method, type(q) in (int, float))
            return self.by_rule(levels.shape, dtype, rule)
        if method != "inverted_cdf":
            raise OperandError(
                f"nsc.numpy.{self.function}: weights need the method 'inverted_cdf', as in NumPy, "
                f"got {method!r}"
            )
        return self.by_weights(levels.shape, self.x.dtype, partial(weighted_quantiles, levels), weights)

    @property
    def has_nan(self) -> bool:
        """Whether the array may have NaN."""
        return self.x.dtype.kind == "f"

    @property
    def skips_nan(self) -> bool:
        """Whether NaN is left out; otherwise a sample with a NaN gives NaN."""
        return self.function.startswith("nan")

    def results(self, leading: tuple[int, ...], dtype: np.dtype[Any], statistic: Statistic) -> Array:
        """Return the results of a statistic; unless NaN is left out, a sample with a NaN gives NaN.

        Args:
            leading: the lengths of axes in front of the kept axes, with a place for each result.
            dtype: of results.
            statistic: the statistic to compute; for samples that may have a NaN it reads the last rank.
        """
        x, out, samples = self.x, self.out, self.samples
        others = [length for axis, length in enumerate(x.shape) if axis not in self.axes]
        kept = [1 if axis in self.axes else length for axis, length in enumerate(x.shape)]
        shape, outer, inner = (*leading, *(kept if self.keepdims else others)), *samples.shape[::2]
        check_out(self.function, out, shape, dtype)
        # Results go directly to `out` if its type is right and this overwrites nothing that is read.
        room, count = None, math.prod(leading)
        if out is not None and out.dtype == dtype and not np.may_share_memory(out, x):
            view = samples.forth(out.reshape(count, *others))
            room = view if np.may_share_memory(view, out) else None
        results = np.empty((count, outer, inner), dtype) if room is None else room
        if self.has_nan and not self.skips_nan:
            statistic = statistic._replace(of_block=partial(_with_nan, statistic.of_block))
        if results.size:
            each_block(samples.lay(x), statistic, results, self.threads)
        if out is None:
            return samples.back(results).reshape(shape)[()]
        if room is None:
            np.copyto(out, samples.back(results).reshape(shape), casting="same_kind")
        return out

    def by_rule(self, leading: tuple[int, ...], dtype: np.dtype[Any], rule: Rule) -> Array:
        """Return the results of a rule; if NaN is left out, it reads each sample's numbers alone."""
        if self.has_nan and self.skips_nan:
            return self.results(leading, dtype, Statistic(lambda block: of_numbers(block.values, rule, 1)))
        n = self.samples.shape[1]
        places = rule.places(n)
        wanted = {rank for place in places for rank in (place.low, place.high)}
        wanted |= {n - 1} if self.has_nan else set()

        def of_block(block: SortedBlock) -> list[Array]:
            return [at_place(rule, place, block.at(place.low), block.at(place.high)) for place in places]

        return self.results(leading, dtype, Statistic(of_block, tuple(sorted(wanted)), selects=rule.selects))

    def by_weights(
        self, leading: tuple[int, ...], dtype: np.dtype[Any], statistic: Weighted, weights: ArrayLike
    ) -> Array:
        """Return the results of a statistic with weights."""
        laid = read_weights(self.function, weights, self.x.shape, self.axes, self.samples)
        of_block = partial(of_weights, statistic, laid, self.skips_nan)
        return self.results(leading, dtype, Statistic(of_block, reads_indices=True))


def _with_nan(of_block: Callable[[SortedBlock], Sequence[Array]], block: SortedBlock) -> Sequence[Array]:
    """Return results of a block, NaN where a sample has one: its last value is NaN if any value is."""
    rows, last = of_block(block), block.values[-1]
    is_nan = np.isnan(last)
    return [np.where(is_nan, last, row) for row in rows] if is_nan.any() else rows


def at_place(rule: Rule, place: Place, low: Array, high: Array) -> Array:
    """Return a rule's result at a place, from the values at its two ranks."""
    return low if place.share is None else rule.join(low, high, place.share)


def of_numbers(values: Array, rule: Rule, least: int) -> list[Array]:
    """Return a rule's results for the numbers of sorted samples.

    Args:
        values: a row for each rank, a column for each sample.
        rule: of at least one place.
        least: how many numbers a sample must have; NaN is the result for fewer.
    """

    def rows_of(count: int) -> list[Any]:
        places = rule.places(max(1, count))
        if count < least:
            return [np.nan] * len(places)
        return [at_place(rule, place, values[place.low], values[place.high]) for place in places]

    found = [np.array(row) for row in rows_of(len(values))]
    for count, where in _counts_of(values):
        for row, other in zip(found, rows_of(count), strict=True):
            np.copyto(row, other, where=where)
    return found


def _counts_of(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield counts of numbers, each with the samples that have so many.

    Samples with fewer numbers may be among them: these come again later, with their own count.
    """
    n = len(values)
    if n <= _FEW:
        for count in range(n - 1, -1, -1):
            is_nan = np.isnan(values[count])
            if not is_nan.any():
                return
            yield count, is_nan
    elif np.isnan(values[-1]).any():
        counts = n - np.isnan(values).sum(axis=0)
        for count in np.unique(counts[counts < n]):
            yield int(count), counts == count


def float_of(x: Array) -> np.dtype[Any]:
    """Return the type of an array's means."""
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


def _middle(count: int) -> tuple[Place]:
    low, high = (count - 1) // 2, count // 2
    return (Place(low, high, None if low == high else 0.5),)


def _mean_of_dates(low: Array, high: Array, _: float) -> Array:
    """Return the means of two whole numbers, whose sum may not fit, rounded down."""
    mean: Array = (low & high) + ((low ^ high) >> 1)
    return mean


def _mean_of_durations(low: Array, high: Array, _: float) -> Array:
    """Return the means of two whole numbers, rounded towards 0."""
    mean = _mean_of_dates(low, high, _)
    mean += (low ^ high) & 1 & (mean < 0)
    return mean


MEDIAN = Rule(_middle, mean, selects=True)
_MEDIAN_OF_WIDE = replace(MEDIAN, join=mean_of_integers)
