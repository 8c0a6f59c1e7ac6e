"""Weights: how they are read, and statistics that read them in the order of the values.

Sums of weights are float64 and run over the sorted values, from either end. No sum is computed as the
difference of two others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from nsc.errors import OperandError
from nsc.numpy.by_numpy import taken
from nsc.numpy.calls import Array, read
from nsc.numpy.rules import checked, is_wide, mean, mean_of_integers
from nsc.numpy.samples import Samples, SortedBlock

Shape = tuple[int, ...]
# Takes sorted values and their weights, a row for each rank. Returns rows of results.
Weighted = Callable[[Array, Array], Sequence[Array]]


def read_weights(function: str, weights: ArrayLike, shape: Shape, axes: Shape, samples: Samples) -> Array:
    """Return weights, float64: one for each value of a sample, or as `Samples.lay` returns them.

    Args:
        function: the function that was called, for messages.
        weights: of an array's shape, or of the shape of the axes of a sample, in the order named.
        shape, axes, samples: of the array.

    Raises:
        OperandTypeError: as `read`.
        OperandError: another shape; a weight that is negative, infinite or NaN; a sample of weight 0.
    """
    given = read(function, weights)
    check_shape(function, given.shape, shape, axes)
    numbers = given.astype(np.float64)
    if not (np.isfinite(numbers) & (numbers >= 0)).all():
        raise OperandError(f"nsc.numpy.{function}: weights must be finite, and none negative")
    if numbers.shape == shape:
        laid = samples.lay(numbers)
    else:
        in_order = sorted(range(len(axes)), key=lambda place: samples.order.index(axes[place]))
        laid = numbers.transpose(in_order).reshape(-1)
    with np.errstate(over="ignore"):
        sums = laid.sum(axis=laid.ndim // 2)
    if not (np.isfinite(sums) & (sums > 0)).all():
        raise OperandError(f"nsc.numpy.{function}: the weights of a sample must have a finite sum above 0")
    return laid


def check_shape(function: str, found: Shape, shape: Shape, axes: Shape) -> None:
    """Raise an error unless weights have an array's shape, or the shape of a sample's axes."""
    of_a_sample = tuple(shape[axis] for axis in axes)
    if found in (shape, of_a_sample):
        return
    shapes = dict.fromkeys((str(shape), str(of_a_sample)))
    fitting = [axis for axis, length in enumerate(shape) if found == (length,) and (axis,) != axes]
    hint = f"; for weights along an axis, name it: axis={fitting[0]}" if fitting else ""
    raise OperandError(
        f"nsc.numpy.{function}: weights must be of shape {' or '.join(shapes)}, got {found}{hint}"
    )


def of_weights(statistic: Weighted, laid: Array, skips_nan: bool, block: SortedBlock) -> Sequence[Array]:
    """Return a statistic of sorted samples, NaN for samples whose numbers have no weight.

    Args:
        statistic: the statistic to compute.
        laid: the weights, as `read_weights` returns them.
        skips_nan: whether a NaN is left out with its weight.
        block: the samples.
    """
    values = block.values
    weights = laid.take(block.indices) if laid.ndim == 1 else taken(block.of(laid), block.indices, 0)
    if not skips_nan or values.dtype.kind != "f":
        return statistic(values, weights)
    weights[np.isnan(values)] = 0
    rows, is_nan = statistic(values, weights), weights.max(axis=0) == 0
    return [np.where(is_nan, np.nan, row) for row in rows] if is_nan.any() else rows


def weighted_median(values: Array, weights: Array) -> Sequence[Array]:
    """Return the weighted medians of samples, as `nsc.numpy.median` defines them."""
    # Equal weights are added in the same order from both ends, so that they compare equal at the middle.
    below, above = np.cumsum(weights, axis=0)[:-1], np.cumsum(weights[::-1], axis=0)[-2::-1]
    low, high = _first(values, below < above), _first(values, below <= above)
    return [mean_of_integers(low, high) if is_wide(values.dtype) else mean(low, high)]


def weighted_quantiles(quantiles: Array, values: Array, weights: Array) -> Sequence[Array]:
    """Return quantiles by the method inverted_cdf, with weights, as numpy.quantile."""
    shares = np.cumsum(weights, axis=0)
    shares /= shares[-1].copy()
    if quantiles.dtype.kind == "f":
        shares = shares.astype(quantiles.dtype)
    # The quantile 0 is the first value that has weight.
    shares[shares == 0] = -1
    return [_first(values, shares[:-1] < q) for q in quantiles.reshape(-1)]


def _first(values: Array, is_beyond: Array) -> Array:
    """Return each sample's first value that the result does not lie beyond, or its last value.

    Args:
        values: a row for each rank, a column for each sample.
        is_beyond: whether the result lies beyond a value, for all ranks but the last; in a column True comes
            before False.
    """
    places = np.count_nonzero(is_beyond, axis=0)
    first: Array = np.take_along_axis(values, places[np.newaxis], 0)[0]
    return first


def weighted_trimmed_mean(proportion: float, values: Array, weights: Array) -> Sequence[Array]:
    """Return means of samples without a share of the weight at each end."""
    trim = proportion * sum_of(weights)
    kept = weights - _cut(weights, trim) - _cut(weights[::-1], trim)[::-1]
    kept = np.maximum(kept, 0)
    numbers = np.where(kept > 0, values, 0)  # a value that is left out may be infinite
    whole = sum_of(kept)

    def mended() -> Array:
        means = sum_of(numbers * (kept / whole))
        # Rounding may lead beyond the largest value.
        return means.clip(numbers.min(axis=0), numbers.max(axis=0))

    return [checked(lambda: sum_of(numbers * kept) / whole, mended)]


def _cut(weights: Array, trim: Array) -> Array:
    """Return how much of each weight is left out, from the first on, until their sum is `trim`."""
    left = np.subtract.accumulate(np.concatenate([trim[np.newaxis], weights[:-1]]), axis=0)
    return np.minimum(weights, np.maximum(left, 0))


def mean_of_rows(rows: Array) -> Array:
    """Return the means of columns, in float64, where sums of the other types do not overflow."""
    count, scale = len(rows), 0.5 ** len(rows).bit_length()
    if rows.dtype != np.float64:
        return sum_of(rows.astype(np.float64)) / count
    return checked(lambda: sum_of(rows) / count, lambda: sum_of(rows * scale) / count / scale)


def sum_of(rows: Array) -> Array:
    """Return the sums of columns. Rows are added by halves, in an order that depends on their number alone.

    NumPy's order depends on an array's layout in memory, and so on how samples are cut into blocks.
    """
    while len(rows) > 1:
        half = len(rows) // 2
        sums = rows[:half] + rows[half : 2 * half]
        if len(rows) % 2:
            sums[0] += rows[-1]
        rows = sums
    total: Array = rows[0]
    return total
