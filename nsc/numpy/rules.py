"""Rules: which ranks of a sample a result reads, and how it joins their values. NumPy's quantiles are rules.

Source: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50
(1996), for nine methods; NumPy's documentation for the other four, and for the names. Operations and their
order follow NumPy 2.4, so that results have the same bits, unless NumPy's overflow or subtract ∞ from ∞.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import is_name
from nsc.contract.windows import Place
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.calls import Array, plain

# Takes a number of values and a quantile. Returns a position among the ranks 0 … count - 1 or outside.
Position = Callable[[int, Any], Any]


@dataclass(frozen=True)
class Rule:
    """A statistic of sorted samples.

    Attributes:
        places: takes a number of values, at least 1. Returns the place of each result among them.
        join: takes the values at both ranks of a place, and its share. Returns results.
        selects: whether a kernel is built for these ranks alone. All other rules use a kernel that sorts.
    """

    places: Callable[[int], Sequence[Place]]
    join: Callable[[Array, Array, Any], Array]
    selects: bool = False


def _offset(alpha: float, beta: float) -> Position:
    return lambda count, q: count * q + (alpha + q * (1 - alpha - beta)) - 1


def _linear(count: int, q: Any) -> Any:
    return (count - 1) * q


def _step(count: int, q: Any) -> Any:
    return count * q - 1


# Methods whose results are values of the sample, with a function that gives the rank.
_RANKS: dict[str, Callable[[int, Any], int]] = {
    "inverted_cdf": lambda count, q: math.ceil(_step(count, q)),
    "closest_observation": lambda count, q: _closest(count * q - 1 - 0.5),
    "lower": lambda count, q: math.floor(_linear(count, q)),
    "higher": lambda count, q: math.ceil(_linear(count, q)),
    "nearest": lambda count, q: round(_linear(count, q)),
}
# Methods whose results lie between two values, with a function that gives the position.
_POSITIONS: dict[str, Position] = {
    "averaged_inverted_cdf": _step,
    "interpolated_inverted_cdf": _offset(0, 1),
    "hazen": _offset(0.5, 0.5),
    "weibull": _offset(0, 0),
    "linear": _linear,
    "median_unbiased": _offset(1 / 3, 1 / 3),
    "normal_unbiased": _offset(3 / 8, 3 / 8),
    "midpoint": lambda count, q: 0.5 * (np.floor(_linear(count, q)) + np.ceil(_linear(count, q))),
}
# Takes a position and its distance from the rank below. Returns the share, which other methods set to this
# distance.
_SHARES: dict[str, Callable[[Any, Any], Any]] = {
    "averaged_inverted_cdf": lambda position, rest: 0.5 if rest == 0 else 1.0,
    "midpoint": lambda position, rest: 0.0 if position % 1 == 0 else 0.5,
}
METHODS = (*_RANKS, *_POSITIONS)
# Sums of two integers of at most this size are exact or rounded once in float64.
_EXACT = 1 << 53
# The greatest position that is a float16.
_MOST_FLOAT16 = 65504


def levels_of(function: str, q: ArrayLike, method: str) -> Array:
    """Return quantiles in 0 … 1, of the type that NumPy computes with; errors as in `nsc.numpy.quantile`."""
    if not is_name(method, METHODS):
        raise OperandError(
            f"nsc.numpy.{function}: method must be one of {', '.join(METHODS)}, got {method!r}"
        )
    given = plain(function, q, "q")
    if given.dtype.kind not in "iuf" or given.dtype.itemsize > 8:
        raise OperandTypeError(f"nsc.numpy.{function}: q must be one real number or some, got {q!r}")
    whole = 100 if function.endswith("percentile") else 1
    if not ((given >= 0) & (given <= whole)).all():
        raise OperandError(f"nsc.numpy.{function}: q must be in 0 … {whole}, got {q!r}")
    return given if whole == 1 else np.asarray(np.true_divide(given, whole))


def rule_of(dtype: np.dtype[Any], levels: Array, method: str, is_weak: bool) -> tuple[np.dtype[Any], Rule]:
    """Return the type of the results for arrays of a type, and the rule that computes the quantiles."""
    if levels.dtype.kind != "f":
        if method == "linear":
            method = "lower"  # whole positions
        levels = levels.astype(np.float64)
    listed = tuple(levels.reshape(-1))

    @cache
    def places(count: int) -> tuple[Place, ...]:
        return tuple(_place_of(method, count, q, is_weak) for q in listed)

    if method in _RANKS:
        return dtype, Rule(places, partial(_joined, np.dtype(np.float64)))
    wide = dtype if dtype.kind == "f" else np.dtype(np.float64)
    found = wide if is_weak else np.result_type(dtype, levels.dtype)
    return found, Rule(places, partial(_joined, wide if dtype.kind == "f" else found))


def _joined(dtype: np.dtype[Any], low: Array, high: Array, share: Any) -> Any:
    """Return values between `low` and `high`: an infinite one of the two, NaN between -∞ and ∞.

    Args:
        dtype: the type in which their distance is computed.
        low, high: values at two ranks.
        share: how far a result lies from `low`.
    """
    if share in (0, 1):
        return (high if share else low).astype(np.result_type(dtype, share), copy=False)
    low, high = low.astype(dtype, copy=False), high.astype(dtype, copy=False)

    def mended() -> Array:
        ends = low + high
        return np.where(np.isfinite(ends), 2 * _between(low / 2, high / 2, share), ends)

    return checked(lambda: _between(low, high, share), mended)


def _between(low: Array, high: Array, share: Any) -> Any:
    """Return values between `low` and `high`, from the nearer one, so that results rise with the share."""
    distance = high - low
    return high - distance * (1 - share) if share >= 0.5 else low + distance * share


def is_wide(dtype: np.dtype[Any]) -> bool:
    """Return whether a type has integers that float64 lacks."""
    return dtype.kind in "iu" and dtype.itemsize == 8


def mean(low: Array, high: Array, _: Any = None) -> Array:
    """Return the means of two values, as numpy.mean, but where their sum overflows."""
    wide = {"f2": np.float32}.get(low.dtype.str[1:], low.dtype if low.dtype.kind == "f" else np.float64)
    return checked(lambda: np.divide(np.add(low, high, dtype=wide), 2), lambda: low / 2 + high / 2)


def mean_of_integers(low: Array, high: Array, _: Any = None) -> Array:
    """Return the means of two integers of 64 bits, low ≤ high, rounded once."""
    if low.min() >= -_EXACT and high.max() <= _EXACT:
        return mean(low, high)
    differing = low ^ high
    whole, odd = (low & high) + (differing >> 1), differing & 1  # the mean is whole + odd / 2
    return (whole >> 32) * 2.0**32 + ((whole & 0xFFFFFFFF) + odd / 2)


def checked(formula: Callable[[], Array], mended: Callable[[], Array]) -> Array:
    """Return a formula's results. Where a step of it overflows, or ∞ is subtracted from ∞, mend them.

    The check costs no pass over the values: the processor notes such steps, and NumPy looks at its notes.

    Args:
        formula: returns results.
        mended: returns the results for places where the formula's are not finite.
    """
    try:
        return _strictly(formula)
    except FloatingPointError:
        found = formula()
        return np.where(np.isfinite(found), found, mended())


@np.errstate(over="raise", invalid="raise")
def _strictly(formula: Callable[[], Array]) -> Array:
    """Return a formula's results, or raise FloatingPointError. A `with` would take twice as long."""
    return formula()


def _place_of(method: str, count: int, q: Any, is_weak: bool) -> Place:
    """Return where a quantile lies among some values.

    Args:
        method: one of METHODS.
        count: how many values, at least 1.
        q: in 0 … 1, a number of NumPy. Positions have its type.
        is_weak: whether the share takes the type of the values.
    """
    if isinstance(q, np.float16) and count > _MOST_FLOAT16:
        q = np.float64(q)
    if method in _RANKS:
        rank = min(max(0, _RANKS[method](count, q)), count - 1)
        return Place(rank, rank)
    position = _POSITIONS[method](count, q)
    low = high = 0
    if position >= count - 1:
        low = high = count - 1
    elif position >= 0:
        low = math.floor(position)
        high = low + 1
    share = position - low
    if method in _SHARES:
        share = _SHARES[method](position, share)
    return Place(low, high, float(share) if is_weak else np.asarray(share, np.asarray(position).dtype)[()])


def _closest(position: Any) -> int:
    """Round up to a rank; if two ranks are equally near, take the one that is even when counted from 1."""
    below = math.floor(position)
    return int(below if position == below and below % 2 == 1 else below + 1)
