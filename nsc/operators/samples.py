"""Samples: which entries of a call's tensors take part, and how kernels take them.

A kernel takes the sorted axis last, and the entries that take part in front. Results of entries stand where
the entries stand in x; results of ranks have the rank's number as their place.
"""

from __future__ import annotations

import functools
import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, ParamSpec, TypedDict, TypeVar

import torch
from torch import Tensor
from torch.nn.functional import pad

from nsc.arguments import flag, real
from nsc.contract.routings import IGNORED
from nsc.errors import OperandError, OperandTypeError
from nsc.operators.operands import INTEGERS, Operands, cast, check_dense, check_device, whole_range
from nsc.operators.sharding import DTENSORS, Axes, call_sharded, has_dtensor
from nsc.runtime.dispatch.ways import PLAIN, way_of

Lengths = Tensor | None
Mask = Tensor | None
Given = ParamSpec("Given")
Result = TypeVar("Result")


def by_samples(
    *results: Axes, inner: Callable[..., int] | None = None
) -> Callable[[Callable[Given, Result]], Callable[Given, Result]]:
    """Return a decorator that lets methods take DTensors, if they treat samples independently.

    It refuses arguments that a method does not take.

    - A DTensor that is sharded along axes of samples, or a payload along its columns, stays sharded.
    - A DTensor that is sharded along the sorted axis, or partial, is gathered. A loss that takes a group then
      shares out the columns of P.
    - A loss is reduced over the samples of all processes.

    Args:
        results: where the method's results have the axes of samples; the last holds for all further results.
        inner: maps the arguments to the number of last axes that make a sample; None: the axis `dim` makes
            one.
    """

    def decorate(method: Callable[Given, Result]) -> Callable[Given, Result]:
        known = tuple(inspect.signature(method).parameters)
        if known[-1] == "options":  # `**options: Unpack[Kind]`
            kind = method.__annotations__["options"].removeprefix("Unpack[").removesuffix("]")
            known = (*known[:-1], *method.__globals__[kind].__annotations__)

        @functools.wraps(method)
        def call(*args: Given.args, **named: Given.kwargs) -> Result:
            for name in named:
                if name not in known:
                    raise _unknown_argument(method, args, name, known)
            if DTENSORS in sys.modules and has_dtensor(args, named):
                return call_sharded(method, known, results, inner, args, named)  # type: ignore[no-any-return]
            return method(*args, **named)

        return call

    return decorate


def _unknown_argument(
    method: Callable[..., Any], args: tuple[object, ...], name: str, known: Sequence[str]
) -> OperandTypeError:
    owner = getattr(args[0], "name", None) if args else None
    caller = f"{owner}.{method.__name__}" if isinstance(owner, str) else method.__name__
    if name == "descending":
        return OperandTypeError(
            f"{caller} is of the ascending order: flip results along the axis of ranks, or pass -x; "
            "hard_sort takes descending"
        )
    taken = ", ".join(each for each in known if each != "self")
    return OperandTypeError(f"{caller} has no argument {name!r}: it takes {taken}")


class ListOptions(TypedDict, total=False):
    """Options that the relaxed methods of operators take by name; see `Sorter`."""

    dim: int
    lengths: Lengths
    mask: Mask
    fill: float
    straight_through: bool


class SelectOptions(TypedDict, total=False):
    """Options that `Selector.hard_select` takes by name; see `Sorter.hard_sort`."""

    index_dtype: torch.dtype
    lengths: Lengths
    mask: Mask
    fill: float


class SortOptions(SelectOptions, total=False):
    """Options that `Sorter.hard_sort` takes by name."""

    descending: bool


class Lists:
    """The entries of a call's samples that take part, the sorted axis at the end.

    A kernel gets a sample with these entries in front, in their order. The other places hold a number that
    sorts behind them. Entries that take no part do not matter, and get no gradient.

    Args:
        counts: (…) int64, how many entries of each sample take part.
        n: how many values the operator sorts.
        place: (…, n), where each entry goes: entries that take part go to the front; None: they are in front
            already.

    Attributes:
        is_entry: (…, n), which places have an entry once entries are in front; also which ranks there are.
        order: (…, n), the place in the sample of each place in front; None: they are the same.
    """

    def __init__(self, counts: Tensor, n: int, place: Tensor | None) -> None:
        self.counts = counts
        self.is_entry = _is_below(counts, n)
        self.place = place
        self.order = None if place is None else _inverse(place)

    def is_of_largest(self, k: int) -> Tensor:
        """Return which ranks, (…, n), the k largest entries have: all ranks, if a sample has fewer."""
        ranks = torch.arange(self.is_entry.shape[-1], device=self.counts.device)
        return self.is_entry & (ranks >= self.counts.unsqueeze(-1) - k)

    def in_front(self, operand: Tensor, other: float, columns: int = 0) -> Tensor:
        """Return an operand, (…, n) and axes of columns, with the entries in front of a number."""
        if self.order is not None:
            order = _with_columns(self.order, columns).expand(operand.shape)
            operand = gathered(operand, order, -1 - columns)
        return filled(operand, _with_columns(self.is_entry, columns), other)

    def of_rows(self, rows: Tensor, is_there: Tensor | None = None) -> Tensor:
        """Return rows of P, with 0 in rows of ranks that a sample does not have, and in columns of no entry.

        `is_there`, (…, k), says which of k ranks a sample has; None: all n ranks have a row.
        """
        is_rank = self.is_entry if is_there is None else is_there
        return torch.where(is_rank.unsqueeze(-1) & self.is_entry.unsqueeze(-2), rows, 0)


class Arrangement(NamedTuple):
    """How a call's tensors are arranged.

    Attributes:
        axis: the sorted axis, from 0 on; None: the last.
        exists: whether x has it; a tensor without axes is one value.
        lists: which entries take part; None: all.
        fill: the number in results where no entry takes part.
        missing: how many wires the kernel has beyond the values of x, which the lists leave out; None: none.
        is_straight: whether the results are exact, with the gradients of the soft ones.
    """

    axis: int | None
    exists: bool
    lists: Lists | None
    fill: float
    missing: int | None = None
    is_straight: bool = False

    def at_end(self, operand: Tensor, other: float, columns: int = 0) -> Tensor:
        """Return an operand, which has the axes of x and then axes of columns, as a kernel takes it."""
        if self.axis is not None:
            operand = operand.movedim(self.axis, -1 - columns) if self.exists else operand.unsqueeze(0)
        if self.missing is not None:
            operand = pad(operand, [0, 0] * columns + [0, self.missing])
        return operand if self.lists is None else self.lists.in_front(operand, other, columns)

    def keys(self, x: Tensor, other: float = math.inf) -> Tensor:
        """Return x as a kernel takes it. Entries that take no part are +∞, which sorts behind all numbers."""
        return self.at_end(x, other if x.is_floating_point() else 0)

    def target(self, target: Tensor) -> Tensor:
        """Return integers, one for each entry, as a kernel takes them."""
        return self.at_end(cast(target, torch.int64), IGNORED)

    def shares(self, shares: Tensor) -> Tensor:
        """Return shares, (…, n, n) of ranks and entries, as a kernel takes them; 0 where there are none."""
        if self.missing is not None:
            shares = pad(shares, [0, self.missing] * 2)
        if self.lists is None:
            return shares
        if self.lists.order is not None:
            shares = shares.gather(-1, self.lists.order.unsqueeze(-2).expand(shares.shape))
        return self.lists.of_rows(shares)

    def of_ranks(self, result: Tensor, columns: int = 0, is_there: Tensor | None = None) -> Tensor:
        """Return a result, (…, n) of ranks or (…, k) of those that `is_there` is about, arranged as x is."""
        if self.lists is not None:
            is_rank = self.lists.is_entry if is_there is None else is_there
            result = filled(result, _with_columns(is_rank, columns), self.fill)
        return self._back(result if is_there is not None else self._cut(result, columns), columns)

    def of_entries(self, result: Tensor) -> Tensor:
        """Return a result that has a number for each entry, arranged as x is."""
        if self.lists is not None:
            result = filled(result, self.lists.is_entry, self.fill)
            if self.lists.place is not None:
                result = result.gather(-1, self.lists.place)
        return self._back(self._cut(result), 0)

    def of_rows(self, rows: Tensor, is_there: Tensor | None = None) -> Tensor:
        """Return P, or some of its rows, with one column per entry of x. Rank and entry stay its last axes.

        P has 0 for ranks and entries that a sample does not have. `is_there` is about the ranks of rows.
        """
        if self.lists is None:
            return rows
        rows = self._cut(rows, 1) if is_there is None else self.lists.of_rows(rows, is_there)
        if self.lists.place is not None:
            rows = rows.gather(-1, self.lists.place.unsqueeze(-2).expand(rows.shape))
        return self._cut(rows)

    def of_places(self, indices: Tensor) -> Tensor:
        """Return places among the keys, (…, k), as places in the samples."""
        if self.lists is None or self.lists.order is None:
            return indices
        return self.lists.order.gather(-1, indices.long()).to(indices.dtype)

    def _cut(self, result: Tensor, columns: int = 0) -> Tensor:
        """Return a result of ranks, or of entries, without the wires that x has no values for."""
        if self.missing is None:
            return result
        axis = -1 - columns
        return result.narrow(axis, 0, result.shape[axis] - self.missing)

    def _back(self, result: Tensor, columns: int) -> Tensor:
        if self.axis is None:
            return result
        return result.movedim(-1 - columns, self.axis) if self.exists else result.squeeze(0)


# The arrangement of tensors that stay as they are: moving the last axis takes as long as a small sort.
AS_IT_IS = Arrangement(None, True, None, 0)


def arranged(
    operands: Operands,
    method: str,
    x: Tensor,
    dim: int = -1,
    lengths: Lengths = None,
    mask: Mask = None,
    fill: float = 0,
    straight_through: object = False,
) -> Arrangement:
    """Check x, and return how the tensors of a call of an operator's method are arranged."""
    if straight_through is not False and flag("straight_through", straight_through, OperandTypeError):
        return arranged(operands, method, x, dim, lengths, mask, fill)._replace(is_straight=True)
    axis, wires = operands.axis(method, x, dim)
    if type(fill) is not int and type(fill) is not float:
        number = real(fill)
        if number is None:
            raise OperandTypeError(f"{operands.name}.{method}: fill must be a number, got {fill!r}")
        fill = number
    if axis is None and lengths is None and mask is None:
        return AS_IT_IS
    return arrangement_of(f"{operands.name}.{method}", x, axis, lengths, mask, fill, wires)


def arrangement_of(
    caller: str, x: Tensor, axis: int | None, lengths: Any, mask: Any, fill: float, n: int | None = None
) -> Arrangement:
    """Return how the tensors of a call are arranged; `n` wires are at least as many as x has values.

    Raises:
        OperandTypeError, OperandError: as in `lists_of`.
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
    least, most = whole_range(dtype)
    if not (least <= fill <= most and fill == int(fill)):
        raise OperandError(
            f"{caller}: fill must be a whole number in {least} … {most} for {dtype}, got {fill}"
        )


def last_of(dtype: torch.dtype, descending: bool) -> float:
    """Return a number that an exact sort leaves behind all others of a dtype."""
    first, last = (-math.inf, math.nan) if dtype.is_floating_point else whole_range(dtype)
    return first if descending else last


def lists_of(caller: str, x: Tensor, lengths: Any, mask: Any, n: int | None = None) -> Lists | None:
    """Return the lists that a call names; None: all entries take part.

    Args:
        caller: the operator's method, for messages.
        x: (…, m), the sorted axis at the end.
        lengths: integers (…) in 0 … m, how many entries of each sample take part: the first ones; or None.
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
    if not (given.dtype in INTEGERS if mask is None else given.dtype == torch.bool):
        what, way = ("integers", ".long()") if mask is None else ("booleans", ".bool()")
        raise OperandTypeError(f"{caller}: {name} must hold {what}, got {given.dtype}: convert it with {way}")
    if given.shape != shape:
        raise OperandError(
            f"{caller}: {name} must have the shape {tuple(shape)} for x of shape {tuple(x.shape)}, got "
            f"{tuple(given.shape)}"
        )
    check_device(caller, x, name, given)
    if mask is not None:
        if n is not None:
            mask = pad(mask, [0, n - m])
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


# Dtypes that torch does not gather, and dtypes of as many bits that it gathers.
SIGNED = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
# The most places for which a table is kept: it has a row for each count.
_TABLE = 256


def _is_below(counts: Tensor, n: int) -> Tensor:
    """Return which places are below a count, (…, n). A look-up takes a sixth of the comparison's time."""
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
    return torch.where(is_kept, tensor, torch.full_like(tensor, other))  # for bool too


def _with_columns(entries: Tensor, columns: int) -> Tensor:
    return entries.reshape(entries.shape + (1,) * columns)


def gathered(tensor: Tensor, index: Tensor, axis: int = -1) -> Tensor:
    """Return what torch.gather returns, for every dtype."""
    signed = SIGNED.get(tensor.dtype)
    if signed is None:
        return tensor.gather(axis, index)
    return tensor.view(signed).gather(axis, index).view(tensor.dtype)
