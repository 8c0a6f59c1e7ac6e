"""Medians and trimmed means along axes, with and without weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import real
from nsc.errors import OperandError
from nsc.numpy import small
from nsc.numpy.arrays import Array, Axes
from nsc.numpy.chunks import by_blocks, over
from nsc.numpy.methods import Place
from nsc.numpy.reducing import Reduction, Rule
from nsc.numpy.samples import SortedBlock
from nsc.numpy.weights import Weights, sum_of, weighted_median, weighted_trimmed_mean


@by_blocks(over, small.median)
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

    With weights it is the value with at most half of the whole weight below it and at most half above it. If
    there are two such values, it is their mean. Equal weights change nothing. Whole weights give the median
    of values that are repeated so many times. Weights are summed in float64.

    Args:
        array: of any shape. More than MOST values of a sample are sorted by NumPy.
        axis: the axes of a sample; None: all, as in NumPy.
        weights: of the array's shape, or of the shape of the named axes; none negative, not all 0.
        keepdims: whether the axes of a sample stay, with length 1.
        out: where to write the results, of their shape; None: to a new array.
        workers: threads at most, or -1; None: those of `get_num_threads`.

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
    return _median("median", array, axis, weights, keepdims, out, workers)


@by_blocks(over, small.nanmedian)
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

    Cost: that of a sort, and of one pass over its results.

    >>> nanmedian([[3.0, np.nan, 4.0], [np.nan, 5.0, np.nan]], axis=1)
    array([3.5, 5. ])
    """
    return _median("nanmedian", array, axis, weights, keepdims, out, workers)


def _median(
    function: str,
    array: ArrayLike,
    axis: Axes,
    weights: ArrayLike | None,
    keepdims: bool,
    out: Array | None,
    workers: int | None,
) -> Array:
    reduction = Reduction.of(function, array, axis, keepdims, out, workers)
    dtype = float_of(reduction.x)
    skips_nan = function.startswith("nan")
    if weights is not None:
        weighed = Weights.of(reduction, weights, skips_nan)
        return reduction.finish(
            (), dtype, lambda block: weighted_median(block, weighed), None, with_indices=True
        )
    return reduction.by_rule((), dtype, MEDIAN, skips_nan)


@by_blocks(over)
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

    Of n values int(proportion · n) are left out at each end. NaN is the result where there is a NaN. Sums are
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
    reduction = Reduction.of("trimmed_mean", array, axis, keepdims, out, workers)
    share = real(proportion)
    if share is None or not 0 <= share < 0.5:
        raise OperandError(
            f"nsc.numpy.trimmed_mean: proportion must be at least 0 and less than 1/2, got {proportion!r}"
        )
    dtype, n = float_of(reduction.x), reduction.samples.shape[1]
    if weights is not None:
        weighed = Weights.of(reduction, weights, skips_nan=False)
        return reduction.finish(
            (), dtype, lambda block: weighted_trimmed_mean(block, weighed, share), None, with_indices=True
        )
    cut = int(share * n)

    def statistic(block: SortedBlock) -> list[Array]:
        mean = sum_of(block.values[cut : n - cut].astype(np.float64)) / (n - 2 * cut)
        last = block.values[-1]  # NaN if any value is
        return [np.where(np.isnan(last), last, mean) if last.dtype.kind == "f" else mean]

    return reduction.finish((), dtype, statistic, None)


def float_of(x: Array) -> np.dtype[Any]:
    """Return the type of means of an array."""
    return x.dtype if x.dtype.kind == "f" else np.dtype(np.float64)


def _middle(count: int) -> tuple[Place]:
    low, high = (count - 1) // 2, count // 2
    return (Place(low, high, None if low == high else 0.5),)


def _mean(low: Array, high: Array, _: float) -> Array:
    """Return the means of two values, as numpy.mean."""
    wide = {"f2": np.float32}.get(low.dtype.str[1:], low.dtype if low.dtype.kind == "f" else np.float64)
    return np.divide(np.add(low, high, dtype=wide), 2)


MEDIAN = Rule(_middle, _mean, selects=True)
