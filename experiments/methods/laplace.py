"""LapSum: soft ranks by sums of Laplace distribution functions, in closed form."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from experiments.methods.records import Loss, Truth, tempered


def thresholds(scores: Tensor, alpha: float) -> Tensor:
    """Return the points at which the sum of the scores' distribution functions is 1 … n-1.

    Threshold b of k solves Σ_c F((b - s_c) / α) = k, with F the distribution function of Laplace's law.
    Between two neighbouring scores this is a quadratic equation in exp(b / α). All exponents here are
    relative to a neighbour, so that nothing overflows.

    Args:
        scores: (batch, n), in any order; equal ones are allowed.
        alpha: α, in the unit of scores.

    Returns:
        (batch, n - 1), ascending, differentiable. Cost: O(n·log n).

    Source: Struski et al., ICML 2025; the branches of the root as in the authors' program.
    """
    x = scores.sort(dim=-1).values / alpha
    n = x.shape[-1]
    # Σ_{i ≤ j} exp(x_i - x_j) and Σ_{i ≥ j} exp(x_j - x_i): between 1 and n.
    log_below = x.logcumsumexp(-1) - x
    log_above = (-x).flip(-1).logcumsumexp(-1).flip(-1) + x
    counts = torch.arange(1, n, dtype=x.dtype, device=x.device).expand(*x.shape[:-1], n - 1).contiguous()
    with torch.no_grad():
        steps = torch.arange(n, dtype=x.dtype, device=x.device)
        sums = steps + 0.5 + 0.5 * (log_above.exp() - log_below.exp())  # the sum at each score
        place = torch.searchsorted(sums, counts, right=True)  # scores below the threshold
        difference = counts - place
    left, right = (place - 1).clamp_min(0), place.clamp_max(n - 1)
    x_left, x_right = x.gather(-1, left), x.gather(-1, right)
    log_below, log_above = log_below.gather(-1, left), log_above.gather(-1, right)
    is_inner = (place > 0) & (place < n)
    log_product = torch.where(is_inner, log_below + log_above + x_left - x_right, -math.inf)
    is_even = difference == 0
    # The root in the form without cancellation. Where the difference is 0, `even` is the root instead; the 1
    # keeps the gradient of the other form finite there.
    square = torch.where(is_even, 1.0, difference.square())
    log_root = (difference.abs() + (square + log_product.exp()).sqrt()).log()
    even = 0.5 * (x_left + x_right + log_below - log_above)
    sided = torch.where(difference > 0, x_right + log_root - log_above, x_left - log_root + log_below)
    return alpha * torch.where(is_even, even, sided)


def log_weights(scores: Tensor, ranks: Tensor, alpha: float) -> Tensor:
    """Return the logarithms of the weights of a relaxed permutation matrix at the items' ranks.

    The weight of item c at rank r is the probability that Laplace's law around s_c, of scale α, gives to
    the values between thresholds r and r + 1; the first and the last threshold are infinite. Each item's
    weights sum to 1, and each rank's.

    Args:
        scores: (batch, n).
        ranks: (batch, n), int64: the rank of each item whose weight is wanted.
        alpha: α, in the unit of scores.

    Returns:
        (batch, n). Cost: O(n·log n).

    Source: Struski et al., ICML 2025, soft permutations.
    """
    ends = scores.new_full((*scores.shape[:-1], 1), math.inf)
    bounds = torch.cat((-ends, thresholds(scores, alpha), ends), -1)
    low = (bounds.gather(-1, ranks) - scores) / alpha
    high = (bounds.gather(-1, ranks + 1) - scores) / alpha
    # The interval is cut at the item into a part above and a part below it. At 0, relu has the gradient 0 and
    # clamp 1, so that a threshold at an item is counted once.
    high_above, low_above = high.relu(), low.relu()
    high_below, low_below = high.clamp_max(0), low.clamp_max(0)
    return _log_twice(high_above - low_above, high_below - low_below) - low_above + high_below - math.log(2)


def _log_twice(above: Tensor, below: Tensor) -> Tensor:
    """Return log((1 - exp(-above)) + (1 - exp(-below))). Lengths that round to 0 have no gradient."""
    total = -torch.expm1(-above) - torch.expm1(-below)
    return total.clamp_min(torch.finfo(total.dtype).tiny).log()


def _lapsum(n: int, alpha: float, generator: torch.Generator) -> Loss:
    def loss(scores: Tensor, truth: Truth) -> Tensor:
        return -log_weights(scores, truth.ranks, alpha).mean()

    return loss


# The authors' program sorts four-digit numbers with α = 1, by this cross entropy.
LAPSUM = tempered("lap_sum", "LapSum", "Struski et al., ICML 2025", _lapsum, (0.3, 1.0, 3.0), "α")
