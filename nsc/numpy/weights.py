"""Weights: how they are read, and statistics that read them in the order of the values.

Sums of weights are float64 and run over the sorted values, from one end or from the other. No sum is the
difference of two others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nsc.errors import OperandError
from nsc.numpy.arrays import Array, read
from nsc.numpy.reducing import Reduction
from nsc.numpy.samples import SortedBlock

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Weights:
    """The weights of samples, float64.

    Attributes:
        laid: one for each value of a sample, or outer × n × inner, as `Samples.lay` returns them.
        skips_nan: whether a NaN is left out with its weight; else a sample with one gives NaN.
    """

    laid: Array
    skips_nan: bool

    @classmethod
    def of(cls, reduction: Reduction, weights: ArrayLike, skips_nan: bool) -> Weights:
        """Read weights of an array's shape, or of the shape of the axes of a sample, in the order named.

        Raises:
            OperandTypeError: as `read`.
            OperandError: another shape; a weight that is negative, infinite or NaN; a sample of weight 0.
        """
        given = read(reduction.function, weights)
        x, axes, samples = reduction.x, reduction.axes, reduction.samples
        check_shape(reduction.function, given.shape, x.shape, axes)
        numbers = given.astype(np.float64)
        if not (np.isfinite(numbers) & (numbers >= 0)).all():
            raise OperandError(f"nsc.numpy.{reduction.function}: weights must be finite, and none negative")
        if numbers.shape == x.shape:
            laid = samples.lay(numbers)
        else:
            in_order = sorted(range(len(axes)), key=lambda place: samples.order.index(axes[place]))
            laid = numbers.transpose(in_order).reshape(-1)
        with np.errstate(over="ignore"):
            sums = laid.sum(axis=laid.ndim // 2)
        if not (np.isfinite(sums) & (sums > 0)).all():
            raise OperandError(
                f"nsc.numpy.{reduction.function}: the weights of a sample must have a finite sum above 0"
            )
        return cls(laid, skips_nan)

    def sorted_of(self, block: SortedBlock) -> Array:
        """Return weights in the order of a block's values; 0 for NaN that does not count."""
        assert block.indices is not None
        weights = (
            self.laid.take(block.indices)
            if self.laid.ndim == 1
            else np.take_along_axis(block.of(self.laid), block.indices, 0)
        )
        if self.skips_nan and block.values.dtype.kind == "f":
            weights[np.isnan(block.values)] = 0
        return weights

    def with_nan(self, block: SortedBlock, weights: Array, rows: Sequence[Array]) -> Sequence[Array]:
        """Return results, with NaN for samples with a NaN that counts, and for those without weight."""
        if block.values.dtype.kind != "f":
            return rows
        last = block.values[-1]
        is_nan = weights.max(axis=0) == 0 if self.skips_nan else np.isnan(last)
        return [np.where(is_nan, np.nan, row) for row in rows] if is_nan.any() else rows


def check_shape(function: str, found: Shape, shape: Shape, axes: Shape) -> None:
    """Raise an error unless weights have the shape of an array, or that of its axes of a sample."""
    of_a_sample = tuple(shape[axis] for axis in axes)
    if found in (shape, of_a_sample):
        return
    shapes = dict.fromkeys((str(shape), str(of_a_sample)))
    fitting = [axis for axis, length in enumerate(shape) if found == (length,) and (axis,) != axes]
    hint = f"; for weights along an axis, name it: axis={fitting[0]}" if fitting else ""
    raise OperandError(
        f"nsc.numpy.{function}: weights must be of shape {' or '.join(shapes)}, got {found}{hint}"
    )


def weighted_median(block: SortedBlock, weights: Weights) -> Sequence[Array]:
    """Return the weighted medians of samples, as `nsc.numpy.median` defines them."""
    values, sorted_weights = block.values, weights.sorted_of(block)
    # Equal weights are added in the same order from both ends, so that they compare equal at the middle.
    below, above = np.cumsum(sorted_weights, axis=0)[:-1], np.cumsum(sorted_weights[::-1], axis=0)[-2::-1]
    low, high = _first(values, below < above), _first(values, below <= above)
    wide = low.dtype if low.dtype.itemsize > 2 and low.dtype.kind == "f" else np.dtype(np.float64)
    middle = np.where(low == high, low, np.add(low, high, dtype=wide) / 2)
    return weights.with_nan(block, sorted_weights, [middle])


def weighted_quantiles(block: SortedBlock, weights: Weights, quantiles: Array) -> Sequence[Array]:
    """Return quantiles by the method inverted_cdf, with weights, as numpy.quantile."""
    sorted_weights = weights.sorted_of(block)
    shares = np.cumsum(sorted_weights, axis=0)
    shares /= shares[-1].copy()
    if quantiles.dtype.kind == "f":
        shares = shares.astype(quantiles.dtype)
    # The quantile 0 is the first value that has weight.
    shares[shares == 0] = -1
    rows = [_first(block.values, shares[:-1] < q) for q in quantiles.reshape(-1)]
    return weights.with_nan(block, sorted_weights, rows)


def _first(values: Array, is_beyond: Array) -> Array:
    """Return the first value of each sample that the result does not lie beyond, or its last one.

    Args:
        values: a row for each rank, a column for each sample.
        is_beyond: for all ranks but the last; in a column True comes before False.
    """
    places = np.count_nonzero(is_beyond, axis=0)
    first: Array = np.take_along_axis(values, places[np.newaxis], 0)[0]
    return first


def weighted_trimmed_mean(block: SortedBlock, weights: Weights, proportion: float) -> Sequence[Array]:
    """Return means of samples without a share of the weight at each end."""
    sorted_weights = weights.sorted_of(block)
    trim = proportion * sum_of(sorted_weights)
    kept = sorted_weights - _cut(sorted_weights, trim) - _cut(sorted_weights[::-1], trim)[::-1]
    kept = np.maximum(kept, 0)
    # A value that is left out may be infinite.
    terms = np.where(kept > 0, block.values * kept, 0)
    return weights.with_nan(block, sorted_weights, [sum_of(terms) / sum_of(kept)])


def _cut(weights: Array, trim: Array) -> Array:
    """Return how much of each weight is left out, from the first on, until their sum is `trim`."""
    left = np.subtract.accumulate(np.concatenate([trim[np.newaxis], weights[:-1]]), axis=0)
    return np.minimum(weights, np.maximum(left, 0))


def sum_of(rows: Array) -> Array:
    """Return the sums of columns: rows are added by halves, in an order that depends on their number alone.

    NumPy's order depends on how an array lies in memory, so on how samples are cut into blocks.
    """
    while len(rows) > 1:
        half = len(rows) // 2
        sums = rows[:half] + rows[half : 2 * half]
        if len(rows) % 2:
            sums[0] += rows[-1]
        rows = sums
    total: Array = rows[0]
    return total
