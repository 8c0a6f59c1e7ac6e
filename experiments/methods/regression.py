"""Regression on the true values: a reference that knows more than the order, no ranking method.

It is for four-digit numbers alone, whose range is known.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional

from experiments.methods.records import Truth, untempered

# Mean and standard deviation of a number that is uniform in 0 … 9999.
MEAN = 4999.5
DEVIATION = 2886.75


def _regression(scores: Tensor, truth: Truth) -> Tensor:
    """Return the mean squared difference of scores and true values, standardised as four-digit numbers."""
    values = (truth.values.to(scores.dtype) - MEAN) / DEVIATION
    return functional.mse_loss(scores, values)


REGRESSION = untempered("regression", "Regression", "least squares on the true values", _regression)
