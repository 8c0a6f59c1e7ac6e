"""Statistics of samples by their relaxed sorted values, and the soft top k.

Every function takes

- an operator: a Sorter of n values, or Sizes for any n and for lists of every kind;
- x, (…, n), and its axis `dim`;
- the steepness, `lengths` and `mask` of the operator's methods.

The statistic has the shape of x without the axis, and the dtype of x; bfloat16 and float16 are computed in
float32. The statistic is NaN for a sample without entries, and for one with a NaN. Cost per sample: a
`Sorter.sort`, O(size).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from nsc.arguments import real, reals
from nsc.errors import OperandError, OperandTypeError
from nsc.nn.functional.entries import Entries, EntryOptions, check_known, check_operator, entries_of
from nsc.operators.operands import Steepness
from nsc.operators.samples import by_samples
from nsc.operators.sharding import Axes
from nsc.operators.sorter import Sorter
from nsc.sizes import Sizes

if TYPE_CHECKING:
    from typing_extensions import Unpack


class _Rule(NamedTuple):
    """From a quantile's place: the ranks of two sorted values, None for no second one, and its share."""

    low: Callable[[Tensor], Tensor]
    high: Callable[[Tensor], Tensor] | None = None
    share: Callable[[Tensor], Tensor] = torch.frac


# torch.quantile's rules; `round` takes the even one of two neighbours.
RULES = {
    "linear": _Rule(torch.floor, torch.ceil),
    "lower": _Rule(torch.floor),
    "higher": _Rule(torch.ceil),
    "nearest": _Rule(torch.round),
    "midpoint": _Rule(torch.floor, torch.ceil, lambda place: torch.full_like(place, 0.5)),
}


@by_samples(Axes.LAST)
def quantile(
    operator: Sorter | Sizes,
    x: Tensor,
    q: float | Sequence[float],
    steepness: Steepness = None,
    *,
    interpolation: str = "linear",
    **options: Unpack[EntryOptions],
) -> Tensor:
    """Return quantiles of the relaxed sorted values, by torch.quantile's rules.

    Several q make a new axis in front. The interpolations, "linear", "lower", "higher", "nearest" and
    "midpoint", other arguments, errors, NaN and cost are as in `nsc.nn.Quantile`.

    >>> import nsc, torch
    >>> op, x = nsc.compile("bitonic", 4), torch.tensor([4.0, 1.0, 2.0, 8.0])
    >>> quantile(op, x, [0.5, 1.0], steepness=50.0).round(decimals=2)
    tensor([3., 8.])
    """
    levels = levels_of("quantile", q)
    check_known("quantile", "interpolation", interpolation, RULES)
    entries = entries_of("quantile", operator, "x", x, **options)
    values = _sorted(entries, steepness)
    last = (entries.counts - 1).clamp_min(0).to(values.dtype)
    found = [_at(values, last * level, RULES[interpolation]) for level in levels]
    return _statistic(entries, found[0] if real(q) is not None else torch.stack(found))


@by_samples(Axes.LAST)
def median(
    operator: Sorter | Sizes,
    x: Tensor,
    steepness: Steepness = None,
    **options: Unpack[EntryOptions],
) -> Tensor:
    """Return the median of the relaxed sorted values: for an even number the mean of the middle two.

    Arguments, errors, NaN and cost are as in `nsc.nn.Median`.

    >>> import nsc, torch
    >>> op, x = nsc.compile("bitonic", 4), torch.tensor([4.0, 1.0, 2.0, 8.0])
    >>> median(op, x, steepness=50.0).round(decimals=2)
    tensor(3.)
    """
    entries = entries_of("median", operator, "x", x, **options)
    return _statistic(entries, _middle(entries, _sorted(entries, steepness)))


@by_samples(Axes.LAST)
def trimmed_mean(
    operator: Sorter | Sizes,
    x: Tensor,
    proportion: float,
    steepness: Steepness = None,
    **options: Unpack[EntryOptions],
) -> Tensor:
    """Return the mean of the relaxed sorted values without the smallest and the largest.

    Among m entries int(proportion · m) are left out at each end. Other arguments, errors, NaN and cost are as
    in `nsc.nn.TrimmedMean`.

    >>> import nsc, torch
    >>> op, x = nsc.compile("bitonic", 4), torch.tensor([4.0, 1.0, 2.0, 800.0])
    >>> trimmed_mean(op, x, 0.25, steepness=50.0).round(decimals=2)
    tensor(3.)
    """
    share = proportion_of("trimmed_mean", proportion)
    entries = entries_of("trimmed_mean", operator, "x", x, **options)
    values, counts = _sorted(entries, steepness), entries.counts
    cut = (counts.double() * share).long()
    ranks = torch.arange(values.shape[-1], device=values.device)
    is_kept = (ranks >= cut.unsqueeze(-1)) & (ranks < (counts - cut).unsqueeze(-1))
    total = torch.where(is_kept, values, 0).sum(-1)
    return _statistic(entries, total / (counts - 2 * cut).clamp_min(1))


@by_samples(Axes.LAST)
def median_absolute_deviation(
    operator: Sorter | Sizes,
    x: Tensor,
    steepness: Steepness = None,
    **options: Unpack[EntryOptions],
) -> Tensor:
    """Return the relaxed median of the distances from the relaxed median, with one steepness for both.

    Arguments, errors, NaN and cost are as in `nsc.nn.MedianAbsoluteDeviation`.

    >>> import nsc, torch
    >>> op, x = nsc.compile("bitonic", 4), torch.tensor([4.0, 1.0, 2.0, 800.0])
    >>> median_absolute_deviation(op, x, steepness=50.0).round(decimals=2)
    tensor(1.5000)
    """
    entries = entries_of("median_absolute_deviation", operator, "x", x, **options)
    middle = _middle(entries, _sorted(entries, steepness))
    distances = (entries.keys - middle.unsqueeze(-1)).abs()
    distant = entries._replace(keys=torch.where(entries.is_entry, distances, math.inf))
    return _statistic(entries, _middle(entries, _sorted(distant, steepness)))


@by_samples(Axes.OF_X)
def soft_top_k(
    operator: Sorter | Sizes,
    x: Tensor,
    k: int,
    steepness: Steepness = None,
    *,
    straight_through: bool = False,
    **options: Unpack[EntryOptions],
) -> Tensor:
    """Return weights of the shape of x, in 0 … 1, that say how much of each value is among the k largest.

    `straight_through`, ties, entries that take no part, NaN, errors, other arguments and cost are as in
    `nsc.nn.SoftTopK`.

    >>> import nsc, torch
    >>> op, x = nsc.compile("bitonic", 4), torch.tensor([4.0, 1.0, 2.0, 3.5])
    >>> soft_top_k(op, x, 2, steepness=2.0).sum().round(decimals=2)
    tensor(2.)
    >>> soft_top_k(op, x, 2, straight_through=True)
    tensor([1., 0., 0., 1.])
    """
    check_operator("soft_top_k", operator)
    return operator.top_k_weights(x, k, steepness, straight_through=straight_through, **options)


def levels_of(caller: str, q: object) -> tuple[float, ...]:
    """Return the q of quantiles as floats, or raise the error that says what they must be."""
    number = real(q)
    levels = reals(q) if number is None else (number,)
    if levels is None:
        raise OperandTypeError(f"{caller}: q must be a number or several, such as (0.25, 0.75), got {q!r}")
    if not levels or not all(0 <= level <= 1 for level in levels):
        raise OperandError(f"{caller}: q must be in 0 … 1, got {q!r}")
    return levels


def proportion_of(caller: str, proportion: object) -> float:
    """Return the proportion of a trimmed mean as a float, or raise the error that says what it must be."""
    share = real(proportion)
    if share is None or not 0 <= share < 0.5:
        raise OperandError(f"{caller}: proportion must be at least 0 and less than 1/2, got {proportion!r}")
    return share


def _sorted(entries: Entries, steepness: Steepness) -> Tensor:
    """Return the relaxed sorted values of entries, (…, n)."""
    return entries.sorter.sort(entries.keys, steepness, lengths=entries.lengths)


def _middle(entries: Entries, values: Tensor) -> Tensor:
    """Return the medians of sorted values (…, n)."""
    last = (entries.counts - 1).clamp_min(0).to(values.dtype)
    return _at(values, last * 0.5, RULES["midpoint"])


def _at(values: Tensor, place: Tensor, rule: _Rule) -> Tensor:
    """Return the values (…) at places (…) between the ranks of sorted values (…, n)."""
    rank = rule.low(place)
    low = _gathered(values, rank)
    if rule.high is None:
        return low
    high = _gathered(values, rule.high(place))
    # Halves, because the distance of two numbers may overflow. An infinite one of the two is the result.
    between = 2 * torch.lerp(low / 2, high / 2, rule.share(place))
    between = torch.where(low.isinf() | high.isinf(), (low + high).detach(), between)
    return torch.where(rank == place, low, between)


def _gathered(values: Tensor, rank: Tensor) -> Tensor:
    return values.gather(-1, rank.long().unsqueeze(-1)).squeeze(-1)


def _statistic(entries: Entries, statistic: Tensor) -> Tensor:
    """Return a statistic in the dtype of x; NaN for samples without entries."""
    return torch.where(entries.counts > 0, statistic, math.nan).to(entries.x.dtype)
