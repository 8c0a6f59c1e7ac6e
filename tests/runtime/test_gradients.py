"""Catches a gradient that is not the derivative of the value: in tails, near ties, at steep scores."""

from __future__ import annotations

import pytest
import torch

import nsc
from nsc.compiler.relaxations import SIGMOIDS

pytestmark = pytest.mark.slow("kernels are compared with 50 digits")

STEP = 1e-7
# A lane of a register is a sample for few wires, and a column of P for many. For the most wires, differences
# are kept segment by segment. All take every kind of input; few wires take every sigmoid.
FEW, MANY, MOST = 7, 36, 192
CASES = [
    *((FEW, sigmoid, 0.25) for sigmoid in SIGMOIDS),
    (FEW, "logistic", 0.0),
    (MANY, "logistic", 0.25),
    (MOST, "logistic", 0.25),
]


def spread_out(n):
    """Return values so far apart that most weights round to 0 or 1."""
    return 3 * torch.randn(4, n, dtype=torch.float64), 20.0


def nearly_tied(n):
    """Return pairs of values that differ in the fourth digit, in both orders."""
    halves = torch.randn(4, n - n // 2, dtype=torch.float64)
    gaps = 1e-4 * torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64).repeat(n)[: n // 2]
    return torch.cat([halves, halves[:, : n // 2] + gaps], -1), 5.0


def steep(n):
    """Return values close together, at a steepness that tells them apart."""
    return 0.01 * torch.randn(4, n, dtype=torch.float64), 1e3


def outputs(op, x, steepness):
    """Return the result of each operator by its name; targets are wrong, so their entries of P are tails."""
    wrong = x.detach().argsort(-1).argsort(-1).flip(-1)
    payload = torch.linspace(-1, 2, op.n * 2, dtype=x.dtype).view(op.n, 2).expand(len(x), op.n, 2)
    return {
        "sort": op.sort(x, steepness),
        "sort_with_permutation": op.sort_with_permutation(x, steepness)[1],
        "rank": op.rank(x, steepness),
        "route": op.route(x, payload, steepness),
        "topk": op.topk(x, 2, steepness)[1],
        "cross_entropy": op.cross_entropy(x, wrong, steepness),
        "binary_cross_entropy": op.binary_cross_entropy(x, wrong, steepness),
    }


@pytest.mark.parametrize("inputs", [spread_out, nearly_tied, steep], ids=lambda inputs: inputs.__name__)
@pytest.mark.parametrize(("n", "sigmoid", "art_lambda"), CASES)
def test_gradients_are_finite_differences(n, sigmoid, art_lambda, inputs):
    op = nsc.compile("odd_even", n, dtypes=("float64",), relaxation=sigmoid, art_lambda=art_lambda)
    x, steepness = inputs(n)
    x.requires_grad_()
    direction = torch.randn_like(x)
    step = STEP / steepness * 10

    def moved(sign):
        return outputs(op, x.detach() + sign * step * direction, steepness)

    above, below = moved(1), moved(-1)
    for name, result in outputs(op, x, steepness).items():
        # All weights are positive: sums that cancel would hide a wrong gradient.
        upstream = torch.rand_like(result) + 0.5
        (grad,) = torch.autograd.grad(result, x, upstream)
        expected = (upstream * (above[name] - below[name])).sum() / (2 * step)
        scale = (grad * direction).abs().sum() + 1e-6 * (1 + steepness)
        assert abs((grad * direction).sum() - expected) <= 1e-4 * scale, name
