"""Losses of learning to rank: of pairs (RankNet) and of lists (ListMLE)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from experiments.methods.records import Loss, Truth, tempered


def _ascending(scores: Tensor, truth: Truth) -> Tensor:
    """Return the scores in the order of the true ranks."""
    return scores.gather(-1, truth.ranks.argsort(-1))


def _ranknet(n: int, sigma: float, generator: torch.Generator) -> Loss:
    """Return the mean over pairs of -log of the logistic probability that the larger item wins.

    Cost: O(n²). Source: Burges et al., ICML 2005, with certain labels.
    """
    pairs = n * (n - 1) // 2

    def loss(scores: Tensor, truth: Truth) -> Tensor:
        ordered = sigma * _ascending(scores, truth)
        costs = functional.softplus(ordered.unsqueeze(-1) - ordered.unsqueeze(-2))
        return costs.triu(1).sum((-2, -1)).mean() / pairs

    return loss


def _listmle(n: int, scale: float, generator: torch.Generator) -> Loss:
    """Return -log of Plackett's and Luce's probability of the true order, the largest item drawn first.

    It is divided by n. The scores are multiplied by the scale, which the paper has as 1. Cost: O(n·log n).

    Source: Xia et al., ICML 2008.
    """

    def loss(scores: Tensor, truth: Truth) -> Tensor:
        ordered = scale * _ascending(scores, truth)
        # Item r is drawn from the items of ranks 0 … r.
        return (ordered.logcumsumexp(-1) - ordered).mean()

    return loss


RANKNET = tempered("rank_net", "RankNet", "Burges et al., ICML 2005", _ranknet, (1.0, 3.0, 10.0), "σ")
LISTMLE = tempered(
    "list_mle", "ListMLE", "Xia et al., ICML 2008", _listmle, (1.0, 3.0, 10.0), "scale of scores"
)
