"""EM, EW and EM5: how well scores order samples, and how well each is known.

Ties: items of equal value may come in any order. Items of equal score stay in the order in which they were
drawn, which says nothing about their values. So a model that gives all items one score is right by chance
alone.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from torch import Tensor

from experiments.errors import ExperimentError

FIVE = 5


def right_ranks(scores: Tensor, values: Tensor) -> Tensor:
    """Return whether the scores put the right value at each rank, booleans (…, n).

    Args:
        scores: (…, n); NaN counts as the largest.
        values: (…, n), what the scores should be ordered as.
    """
    return values.gather(-1, scores.argsort(dim=-1, stable=True)) == values.sort(dim=-1).values


def ranking_metrics(scores: Tensor, values: Tensor, n: int) -> dict[str, float]:
    """Return the metrics of m scores and values, (m,), cut into samples of n and of 5; the rest is left out.

    Returns:
        Shares in [0, 1]: `em` of samples of n with all ranks right, `ew` of right ranks in samples of n,
        `em5` of samples of 5 with all ranks right.

    Raises:
        ExperimentError: fewer than n or fewer than 5 scores.

    Source: the paper, section 5.1. EM5 there is of the first five items of each sample of n; samples are
    drawn independently, so its expectation is the same.
    """
    right, right_fives = (right_ranks(_cut(scores, size), _cut(values, size)) for size in (n, FIVE))
    return {"em": _share(right.all(-1)), "ew": _share(right), "em5": _share(right_fives.all(-1))}


def error_of_share(share: float, samples: int) -> float:
    """Return the standard error of a share of independent samples: √(p (1 − p) / samples)."""
    return math.sqrt(share * (1 - share) / samples)


def error_of_mean(values: Sequence[float]) -> float:
    """Return the standard error of the mean of at least two independent values, such as one of each seed.

    This is their standard deviation, with n − 1 in the denominator, over √n.
    """
    return statistics.stdev(values) / math.sqrt(len(values))


def _cut(items: Tensor, size: int) -> Tensor:
    """Return as many whole samples as there are, (samples, size)."""
    samples = len(items) // size
    if not samples:
        raise ExperimentError(f"metrics of samples of {size} need at least {size} items, got {len(items)}")
    return items[: samples * size].reshape(samples, size)


def _share(right: Tensor) -> float:
    return right.double().mean().item()
