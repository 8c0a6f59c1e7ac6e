"""Entries: the parts of a call's tensors that a statistic or a loss takes."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

import torch
from torch import Tensor

from nsc.arguments import integer, is_name
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import Steepness, axis_of, cast, check_dense, kept_or_new
from nsc.operators.ragged import Ragged, ragged_of
from nsc.operators.samples import Arrangement, Lengths, Lists, Mask, arrangement_of, lists_of
from nsc.operators.sorter import Sorter
from nsc.operators.targets import check_labels, check_reduction, check_weight, reduced
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.sizes import Sizes, sorter_for, wires_of
from nsc.wording import argument

if TYPE_CHECKING:
    from typing_extensions import Unpack


class EntryOptions(TypedDict, total=False):
    """Options of statistics: the axis of x, and which entries take part; see `Sorter`."""

    dim: int
    lengths: Lengths
    mask: Mask


class SampleOptions(EntryOptions, total=False):
    """Options of losses: also the weight of each sample, of the shape of x without the axis."""

    weight: Tensor | None


class OrderedOptions(SampleOptions, total=False):
    """Options of losses that a network takes part in: also in how many orders it takes the items."""

    orders: int


class Entries(NamedTuple):
    """The entries of a call's samples that take part, in front of the others.

    Attributes:
        x: as users pass it; lists of different lengths are padded.
        arrangement: the call's arrangement; it has lists.
        counts: (…), how many entries each sample has.
        is_entry: (…, n), which places have an entry, and which ranks there are.
        keys: (…, n), the entries, then +∞; float32 at least.
        lengths: the counts, for the sorter's methods; None: all entries take part, in all samples.
        operator: the sorter of the keys; None: they are not sorted.
        ragged: what x was, if users passed lists of different lengths.
    """

    x: Tensor
    arrangement: Arrangement
    counts: Tensor
    is_entry: Tensor
    keys: Tensor
    lengths: Lengths
    operator: Sorter | None
    ragged: Ragged | None

    @property
    def sorter(self) -> Sorter:
        """The sorter of the keys."""
        assert self.operator is not None
        return self.operator


def check_operator(caller: str, operator: object) -> None:
    """Raise OperandTypeError for an operator that is neither a Sorter nor Sizes."""
    if not isinstance(operator, Sorter | Sizes):
        raise OperandTypeError(
            f"{caller}: the operator must be a Sorter or Sizes, got {type(operator).__name__}"
        )


def check_known(caller: str, name: str, value: object, known: Collection[str]) -> None:
    """Raise OperandError for an argument that is none of the known names."""
    if not is_name(value, known):
        raise OperandError(f"{caller}: no {name} {value!r}; known: {', '.join(known)}")


def entries_of(
    caller: str,
    operator: Sorter | Sizes | None,
    name: str,
    x: Any,
    dim: int = -1,
    lengths: Lengths = None,
    mask: Mask = None,
) -> Entries:
    """Check an operator, None if nothing is sorted, and the tensors of a call; return its entries.

    x, dim, lengths and mask are as the operator's methods take them; `name` is the name of x, for messages.
    """
    if operator is not None:
        check_operator(caller, operator)
    ragged = None if isinstance(operator, Sorter) else ragged_of(caller, name, x)
    if ragged is not None:
        ragged.check_alone(caller, lengths, mask)
        x, lengths = ragged.padded, ragged.lengths
    check_dense(caller, name, x)
    if not x.dtype.is_floating_point:
        raise OperandTypeError(
            f"{caller}: {name} must have a floating-point dtype, got {x.dtype}: convert with .float()"
        )
    sorter = None if operator is None else sorter_for(operator, caller, x, dim)
    if sorter is not None and str(x.dtype).removeprefix("torch.") not in sorter.kernel.serves:
        dtypes = argument("dtypes", ("float32", "float64"))
        raise OperandTypeError(
            f"{caller}: {name} of {x.dtype} are not served: make the layer or the operator with {dtypes}, or "
            "convert them with .float()"
        )
    axis = axis_of(caller, x, operator.n if isinstance(operator, Sorter) else None, dim)
    wires = None if sorter is None else wires_of(sorter, x.shape[axis] if x.dim() else 1)
    arrangement = arrangement_of(caller, x, axis, lengths, mask, 0, wires)
    lists = arrangement.lists
    if lists is None:
        *samples, n = arrangement.at_end(x, 0).shape
        lists = Lists(torch.full(samples, n, dtype=torch.int64, device=x.device), n, None)
    lengths = None if arrangement.lists is None else lists.counts
    arrangement = arrangement._replace(lists=lists)
    keys = cast(arrangement.keys(x), torch.promote_types(x.dtype, torch.float32))
    return Entries(x, arrangement, lists.counts, lists.is_entry, keys, lengths, sorter, ragged)


class Labelled(NamedTuple):
    """The entries of a call of a loss, with their labels.

    Where a network takes the items in several orders, all tensors but the weight have an axis of orders in
    front: to the operator each order is a sample of its own.

    Attributes:
        scores: the entries.
        labels: (…, n), their targets or relevances in float64, then 0.
        weight: (…), the weight of each sample; None: all the same.
        reduction: over samples.
        orders: in how many orders the network takes the items.
    """

    scores: Entries
    labels: Tensor
    weight: Tensor | None
    reduction: str
    orders: int

    @property
    def positions(self) -> Tensor:
        """The position from the top of each rank, (…, n): 1 for the last, below 1 for none."""
        ranks = torch.arange(self.labels.shape[-1], device=self.labels.device)
        return self.scores.counts.unsqueeze(-1) - ranks

    def check_relevance(self, caller: str) -> None:
        """Raise OperandError where relevances of plain tensors of the CPU are negative."""
        if _is_seen(self.labels) and bool((self.labels < 0).any()):
            raise OperandError(
                f"{caller}: relevance must be 0 or more, found {self.labels.min().item():g}: leave padding "
                "out with lengths= or mask=; to grades below 0 add a number"
            )

    def routed(self, column: Tensor, steepness: Steepness) -> Tensor:
        """Return a column (…, n) sorted by the scores, 0 at ranks that a sample does not have."""
        of, column = self.scores, column.unsqueeze(-1)
        return of.sorter.route(of.keys, column, steepness, lengths=of.lengths).squeeze(-1)

    def soft_ranks(self, steepness: Steepness) -> Tensor:
        """Return the soft ranks of the scores, (…, n), 0 where there is no entry."""
        return self.scores.sorter.rank(self.scores.keys, steepness, lengths=self.scores.lengths)

    def loss(self, losses: Tensor, is_counted: Tensor) -> Tensor:
        """Return the losses (…) of samples, reduced as users ask; a sample that does not count has 0."""
        if self.orders > 1:
            losses, is_counted = losses.mean(0), is_counted[0]
        weight = is_counted.to(losses.dtype)
        if self.weight is not None:
            weight = weight * self.weight
        return reduced(losses, weight, self.reduction, self.scores.x)


def labelled(
    caller: str,
    operator: Sorter | Sizes | None,
    scores: Tensor,
    name: str,
    labels: Tensor,
    reduction: str,
    *,
    weight: Tensor | None = None,
    orders: int = 1,
    **options: Unpack[EntryOptions],
) -> Labelled:
    """Check what all losses take; `name` names the labels."""
    orders = check_orders(caller, orders)
    entries = entries_of(caller, operator, "scores", scores, **options)
    scores = entries.x
    if entries.ragged is not None:
        labels = entries.ragged.rows_of(caller, name, labels)
    check_labels(caller, scores, name, labels, takes_bool=True)
    check_reduction(caller, reduction)
    if weight is not None:
        check_weight(caller, scores, weight, entries.keys.shape[:-1])
    moved = entries.arrangement.at_end(labels.detach().double(), 0)
    if entries.operator is not None:
        entries, moved = _in_orders(entries, moved, orders)
    if _is_seen(moved) and bool(moved.isnan().any()):
        raise OperandError(f"{caller}: {name} must hold numbers, got NaN")
    return Labelled(entries, moved, weight, reduction, orders)


def check_orders(caller: str, orders: object) -> int:
    """Return a user's number of orders; raises OperandError unless it is a whole number of at least 1."""
    number = integer(f"{caller}: orders", orders, OperandError)
    if number < 1:
        raise OperandError(f"{caller}: orders must be 1 or more, got {number}")
    return number


def _in_orders(entries: Entries, labels: Tensor, orders: int) -> tuple[Entries, Tensor]:
    """Return entries and labels in fixed orders, with an axis of orders in front if there are several.

    Some networks leave equal scores about where they are. A model that says nothing would look good, or bad,
    on a list that is stored by its relevance, and learn from that.
    """
    shape = entries.keys.shape if orders == 1 else (orders, *entries.keys.shape)
    order = kept_or_new(_orders, entries.keys, shape[-1], orders)

    def taken(each: Tensor) -> Tensor:
        if orders == 1:
            return each.index_select(-1, order[0])
        places = order.reshape(orders, *(1 for _ in shape[2:]), shape[-1])
        return each.expand(shape).gather(-1, places.expand(shape))

    keys, labels, counts = taken(entries.keys), taken(labels), entries.counts.expand(shape[:-1])
    lengths = None
    if entries.lengths is not None:
        lists = lists_of("", keys, None, taken(entries.is_entry))
        assert lists is not None
        keys, labels, lengths = lists.in_front(keys, math.inf), lists.in_front(labels, 0), counts
    is_entry = entries.is_entry.expand(shape)
    return entries._replace(keys=keys, counts=counts, is_entry=is_entry, lengths=lengths), labels


def _orders(device: torch.device, n: int, count: int) -> Tensor:
    """Return orders of 0 … n-1, (count, n): first the one that spreads neighbours, then random ones.

    The first is by the fractional part of i/φ + 1/2, in 32 bits; φ is the golden ratio. Neighbours, and the
    first few items too, are spread evenly over any number of places, and the first item is in the middle.
    Each other one is by a hash of these bits and of its number.

    Source: Knuth, The Art of Computer Programming 3, section 6.4, Fibonacci hashing; the 32-bit finaliser of
    MurmurHash3, Appleby.
    """
    numbers = torch.arange(count, device=device).unsqueeze(-1)
    spread = (torch.arange(n, device=device) * 2654435769 + 2**31) % 2**32
    mixed = (spread + numbers * 0x85EBCA6B) % 2**32
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        mixed = (mixed ^ (mixed >> shift)) * factor % 2**32
    return torch.where(numbers == 0, spread, mixed ^ (mixed >> 16)).argsort(-1)


def _is_seen(tensor: Tensor) -> bool:
    """Return whether values can be looked at: a GPU would have to wait, and a trace has none."""
    return way_of(tensor) is PLAIN and not tensor.is_cuda
