"""Methods of quantiles: the ranks that a quantile lies between, and how far it is from the lower one.

Source: R. J. Hyndman and Y. Fan, "Sample quantiles in statistical packages", The American Statistician 50
(1996), for nine methods; NumPy's documentation for the other four, and for the names. Operations and their
order are those of NumPy 2.4, so that results have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

# From a number of values and a quantile to a position among the ranks 0 … count - 1, or outside of them.
Position = Callable[[int, Any], Any]


@dataclass(frozen=True)
class Place:
    """Where a result lies among the values of a sample in ascending order.

    Attributes:
        low, high: the ranks on both sides.
        share: how far from the value at `low`; a float takes the type of the values, a number of NumPy
            keeps its own. None: the result is the value at `low`.
    """

    low: int
    high: int
    share: Any = None


def _between(alpha: float, beta: float) -> Position:
    return lambda count, q: count * q + (alpha + q * (1 - alpha - beta)) - 1


def _linear(count: int, q: Any) -> Any:
    return (count - 1) * q


def _step(count: int, q: Any) -> Any:
    return count * q - 1


# Methods whose results are values of the sample, to a function that gives the rank.
_RANKS: dict[str, Callable[[int, Any], int]] = {
    "inverted_cdf": lambda count, q: math.ceil(_step(count, q)),
    "closest_observation": lambda count, q: _closest(count * q - 1 - 0.5),
    "lower": lambda count, q: math.floor(_linear(count, q)),
    "higher": lambda count, q: math.ceil(_linear(count, q)),
    "nearest": lambda count, q: round(_linear(count, q)),
}
# Methods whose results lie between two values. The first function gives the position; the second gives the
# share, from the position and its distance from the rank below.
_POSITIONS: dict[str, tuple[Position, Callable[[Any, Any], Any]]] = {
    "averaged_inverted_cdf": (_step, lambda position, rest: 0.5 if rest == 0 else 1.0),
    "interpolated_inverted_cdf": (_between(0, 1), lambda position, rest: rest),
    "hazen": (_between(0.5, 0.5), lambda position, rest: rest),
    "weibull": (_between(0, 0), lambda position, rest: rest),
    "linear": (_linear, lambda position, rest: rest),
    "median_unbiased": (_between(1 / 3, 1 / 3), lambda position, rest: rest),
    "normal_unbiased": (_between(3 / 8, 3 / 8), lambda position, rest: rest),
    "midpoint": (
        lambda count, q: 0.5 * (np.floor(_linear(count, q)) + np.ceil(_linear(count, q))),
        lambda position, rest: 0.0 if position % 1 == 0 else 0.5,
    ),
}
METHODS = (*_RANKS, *_POSITIONS)


def is_of_values(method: str) -> bool:
    """Return whether results of a method are values of the sample, of their type."""
    return method in _RANKS


def place_of(method: str, count: int, q: Any, is_weak: bool) -> Place:
    """Return where a quantile lies among some values.

    Args:
        method: one of METHODS.
        count: how many values, at least 1.
        q: in 0 … 1, a number of NumPy. Positions have its type.
        is_weak: whether the share takes the type of the values.
    """
    if method in _RANKS:
        rank = min(max(0, _RANKS[method](count, q)), count - 1)
        return Place(rank, rank)
    to_position, to_share = _POSITIONS[method]
    position = to_position(count, q)
    low = high = 0
    if position >= count - 1:
        low = high = count - 1
    elif position >= 0:
        low = math.floor(position)
        high = low + 1
    share = to_share(position, position - low)
    return Place(low, high, float(share) if is_weak else np.asarray(share, np.asarray(position).dtype)[()])


def _closest(position: Any) -> int:
    """Round up to a rank, but of two equally near ones take the even one, counted from 1."""
    below = math.floor(position)
    return int(below if position == below and below % 2 == 1 else below + 1)
