"""FastSort&Rank: soft ranks as a projection, by isotonic regression."""

from __future__ import annotations

import torch
from torch import Tensor

from experiments.methods.records import Loss, Truth, tempered


def soft_ranks(scores: Tensor, epsilon: float) -> Tensor:
    """Return the projection of scores / ε onto the permutahedron of the ranks 0 … n-1.

    Args:
        scores: (batch, n).
        epsilon: ε, the strength of the quadratic regularisation, in the unit of scores. The ranks of scores
            that are further apart than ε are exact and have no gradient.

    Returns:
        (batch, n), 0 for the smallest. Equal scores have equal ranks.

    Source: Blondel et al., ICML 2020, proposition 3 with quadratic regularisation.
    """
    n = scores.shape[-1]
    ordered, order = (scores / epsilon).sort(dim=-1, descending=True)
    weights = torch.arange(n - 1, -1, -1, dtype=scores.dtype, device=scores.device)
    offsets = ordered - weights
    blocks = decreasing_blocks(offsets)
    zeros = torch.zeros_like(offsets)
    sums = zeros.scatter_add(-1, blocks, offsets)
    counts = zeros.scatter_add(-1, blocks, torch.ones_like(offsets))
    means = (sums / counts.clamp_min(1)).gather(-1, blocks)
    return zeros.scatter(-1, order, ordered - means)


@torch.no_grad()
def decreasing_blocks(values: Tensor) -> Tensor:
    """Return the blocks of the decreasing isotonic regression, which is the mean of each block.

    Neighbouring blocks whose means do not decrease belong to one block of the solution. Each round joins
    all of them in all samples at once, until there are none: pool adjacent violators, in parallel.

    Args:
        values: (batch, n).

    Returns:
        (batch, n), int64: the number of each value's block, ascending from 0. Cost: O(n) a round; random
        values take about log n rounds, at worst n.

    Source: Barlow et al., Statistical inference under order restrictions, 1972.
    """
    exact = values.double()  # the order of two means decides
    ones = torch.ones_like(exact)
    starts = torch.ones_like(values, dtype=torch.bool)
    while True:
        blocks = starts.cumsum(-1) - 1
        zeros = torch.zeros_like(exact)
        sums = zeros.scatter_add(-1, blocks, exact)
        counts = zeros.scatter_add(-1, blocks, ones)
        means = (sums / counts.clamp_min(1)).gather(-1, blocks)
        is_joined = starts[..., 1:] & (means[..., :-1] <= means[..., 1:])
        if not is_joined.any():
            return blocks
        starts[..., 1:] &= ~is_joined


def _fast_sort_and_rank(n: int, epsilon: float, generator: torch.Generator) -> Loss:
    """Return the mean squared difference of soft and true ranks, as in the paper's comparison.

    The method gives no permutation matrix, so that there is no cross entropy (supplement of Petersen et al.).
    """

    def loss(scores: Tensor, truth: Truth) -> Tensor:
        return (soft_ranks(scores, epsilon) - truth.ranks).square().mean()

    return loss


# 1 is the default of the authors' program and of torchsort.
FAST_SORT_AND_RANK = tempered(
    "fast_rank", "FastSort&Rank", "Blondel et al., ICML 2020", _fast_sort_and_rank, (0.3, 1.0, 3.0), "ε"
)
