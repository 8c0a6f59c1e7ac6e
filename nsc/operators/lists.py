"""Lists: which entries of each sample take part in a call, and where its results go."""

from __future__ import annotations

import functools
import math
from typing import Any, TypedDict

import torch
from torch import Tensor

from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import cast, check_dense
from nsc.runtime.dispatch.ways import PLAIN, way_of

Lengths = Tensor | None
Mask = Tensor | None


class ListOptions(TypedDict, total=False):
    """What the methods of a Sorter take by name; see there."""

    dim: int
    lengths: Lengths
    mask: Mask
    fill: float
    straight_through: bool


class Lists:
    """The entries of a call's samples that take part, the sorted axis at the end.

    A sample is called with these entries in front, in their order, and what sorts behind them in the other
    places. Nothing that stands there matters, and nothing of it gets a gradient.

    Args:
        counts: (…) int64, how many entries of each sample take part.
        n: how many values the operator sorts.
        place: (…, n), where each entry goes, those that take part to the front; None: they are there.

    Attributes:
        is_entry: (…, n), whether a place in front has an entry. Places of ranks are such too.
    """

    def __init__(self, counts: Tensor, n: int, place: Tensor | None) -> None:
        self.counts = counts
        self.is_entry = _is_below(counts, n)
        self._place = place
        self._order = None if place is None else _inverse(place)

    def is_of_largest(self, k: int) -> Tensor:
        """Return which ranks, (…, n), are those of the k largest entries; of fewer entries, of all."""
        ranks = torch.arange(self.is_entry.shape[-1], device=self.counts.device)
        return self.is_entry & (ranks >= self.counts.unsqueeze(-1) - k)

    def in_front(self, operand: Tensor, other: float, columns: int = 0) -> Tensor:
        """Return an operand with the entries in front and another number in the other places.

        Args:
            operand: (…, n), or (…, n, m).
            other: the number.
            columns: how many axes stand behind the entries.
        """
        moved = operand if self._order is None else _gathered(operand, self._order, columns)
        return filled(moved, _of_columns(self.is_entry, columns), other)

    def shares_in_front(self, shares: Tensor) -> Tensor:
        """Return shares (…, n, n) of ranks and entries, with the entries in front, else 0."""
        if self._order is not None:
            shares = shares.gather(-1, self._order.unsqueeze(-2).expand(shares.shape))
        return torch.where(self.is_entry.unsqueeze(-1) & self.is_entry.unsqueeze(-2), shares, 0)

    def of_ranks(self, result: Tensor, fill: float, columns: int = 0) -> Tensor:
        """Return a result that has a row for each rank, with a number for the ranks that there are not."""
        return filled(result, _of_columns(self.is_entry, columns), fill)

    def of_entries(self, result: Tensor, fill: float) -> Tensor:
        """Return a result (…, n) of the entries in their places, with a number in the other places."""
        result = filled(result, self.is_entry, fill)
        return result if self._place is None else result.gather(-1, self._place)

    def places(self, indices: Tensor) -> Tensor:
        """Return indices (…, n) of places in front as those in the sample."""
        return indices if self._order is None else self._order.gather(-1, indices.long()).to(indices.dtype)

    def of_rows(self, rows: Tensor, is_there: Tensor | None = None) -> Tensor:
        """Return rows of P, 0 in those of ranks that there are not, and in the columns of other places.

        Args:
            rows: (…, k, n).
            is_there: (…, k), which of the ranks there are; None: the rows are those of all.
        """
        of_ranks = self.is_entry if is_there is None else is_there
        return torch.where(of_ranks.unsqueeze(-1) & self.is_entry.unsqueeze(-2), rows, 0)

    def columns(self, rows: Tensor) -> Tensor:
        """Return rows of P, (…, k, n), with the columns of the entries in their places."""
        if self._place is None:
            return rows
        return rows.gather(-1, self._place.unsqueeze(-2).expand(rows.shape))


def last_of(dtype: torch.dtype, descending: bool) -> float:
    """Return a number that an exact sort leaves behind all others of a dtype."""
    if dtype == torch.bool:
        return not descending
    if dtype.is_floating_point:
        return -math.inf if descending else math.nan
    return torch.iinfo(dtype).min if descending else torch.iinfo(dtype).max


def lists_of(caller: str, x: Tensor, lengths: Any, mask: Any, n: int | None = None) -> Lists | None:
    """Return the lists that a call names; None: all entries take part.

    Args:
        caller: the operator's method, for messages.
        x: (…, m), the sorted axis at the end.
        lengths: integers (…) in 0 … m: the first so many entries of each sample take part; or None.
        mask: booleans (…, m): the entries where it is true take part; or None.
        n: how many values the operator sorts, at least m; beyond m there are no entries. None: m.

    Raises:
        OperandTypeError: lengths or a mask of another type.
        OperandError: both are given, or they have another shape or device than x, or lengths outside 0 … m.
    """
    m = x.shape[-1]
    if lengths is None and mask is None:
        return None if n is None else Lists(torch.full(x.shape[:-1], m, device=x.device), n, None)
    wires = m if n is None else n
    if lengths is not None and mask is not None:
        raise OperandError(f"{caller}: lengths and mask say the same: leave one of them out")
    name, given = ("lengths", lengths) if mask is None else ("mask", mask)
    shape = x.shape[:-1] if mask is None else x.shape
    check_dense(caller, name, given)
    is_wrong = given.dtype != torch.bool if mask is not None else given.dtype in _NO_LENGTHS
    if is_wrong or given.is_complex() or (mask is None and given.is_floating_point()):
        what, way = ("booleans", ".bool()") if mask is not None else ("integers", ".long()")
        raise OperandTypeError(f"{caller}: {name} must hold {what}, got {given.dtype}: convert it with {way}")
    if given.shape != shape:
        raise OperandError(
            f"{caller}: {name} must have the shape {tuple(shape)} for x of shape {tuple(x.shape)}, got "
            f"{tuple(given.shape)}"
        )
    if given.device != x.device:
        raise OperandError(f"{caller}: x is on {x.device} and {name} on {given.device}: move one of them")
    if mask is not None:
        if n is not None:
            mask = torch.nn.functional.pad(mask, [0, n - m])
        before = mask.cumsum(-1)
        counts = before[..., -1].contiguous()
        others = torch.arange(wires, device=mask.device) - before + counts.unsqueeze(-1)
        return Lists(counts, wires, torch.where(mask, before - 1, others))
    lengths = cast(lengths, torch.int64)
    if way_of(lengths) is PLAIN and not lengths.is_cuda and lengths.numel():
        least, most = (number.item() for number in lengths.aminmax())
        if least < 0 or most > m:
            raise OperandError(f"{caller}: lengths must be in 0 … {m}, got {least if least < 0 else most}")
    return Lists(lengths, wires, None)


_NO_LENGTHS = (torch.bool,)
# What torch does not gather, and dtypes of as many bits that it does.
_SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
# Most places whose table is kept: it has a row for each count.
_TABLE = 256


def _is_below(counts: Tensor, n: int) -> Tensor:
    """Return (…, n), which places are below a count. A look-up takes a sixth of the comparison's time."""
    if way_of(counts) is PLAIN and not counts.is_cuda and n <= _TABLE:
        return _table(n)[counts]
    return torch.arange(n, device=counts.device) < counts.unsqueeze(-1)


@functools.cache
def _table(n: int) -> Tensor:
    with torch.inference_mode(False):
        counts = torch.arange(n + 1, device="cpu")
        return counts[:n] < counts.unsqueeze(-1)


def _inverse(places: Tensor) -> Tensor:
    """Return the inverse of permutations (…, n)."""
    numbers = torch.arange(places.shape[-1], device=places.device).expand(places.shape)
    return torch.empty_like(places).scatter_(-1, places, numbers)


def filled(tensor: Tensor, is_kept: Tensor, other: float) -> Tensor:
    """Return a tensor of the same dtype with another number where `is_kept` is false."""
    if tensor.is_floating_point():
        return torch.where(is_kept, tensor, other)  # two thirds of masked_fill's time
    return torch.where(is_kept, tensor, torch.full_like(tensor, other))  # of bool too


def _of_columns(of_entries: Tensor, columns: int) -> Tensor:
    return of_entries.reshape(of_entries.shape + (1,) * columns)


def _gathered(operand: Tensor, order: Tensor, columns: int) -> Tensor:
    return gathered(operand, _of_columns(order, columns).expand(operand.shape), -1 - columns)


def gathered(tensor: Tensor, index: Tensor, axis: int = -1) -> Tensor:
    """Return what torch.gather does, of every dtype."""
    signed = _SIGNED.get(tensor.dtype)
    if signed is None:
        return tensor.gather(axis, index)
    return tensor.view(signed).gather(axis, index).view(tensor.dtype)
