"""Arrangements: from the tensors of a call to those of a kernel, and back.

A kernel takes the sorted axis last, and the entries that take part in front. Results of entries stand where
the entries stand in x; those of ranks have the rank's number as their place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from nsc.contract.routings import IGNORED
from nsc.errors import OperandError
from nsc.operators.lists import Lists, filled, lists_of
from nsc.operators.operands import cast


class Arrangement(NamedTuple):
    """How a call's tensors are arranged.

    Attributes:
        axis: the sorted axis, from 0 on; None: the last.
        exists: whether x has it; a tensor without axes is one value.
        lists: which entries take part; None: all.
        fill: what stands in results where no entry takes part.
        missing: how many wires the kernel has beyond the values of x, which the lists leave out; None: none.
    """

    axis: int | None
    exists: bool
    lists: Lists | None
    fill: float
    missing: int | None = None

    def at_end(self, operand: Tensor, other: float, columns: int = 0) -> Tensor:
        """Return an operand as a kernel takes it.

        Args:
            operand: it has the axes of x, then so many axes of columns.
            other: what stands where no entry takes part.
            columns: the number of these axes.
        """
        if self.axis is not None:
            operand = operand.movedim(self.axis, -1 - columns) if self.exists else operand.unsqueeze(0)
        if self.missing is not None:
            operand = pad(operand, [0, 0] * columns + [0, self.missing])
        return operand if self.lists is None else self.lists.in_front(operand, other, columns)

    def keys(self, x: Tensor) -> Tensor:
        """Return x as a kernel takes it. What does not take part is +∞, which sorts behind all numbers."""
        return self.at_end(x, math.inf if x.is_floating_point() else 0)

    def target(self, target: Tensor) -> Tensor:
        """Return integers, one for each entry, as a kernel takes them."""
        return self.at_end(cast(target, torch.int64), IGNORED)

    def shares(self, shares: Tensor) -> Tensor:
        """Return shares, (…, n, n) with the axes of P, as a kernel takes them."""
        if self.missing is not None:
            shares = pad(shares, [0, self.missing] * 2)
        return shares if self.lists is None else self.lists.shares_in_front(shares)

    def of_ranks(self, result: Tensor, columns: int = 0) -> Tensor:
        """Return a result with a number for each rank, or with so many axes of columns behind."""
        if self.lists is not None:
            result = self.lists.of_ranks(result, self.fill, columns)
        return self._back(self.cut(result, columns), columns)

    def cut(self, result: Tensor, columns: int = 0) -> Tensor:
        """Return a result of ranks, or of entries, without the wires that x has no values for."""
        if self.missing is None:
            return result
        axis = -1 - columns
        return result.narrow(axis, 0, result.shape[axis] - self.missing)

    def selected(self, result: Tensor, is_there: Tensor, columns: int = 0) -> Tensor:
        """Return a result with a row for each of some ranks, of which some may not be there."""
        is_kept = is_there.reshape(is_there.shape + (1,) * columns)
        return self._back(filled(result, is_kept, self.fill), columns)

    def of_entries(self, result: Tensor) -> Tensor:
        """Return a result with a number for each entry."""
        if self.lists is not None:
            result = self.lists.of_entries(result, self.fill)
        return self._back(self.cut(result), 0)

    def of_both(self, p: Tensor) -> Tensor:
        """Return P, or some rows of it, with its columns where the entries are. Its axes stay at the end."""
        return p if self.lists is None else self.cut(self.lists.columns(p))

    def with_fill(self, fill: float) -> Arrangement:
        """Return the same with another number where no entry takes part."""
        return self._replace(fill=fill)

    def _back(self, result: Tensor, columns: int) -> Tensor:
        if self.axis is None:
            return result
        return result.movedim(-1 - columns, self.axis) if self.exists else result.squeeze(0)


# Moving the last axis would take as long as a small sort.
AS_IT_IS = Arrangement(None, True, None, 0)


def arrangement_of(
    caller: str, x: Tensor, axis: int | None, lengths: Any, mask: Any, fill: float, n: int | None = None
) -> Arrangement:
    """Return how the tensors of a call are arranged.

    Args:
        caller: the operator's method, for messages.
        x: a tensor with the axis.
        axis: as of `Arrangement`.
        lengths, mask: as of `lists_of`; a mask has the axes of x.
        fill: as of `Arrangement`.
        n: number of wires, at least as many as x has values; None: as many.

    Raises:
        OperandTypeError, OperandError: as of `lists_of`.
        OperandError: a fill that integers or booleans cannot be.
    """
    if axis == x.dim() - 1:
        axis = None
    if lengths is None and mask is None and axis is None and n is None:
        return AS_IT_IS
    moved = Arrangement(axis, x.dim() > 0, None, fill)
    _check_fill(caller, x.dtype, fill)
    if isinstance(mask, Tensor) and mask.shape == x.shape:
        mask = moved.at_end(mask, 0)
    keys = moved.at_end(x, 0)
    missing = None if n is None else n - keys.shape[-1]
    return moved._replace(lists=lists_of(caller, keys, lengths, mask, n), missing=missing)


def _check_fill(caller: str, dtype: torch.dtype, fill: float) -> None:
    if not fill or dtype.is_floating_point or dtype.is_complex:
        return
    least, most = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
    if not (least <= fill <= most and fill == int(fill)):
        raise OperandError(
            f"{caller}: fill must be a whole number in {least} … {most} for {dtype}, got {fill}"
        )
