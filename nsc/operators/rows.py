"""Rows: losses of some rows of P, which a selector returns, against the shares that they should have."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from nsc.contract.routings import LOSSES
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import check_dense
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed import reference


def check_shares(caller: str, x: Tensor, target: Any, shape: tuple[int, ...]) -> None:
    """Refuse what are no shares of the rows of a call.

    Args:
        caller: the operator's method, for messages.
        x: as users pass it.
        target: what is checked.
        shape: (…, k, n), of the rows.

    Raises:
        OperandTypeError: no floating-point numbers, or no tensor.
        OperandError: another shape or device than the rows, or numbers outside 0 … 1.
    """
    check_dense(caller, "target", target)
    if not target.dtype.is_floating_point:
        raise OperandTypeError(
            f"{caller}: target must have a floating-point dtype, got {target.dtype}: it holds what rows of "
            "P should be; nsc.Sorter compares with ranks"
        )
    if target.shape != shape:
        raise OperandError(
            f"{caller}: target must have the shape of the rows, {shape}, got {tuple(target.shape)}"
        )
    if target.device != x.device:
        raise OperandError(f"{caller}: x is on {x.device} and target on {target.device}: move one of them")
    if way_of(target) is PLAIN and not target.is_cuda and not bool(((target >= 0) & (target <= 1)).all()):
        raise OperandError(f"{caller}: target must hold numbers in 0 … 1")


def losses_of_rows(
    name: str, rows: Tensor, shares: Tensor, counted: Tensor | None, error_free: bool
) -> Tensor:
    """Return the loss of each sample, the mean over its rows, and for a loss by rank over their entries.

    Args:
        name: a key of LOSSES.
        rows: (…, k, n), rows of P, which add up to 1; 0 where there are no entries.
        shares: (…, k, n), what they should be.
        counted: (…, k, n), which entries there are; None: all. A sample without any has the loss 0.
        error_free: whether P is exact, see `reference.log_of`.
    """
    samples, (k, n) = rows.shape[:-2], rows.shape[-2:]
    by_rank = LOSSES[name].by_rank
    if counted is None:
        weights = rows.new_full((1, 1), 1 / k)
    else:
        shares = torch.where(counted, shares, 0)
        ranks = counted.any(-1).sum(-1).to(rows.dtype)
        means = n / counted.flatten(-2).sum(-1).to(rows.dtype) if by_rank else 1 / ranks
        weights = torch.where(ranks > 0, means, 0).reshape(-1, 1)
    rest = reference.complement(rows, -1)
    p, rest, shares = (entries.reshape(-1, k, n) for entries in (rows, rest, shares))
    log = partial(reference.log_of, error_free=error_free)
    losses = reference.LOSSES[name](p, rest, reference.Truths(shares, weights, None), log)
    return losses.reshape(samples)
