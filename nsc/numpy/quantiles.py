"""Quantiles and percentiles along axes, by NumPy's methods, with and without weights."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import is_name
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy import small
from nsc.numpy.arrays import Array, Axes, plain
from nsc.numpy.chunks import by_blocks, over
from nsc.numpy.methods import METHODS, Place, is_of_values, place_of
from nsc.numpy.reducing import Reduction, Rule
from nsc.numpy.weights import Weights, weighted_quantiles


@by_blocks(over, small.quantile)
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
    """Return quantiles along axes, as numpy.quantile, with its bits: NaN where there is a NaN.

    Methods are those of NumPy, by its names. Results of inverted_cdf, closest_observation, lower, higher and
    nearest are values of the array; those of the others lie between two, in NumPy's arithmetic, where an
    infinite neighbour may give NaN. Integers of the other methods are computed in float64.

    Args:
        q: in 0 … 1, of any shape. Its axes come in front of those that are kept.
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
    return _quantile("quantile", array, q, axis, method, weights, keepdims, out, workers)


@by_blocks(over)
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

    Cost: that of a sort, and of one pass over its results for each q.

    >>> nanquantile([[1.0, np.nan, 2.0], [4.0, 8.0, 6.0]], 0.5, axis=1)
    array([1.5, 6. ])
    """
    return _quantile("nanquantile", array, q, axis, method, weights, keepdims, out, workers)


@by_blocks(over, small.percentile)
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
    return _quantile("percentile", array, q, axis, method, weights, keepdims, out, workers)


@by_blocks(over)
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
    return _quantile("nanpercentile", array, q, axis, method, weights, keepdims, out, workers)


def _quantile(
    function: str,
    array: ArrayLike,
    q: ArrayLike,
    axis: Axes,
    method: str,
    weights: ArrayLike | None,
    keepdims: bool,
    out: Array | None,
    workers: int | None,
) -> Array:
    reduction, skips_nan = (
        Reduction.of(function, array, axis, keepdims, out, workers),
        function.startswith("nan"),
    )
    if not is_name(method, METHODS):
        raise OperandError(
            f"nsc.numpy.{function}: method must be one of {', '.join(METHODS)}, got {method!r}"
        )
    levels, is_weak = levels_of(function, q), type(q) in (int, float)
    if weights is not None:
        if method != "inverted_cdf":
            raise OperandError(
                f"nsc.numpy.{function}: weights need the method 'inverted_cdf', as in NumPy, got {method!r}"
            )
        weighed = Weights.of(reduction, weights, skips_nan)
        return reduction.finish(
            levels.shape,
            reduction.x.dtype,
            lambda block: weighted_quantiles(block, weighed, levels),
            None,
            with_indices=True,
        )
    dtype, rule = rule_of(reduction.x.dtype, levels, method, is_weak)
    return reduction.by_rule(levels.shape, dtype, rule, skips_nan)


def levels_of(function: str, q: ArrayLike) -> Array:
    """Return quantiles in 0 … 1, of the type that NumPy computes with."""
    given = plain(function, q, "q")
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise OperandTypeError(f"nsc.numpy.{function}: q must be one real number or some, got {q!r}")
    whole = 100 if function.endswith("percentile") else 1
    if not ((given >= 0) & (given <= whole)).all():
        raise OperandError(f"nsc.numpy.{function}: q must be in 0 … {whole}, got {q!r}")
    return given if whole == 1 else np.asarray(np.true_divide(given, whole))


def rule_of(dtype: np.dtype[Any], levels: Array, method: str, is_weak: bool) -> tuple[np.dtype[Any], Rule]:
    """Return how quantiles of arrays of a type are computed, and the type of the results."""
    if levels.dtype.kind != "f":
        if method == "linear":
            method = "lower"  # whole positions
        levels = levels.astype(np.float64)
    listed = tuple(levels.reshape(-1))

    @cache
    def places(count: int) -> tuple[Place, ...]:
        return tuple(place_of(method, count, q, is_weak) for q in listed)

    if is_of_values(method):
        return dtype, Rule(places, partial(_between, np.dtype(np.float64)))
    wide = dtype if dtype.kind == "f" else np.dtype(np.float64)
    found = wide if is_weak else np.result_type(dtype, levels.dtype)
    return found, Rule(places, partial(_between, wide if dtype.kind == "f" else found))


def _between(dtype: np.dtype[Any], low: Array, high: Array, share: Any) -> Any:
    """Return values between `low` and `high`, from the nearer one, so that results rise with the share.

    Args:
        dtype: in which their distance is computed.
        low, high: values at two ranks.
        share: how far a result lies from `low`.
    """
    low, high = low.astype(dtype, copy=False), high.astype(dtype, copy=False)
    distance = high - low
    return high - distance * (1 - share) if share >= 0.5 else low + distance * share
