"""Sorting by optimal transport: Sinkhorn's iterations between the scores and n places in order."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from experiments.methods.records import Loss, Truth, tempered

# Sinkhorn's iterations. A fixed number, so that the gradient belongs to what was computed.
ITERATIONS = 20
# Added to the variance of a sample, so that equal scores have a gradient.
LEAST_VARIANCE = 1e-12


def squash(scores: Tensor) -> Tensor:
    """Return scores in (0, 1): standardised in each sample, then through the logistic function.

    The logistic function is scaled so that it makes the logistic distribution uniform, as the places are.

    Args:
        scores: (batch, n).

    Source: Cuturi et al., NeurIPS 2019; the scale as in the authors' library OTT.
    """
    centred = scores - scores.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return (centred * (math.pi / math.sqrt(3)) / (variance + LEAST_VARIANCE).sqrt()).sigmoid()


def log_plan(scores: Tensor, epsilon: float, iterations: int = ITERATIONS) -> Tensor:
    """Return the logarithm of the relaxed permutation matrix of entropic optimal transport.

    The cost of item c at rank r is (x_c - r / (n - 1))², with x the squashed scores. Each iteration scales
    rows to sum to 1, then columns, so that at the end each item has a distribution over the ranks.

    The first iteration is in the domain of logarithms, where nothing underflows. It leaves a matrix with
    sums between 1/n and n, and the others scale that by products of a matrix and a vector, which cost
    little. The logarithm of the result is a sum, which is finite though weights underflow.

    Args:
        scores: (batch, n), n at least 2.
        epsilon: ε, the weight of the entropy, in the unit of the cost.
        iterations: at least 1.

    Returns:
        (batch, n, n), ranks first, then items. Cost: O(n²·iterations).

    Source: Cuturi, NeurIPS 2013; Cuturi et al., NeurIPS 2019.
    """
    places = torch.linspace(0, 1, scores.shape[-1], dtype=scores.dtype, device=scores.device)
    logs = (places.unsqueeze(-1) - squash(scores).unsqueeze(-2)).square() / -epsilon
    logs = logs.log_softmax(-1).log_softmax(-2)
    factors: tuple[Tensor, Tensor] = _Scaling.apply(logs.exp(), iterations - 1)  # type: ignore[no-untyped-call]
    rows, columns = factors
    return logs + rows.log() + columns.log().mT


class _Scaling(torch.autograd.Function):
    """Factors of rows and columns after some iterations of Sinkhorn's algorithm.

    Autograd would add a matrix to the gradient for each product. Here these outer products are one product of
    matrices at the end.
    """

    @staticmethod
    def forward(ctx: Any, matrix: Tensor, iterations: int) -> tuple[Tensor, Tensor]:
        """Return the factors of rows and columns, each (batch, n, 1), of a positive (batch, n, n)."""
        rows, columns = [torch.ones_like(matrix[..., :1])], [torch.ones_like(matrix[..., :1])]
        for _ in range(iterations):
            rows.append((matrix @ columns[-1]).reciprocal())
            columns.append((matrix.mT @ rows[-1]).reciprocal())
        ctx.save_for_backward(matrix, *rows, *columns)
        return rows[-1].clone(), columns[-1].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_rows: Tensor, d_columns: Tensor) -> tuple[Tensor, None]:
        """Return the gradient of the matrix, by the iterations in reverse."""
        matrix, *factors = ctx.saved_tensors
        half = len(factors) // 2
        rows, columns = factors[:half], factors[half:]
        left, right = [], []
        for step in range(half - 1, 0, -1):
            d_sums = -d_columns * columns[step].square()
            d_rows = d_rows + matrix @ d_sums
            left.append(rows[step])
            right.append(d_sums)
            d_sums = -d_rows * rows[step].square()
            left.append(d_sums)
            right.append(columns[step - 1])
            d_rows, d_columns = torch.zeros_like(d_rows), matrix.mT @ d_sums
        if not left:
            return torch.zeros_like(matrix), None
        return torch.cat(left, -1) @ torch.cat(right, -1).mT, None


def _transport(n: int, epsilon: float, generator: torch.Generator) -> Loss:
    def loss(scores: Tensor, truth: Truth) -> Tensor:
        logs = log_plan(scores, epsilon)
        return -logs.gather(-2, truth.ranks.unsqueeze(-2)).mean()

    return loss


TRANSPORT = tempered(
    "optimal_transport",
    "Optimal Transport",
    "Cuturi et al., NeurIPS 2019",
    _transport,
    (0.01, 0.03, 0.1),
    "ε",
)
