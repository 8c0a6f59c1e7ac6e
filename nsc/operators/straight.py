"""Straight through: exact results with the gradients of soft ones."""

from __future__ import annotations

import torch
from torch import Tensor


def straight(soft: Tensor, exact: Tensor) -> Tensor:
    """Return exact numbers with the derivatives of soft ones; where these are not finite, them.

    Source: Bengio, Leonard & Courville 2013, for the estimator.
    """
    passed = exact.detach().to(soft.dtype) + (soft - soft.detach())
    return torch.where(soft.isfinite(), passed, soft)


def unit_rows(indices: Tensor, n: int) -> Tensor:
    """Return rows (…, k, n) of a permutation matrix, that of indices (…, k): 1 at the index, else 0."""
    return indices.unsqueeze(-1) == torch.arange(n, device=indices.device)
