"""Rows: losses of some rows of P, which a selector returns, against the shares that they should have."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nsc.contract.routings import LARGE, LOSSES
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import check_dense
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed.reference import log_of


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
        rows: (…, k, n), rows of P, which add up to 1.
        shares: (…, k, n), what they should be.
        counted: (…, k, n), which entries there are; None: all. A sample without any has the loss 0.
        error_free: whether P is exact, see `log_of`.
    """
    if counted is not None:
        shares = torch.where(counted, shares, 0)
    is_large = rows > LARGE
    others = torch.where(is_large, 0, rows).sum(-1, keepdim=True)
    # The others' number with the entry's own derivative: equal slopes at all others differ in the last place
    # once they are mixed, and a small gradient would drown.
    rest = torch.where(is_large, others.detach() - (rows - rows.detach()), 1 - rows)
    logs = shares * log_of(rows, rest, error_free)
    if LOSSES[name].by_rank:
        logs = logs + (1 - shares) * log_of(rest, rows, error_free)
    if counted is None:
        count: int | Tensor = rows.shape[-2] * (rows.shape[-1] if LOSSES[name].by_rank else 1)
    else:
        logs = torch.where(counted, logs, 0)
        in_sample = counted if LOSSES[name].by_rank else counted.any(-1, keepdim=True)
        count = in_sample.flatten(-2).sum(-1).clamp_min(1)
    return -logs.flatten(-2).sum(-1) / count
