"""Ragged: lists of different lengths, as torch's users keep them, and as padded rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence


@dataclass(frozen=True)
class Ragged:
    """Lists, padded with zeros.

    Attributes:
        padded: (batch, longest).
        lengths: (batch,) integers.
        closed: makes of such rows, of any length, what was given.
    """

    padded: Tensor
    lengths: Tensor
    closed: Callable[[Tensor], Any]

    def padded_to(self, m: int) -> Tensor:
        """Return the rows with m places, at least as many as the longest list has."""
        return torch.nn.functional.pad(self.padded, [0, m - self.padded.shape[1]])


def ragged_of(given: Any) -> Ragged | None:
    """Return lists as rows; None: what was given is none of their kinds.

    Args:
        given: a nested tensor of the jagged layout (batch, ragged), a PackedSequence of numbers, or a pair of
            values (total,) and offsets (batch + 1,), which begin at 0 and end at the number of values.
    """
    if isinstance(given, PackedSequence):
        padded, lengths = pad_packed_sequence(given, batch_first=True)
        is_sorted = given.sorted_indices is None

        def packed(rows: Tensor) -> PackedSequence:
            return pack_padded_sequence(rows, lengths, batch_first=True, enforce_sorted=is_sorted)

        return Ragged(padded, lengths.to(padded.device), packed)
    if isinstance(given, Tensor) and given.is_nested and given.layout is torch.jagged and given.dim() == 2:
        offsets = given.offsets()  # type: ignore[attr-defined]
        padded, lengths = _padded(given.values(), offsets)
        return Ragged(
            padded,
            lengths,
            lambda rows: torch.nested.nested_tensor_from_jagged(_flat(rows, lengths), offsets),
        )
    if (
        isinstance(given, tuple)
        and len(given) == 2
        and all(isinstance(each, Tensor) and each.dim() == 1 for each in given)
        and not given[1].is_floating_point()
        and given[1].numel()
    ):
        values, offsets = given
        padded, lengths = _padded(values, offsets)
        return Ragged(padded, lengths, lambda rows: (_flat(rows, lengths), offsets))
    return None


def rows_of(given: Any, m: int) -> Any:
    """Return lists of any kind as rows of m places, a pair of them as a pair of rows, else what is given."""
    ragged = ragged_of(given)
    if ragged is not None:
        return ragged.padded_to(m)
    return tuple(rows_of(each, m) for each in given) if isinstance(given, tuple | list) else given


def _padded(values: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    lengths = offsets.diff()
    longest = max(1, int(lengths.max())) if lengths.numel() else 1
    place = torch.arange(longest, device=values.device)
    is_entry = place < lengths.unsqueeze(-1)
    index = torch.where(is_entry, offsets[:-1].unsqueeze(-1) + place, 0)
    rows = values[index] if values.numel() else values.new_zeros(index.shape)
    return torch.where(is_entry, rows, 0), lengths


def _flat(rows: Tensor, lengths: Tensor) -> Tensor:
    return rows[torch.arange(rows.shape[1], device=rows.device) < lengths.unsqueeze(-1)]
