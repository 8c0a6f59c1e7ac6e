"""Ragged: lists of different lengths, as torch's users keep them, and as padded rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import cast
from nsc.wording import count


@dataclass(frozen=True)
class Ragged:
    """Lists, padded with zeros.

    Attributes:
        padded: (batch, longest).
        lengths: (batch,) int64.
        closed: turns rows, of any length, into lists of the kind that was given.
    """

    padded: Tensor
    lengths: Tensor
    closed: Callable[[Tensor], Any]

    def rows_of(self, caller: str, name: str, given: Any) -> Any:
        """Return an operand beside these lists: lists as rows, a pair of lists as a pair, else as it is.

        Another number of lists, or lists of other lengths, are refused.
        """
        ragged = ragged_of(caller, name, given)
        if ragged is None:
            is_several = isinstance(given, tuple | list)
            return tuple(self.rows_of(caller, name, each) for each in given) if is_several else given
        if len(ragged.lengths) != len(self.lengths):
            found = f"{name} has {count(len(ragged.lengths), 'list')}, for {len(self.lengths)} of x"
            raise OperandError(f"{caller}: {found}: give a list for each")
        if not torch.equal(ragged.lengths, self.lengths):
            first = int((ragged.lengths != self.lengths).int().argmax())
            found = f"{count(int(ragged.lengths[first]), 'value')}, for {int(self.lengths[first])} of x"
            raise OperandError(f"{caller}: list {first} of {name} has {found}: give one for each")
        return ragged.padded

    def check_alone(self, caller: str, lengths: Any, mask: Any) -> None:
        """Refuse lengths or a mask beside lists, which have their own lengths."""
        if lengths is not None or mask is not None:
            name = "mask" if lengths is None else "lengths"
            raise OperandError(
                f"{caller}: lists say themselves how long they are: leave {name} out, or pass a padded tensor"
            )


def ragged_of(caller: str, name: str, given: Any) -> Ragged | None:
    """Return lists as rows; None: the argument is no kind of lists.

    Args:
        caller: the operator's method, for messages.
        name: the lists' name, for messages.
        given: a nested tensor of the jagged layout (batch, ragged), with holes between its lists or without;
            a PackedSequence of numbers; or a pair of values (total,) and offsets (batch + 1,).

    Raises:
        OperandTypeError: a nested tensor of another layout.
        OperandError: offsets that do not begin at 0, fall, or do not end at the number of values.
    """
    if isinstance(given, PackedSequence):
        padded, lengths = pad_packed_sequence(given, batch_first=True)
        is_sorted = given.sorted_indices is None

        def packed(rows: Tensor) -> PackedSequence:
            return pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=is_sorted)

        return Ragged(padded, lengths.to(padded.device), packed)
    if isinstance(given, Tensor) and given.is_nested:
        if given.layout is not torch.jagged:
            raise OperandTypeError(
                f"{caller}: {name} must be a dense tensor or a jagged one, got a nested one of the layout "
                f"{given.layout}: make it with layout=torch.jagged"
            )
        return _nested(caller, name, given) if given.dim() == 2 else None
    if (
        isinstance(given, tuple)
        and len(given) == 2
        and all(isinstance(each, Tensor) and each.dim() == 1 for each in given)
        and not given[1].is_floating_point()
        and given[1].numel()
    ):
        values, offsets = given
        padded, lengths = _covering(caller, name, values, offsets)
        return Ragged(padded, lengths, lambda rows: (_flat(rows, lengths), offsets))
    return None


def _nested(caller: str, name: str, given: Any) -> Ragged:
    values, offsets, lengths = given.values(), given.offsets(), given.lengths()
    if lengths is None:
        padded, lengths = _covering(caller, name, values, offsets)
    else:  # torch.nested.narrow leaves holes: a list ends before the next one begins
        padded, offsets = _padded(values, offsets[:-1], lengths), pad(lengths.cumsum(0), [1, 0])
    return Ragged(
        padded, lengths, lambda rows: torch.nested.nested_tensor_from_jagged(_flat(rows, lengths), offsets)
    )


def _covering(caller: str, name: str, values: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows and the lengths of lists that lie one behind the other, up to the last value."""
    offsets = cast(offsets, torch.int64)
    lengths = offsets.diff()
    if offsets[0] != 0 or offsets[-1] != len(values) or bool((lengths < 0).any()):
        raise OperandError(
            f"{caller}: the offsets of {name} must rise from 0 to the number of values, {len(values)}"
        )
    return _padded(values, offsets[:-1], lengths), lengths


def _padded(values: Tensor, first: Tensor, lengths: Tensor) -> Tensor:
    """Return lists as rows; `first` says at which place of the values each list begins."""
    longest = max(1, int(lengths.max())) if lengths.numel() else 1
    place = torch.arange(longest, device=values.device)
    is_entry = place < lengths.unsqueeze(-1)
    index = torch.where(is_entry, first.unsqueeze(-1) + place, 0)
    rows = values[index] if values.numel() else values.new_zeros(index.shape)
    return torch.where(is_entry, rows, 0)


def _flat(rows: Tensor, lengths: Tensor) -> Tensor:
    return rows[torch.arange(rows.shape[1], device=rows.device) < lengths.unsqueeze(-1)]
