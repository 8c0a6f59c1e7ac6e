"""NeuralSort and SoftSort: relaxed permutation matrices whose rows are softmaxes.

Row r of a matrix is a distribution over the items: which of them has rank r, 0 for the smallest. The papers
sort in descending order, so that their rows are these from the last to the first. The loss is the cross
entropy between the matrix and the true one. The papers' programs add 1e-20 to the matrix before the
logarithm, which cuts gradients where scores are far apart; here the logarithm is exact, as the logarithm of a
softmax.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from experiments.methods.records import Loss, Truth, tempered

# Draws of the noise in each step, as in the program of the paper, which averages the loss over them.
DRAWS = 5


def neuralsort_logits(scores: Tensor, tau: float) -> Tensor:
    """Return the logits of NeuralSort's matrix; its rows are their softmax over the last axis.

    Logit (r, c) is ((2r + 1 - n)·s_c - Σ_k |s_c - s_k|) / τ. Equal scores have equal columns.

    Args:
        scores: (batch, n).
        tau: τ, in the unit of scores.

    Returns:
        (batch, n, n). Cost: O(n²).

    Source: Grover et al., ICLR 2019, with rows in ascending order.
    """
    n = scores.shape[-1]
    # A shift of all scores changes nothing but the rounding.
    centred = scores - scores.mean(-1, keepdim=True).detach()
    weights = torch.arange(1 - n, n, 2, dtype=scores.dtype, device=scores.device)
    distances = (centred.unsqueeze(-1) - centred.unsqueeze(-2)).abs().sum(-1)
    return (weights.unsqueeze(-1) * centred.unsqueeze(-2) - distances.unsqueeze(-2)) / tau


def softsort_logits(scores: Tensor, tau: float) -> Tensor:
    """Return the logits of SoftSort's matrix; its rows are their softmax over the last axis.

    Logit (r, c) is -|s_(r) - s_c| / τ, with s_(r) the score of rank r.

    Args:
        scores: (batch, n).
        tau: τ, in the unit of scores.

    Returns:
        (batch, n, n). Cost: O(n²).

    Source: Prillo and Eisenschlos, ICML 2020, with d = |·| and rows in ascending order.
    """
    ordered = scores.sort(dim=-1).values
    return (ordered.unsqueeze(-1) - scores.unsqueeze(-2)).abs() / -tau


def rows_cross_entropy(logits: Tensor, ranks: Tensor) -> Tensor:
    """Return the cross entropy of a matrix whose rows are softmaxes: the mean of -log P[ranks[c], c].

    Args:
        logits: (batch, n, n), of rows: ranks first, then items.
        ranks: (batch, n), int64, the true rank of each item.
    """
    items = ranks.argsort(-1)
    return functional.cross_entropy(logits.flatten(0, 1), items.flatten())


def _neuralsort(n: int, tau: float, generator: torch.Generator) -> Loss:
    return lambda scores, truth: rows_cross_entropy(neuralsort_logits(scores, tau), truth.ranks)


def _softsort(n: int, tau: float, generator: torch.Generator) -> Loss:
    return lambda scores, truth: rows_cross_entropy(softsort_logits(scores, tau), truth.ranks)


def _stochastic_neuralsort(n: int, tau: float, generator: torch.Generator) -> Loss:
    """Return the loss of scores with Gumbel noise: their order then has the law of Plackett and Luce."""

    def loss(scores: Tensor, truth: Truth) -> Tensor:
        shape = (DRAWS, *scores.shape)
        uniform = torch.rand(shape, dtype=scores.dtype, device=generator.device, generator=generator)
        # A draw may be 0, whose logarithm is infinite.
        uniform = uniform.clamp_min(torch.finfo(scores.dtype).tiny).to(scores.device)
        noise = -(-uniform.log()).log()
        logits = neuralsort_logits((scores + noise).flatten(0, 1), tau)
        return rows_cross_entropy(logits, truth.ranks.repeat(DRAWS, 1))

    return loss


# The paper's program has τ = 5 where nothing is stated.
NEURALSORT = tempered(
    "neural_sort",
    "NeuralSort (deterministic)",
    "Grover et al., ICLR 2019",
    _neuralsort,
    (1.0, 3.0, 10.0),
    "τ",
)
STOCHASTIC_NEURALSORT = tempered(
    "stochastic_neural_sort",
    "NeuralSort (stochastic)",
    "Grover et al., ICLR 2019",
    _stochastic_neuralsort,
    (1.0, 3.0, 10.0),
    "τ",
)
# The paper's program has τ = 128 and 1024, with a larger learning rate, so that scores grow far apart.
SOFTSORT = tempered(
    "soft_sort", "SoftSort", "Prillo and Eisenschlos, ICML 2020", _softsort, (0.1, 0.3, 1.0), "τ"
)
