"""Selector: a network compiled for some ranks alone, as torch users call it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, overload

import torch
from torch import Tensor

from nsc.arguments import flag, is_name
from nsc.contract.routings import LOSSES
from nsc.errors import OperandError, OperandTypeError, PackageError
from nsc.operators.arrangement import Arrangement
from nsc.operators.exact import Sorted
from nsc.operators.lists import Lengths, Mask, gathered, last_of
from nsc.operators.operands import Steepness, kept_or_new
from nsc.operators.operator import Operator
from nsc.operators.rows import check_shares, losses_of_rows
from nsc.operators.sharding import Axes, by_samples
from nsc.operators.spread import select_of_spread
from nsc.operators.straight import straight, unit_rows
from nsc.operators.targets import RowLossOptions, check_reduction, check_weight, reduced

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Selector(Operator):
    """Differentiable and exact selection of some ranks of n values: the largest, a median, any others.

    In every method x has n values along the axis `dim`, the last by default, and any other axes. What is
    selected takes the place of that axis, in the order of `ranks`. Rows of P have their two axes at the end,
    behind the other axes of x in their order. Dtypes, steepness, ties, NaN and infinities are those of
    `Sorter`; None as steepness is 2 × the depth of the restricted network. At the same steepness soft values
    and rows of P are those of the whole network, unless redundant comparators were left out. `best` may be
    another network for each choice of ranks, with other soft values than the `best` that sorts.
    Cost per sample: O(size) for values, O(k·size) for the rows of k ranks.

    `lengths` and `mask` say which values of each sample take part, and `straight_through` gives the exact
    results with the gradients of the soft ones, as in `Sorter`. The ranks are then those among these values,
    0 the smallest; where the largest alone are selected, as by `nsc.top_k`, they count from the largest. Of a
    rank that fewer values do not have, the result is `fill`, the row 0, and the index -1. A call costs what
    one with all values does.

    >>> import nsc
    >>> nsc.compile("bitonic", 8, select=nsc.top_k(2))
    Selector(bitonic_8_top_2: n=8, size=19, depth=6)
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files, of a network that was compiled for some ranks.

        Raises:
            PackageError: files that no `nsc compile` of this version wrote, or of a network that sorts.
        """
        super().__init__(files)
        if self._kernel.outputs is None:
            raise PackageError(f"{self.name} sorts all its values: it is a Sorter, see nsc.load")
        self._outputs = self._kernel.outputs
        self._largest_alone = set(self.ranks) == set(range(self.n - len(self.ranks), self.n))

    @property
    def ranks(self) -> tuple[int, ...]:
        """The selected ranks, in the order of the results; 0 is the smallest value."""
        return self._outputs.ranks

    @by_samples(Axes.OF_X)
    def select(
        self,
        x: Tensor,
        steepness: Steepness = None,
        *,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
        straight_through: bool = False,
    ) -> Tensor:
        """Return the relaxed values of the ranks, (…, k); op(x) is op.select(x). Errors as `Sorter.sort`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.select(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([0., 3.])
        """
        arranged = self._arranged("select", x, dim, lengths, mask, fill)
        keys = self._keys(arranged, x)
        values = self._selected(self._run("select", keys, steepness, None, "none")[0])
        if self._is_straight(straight_through):
            values = straight(values, keys.gather(-1, self._exact_places(arranged, keys)))
        return self._of_ranks(arranged, values)

    __call__ = select

    @by_samples(Axes.OF_X, Axes.FIRST)
    def select_with_rows(
        self,
        x: Tensor,
        steepness: Steepness = None,
        *,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
        straight_through: bool = False,
    ) -> tuple[Tensor, Tensor]:
        """Return the relaxed values of the ranks and their rows of P.

        Returns:
            values (…, k) and rows (…, k, n): rows[i, c] is the weight of input c at rank ranks[i], and
            values = rows @ x.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> values, rows = op.select_with_rows(torch.tensor([3.0, 1.0, 2.0, 0.0]))
        >>> rows.argmax(-1)
        tensor([3, 0])
        """
        arranged = self._arranged("select_with_rows", x, dim, lengths, mask, fill)
        keys, is_straight = self._keys(arranged, x), self._is_straight(straight_through)
        values, rows = self._values_and_rows("select_with_rows", arranged, keys, steepness, is_straight)
        return self._of_ranks(arranged, values), rows

    def _values_and_rows(
        self, method: str, arranged: Arrangement, keys: Tensor, steepness: Steepness, is_straight: bool
    ) -> tuple[Tensor, Tensor]:
        """Return the values of the ranks, as the kernel takes them, and their rows as users do."""
        found, columns = self._run(method, keys, steepness, self._wires(keys), "rows", is_shared=True)
        values, rows = self._selected(found), columns.transpose(-1, -2)
        if is_straight:
            places = self._exact_places(arranged, keys)
            values, rows = (
                straight(values, keys.gather(-1, places)),
                straight(rows, unit_rows(places, self.n)),
            )
        if arranged.lists is not None:
            rows = arranged.of_both(arranged.lists.of_rows(rows, self._is_there(arranged)))
        return values, rows

    @by_samples(Axes.OF_X)
    def route(
        self,
        x: Tensor,
        payload: Tensor,
        steepness: Steepness = None,
        *,
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
        straight_through: bool = False,
    ) -> Tensor:
        """Return the ranks' rows of P @ payload: what is softly selected of a payload by the keys x.

        Args:
            x: (…, n) keys.
            payload: (…, n, m): the shape of x, then m columns.
            steepness: see the class.
            dim: the axis of x, and of the payload, to sort along.
            lengths, mask, fill, straight_through: see the class.

        Returns:
            (…, k, m), of the wider dtype of x and payload; differentiable in both.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3)), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> op.route(x, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), steepness=50.0).round().squeeze(-1)
        tensor([40., 10.])
        """
        arranged = self._arranged("route", x, dim, lengths, mask, fill)
        self._operands.check_payload("route", x, payload)
        keys, columns = self._keys(arranged, x), arranged.at_end(payload, 0, 1)
        routed = self._run("route", keys, steepness, columns, "route")[1].index_select(-2, self._wires(x))
        if self._is_straight(straight_through):
            places = self._exact_places(arranged, keys).unsqueeze(-1).expand(routed.shape)
            routed = straight(routed, columns.gather(-2, places))
        return self._of_ranks(arranged, routed, 1)

    @overload
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: Literal[False] = False,
        index_dtype: torch.dtype = torch.int64,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
    ) -> Sorted: ...

    @overload
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: Literal[True],
        index_dtype: torch.dtype = torch.int64,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
    ) -> Tensor: ...

    @by_samples(Axes.OF_X, spread=select_of_spread)
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: bool = False,
        index_dtype: torch.dtype = torch.int64,
        lengths: Lengths = None,
        mask: Mask = None,
        fill: float = 0,
    ) -> Sorted | Tensor:
        """Return the exact values of the ranks and their indices, as torch.sort(stable=True) has them.

        Arguments as in `Sorter.hard_sort`; what is selected takes the place of the axis `dim`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.hard_select(torch.tensor([3, 1, 2, 0])).values
        tensor([0, 3])
        """
        if lengths is None and mask is None:
            return self._exact("hard_select", x, dim, False, values_only, index_dtype)
        arranged = self._arranged("hard_select", x, dim, lengths, mask, fill)
        assert arranged.lists is not None
        keys = arranged.at_end(x, last_of(x.dtype, descending=self._largest_alone))
        behind = self._behind(arranged)
        if behind is not None:
            keys = gathered(keys, behind)
        values, indices = self._exact("hard_select", keys, -1, False, False, index_dtype)
        selected = self._of_ranks(arranged, values)
        if flag("values_only", values_only, OperandTypeError):
            return selected
        if behind is not None:
            indices = behind.gather(-1, indices.long()).to(index_dtype)
        places = arranged.lists.places(indices)
        return Sorted(selected, self._of_ranks(arranged.with_fill(-1), places))

    @by_samples(Axes.FIRST)
    def loss(
        self,
        name: str,
        x: Tensor,
        target: Tensor,
        steepness: Steepness = None,
        *,
        weight: Tensor | None = None,
        reduction: str = "mean",
        dim: int = -1,
        lengths: Lengths = None,
        mask: Mask = None,
    ) -> Tensor:
        """Return a loss of the rows of P against what they should be, such as another operator's rows.

        Args:
            name: cross_entropy or binary_cross_entropy; the methods of these names say what they are.
            x: (…, n) scores.
            target: (…, k, n) floating-point numbers in 0 … 1, what each input should have of each rank, in
                the order of the rows of `select_with_rows`. It may need a gradient.
            steepness: see the class.
            weight: what each sample counts, of the shape of x without its sorted axis.
            reduction: over samples: mean, sum, or none for the loss of each.
            dim: the axis of x to sort along; rows have their two axes at the end.
            lengths, mask: which inputs take part, see the class. Ranks that a sample does not have do not
                count, nor does a sample of none.

        Returns:
            A 0-d tensor, or without reduction one of the shape of the samples; its dtype is as in
            `Sorter.loss`. The rows are kept for the gradient: O(k·n) numbers for each sample.

        Raises:
            OperandError: an unknown loss, or a target that is none.

        >>> import nsc
        >>> op, teacher = nsc.compile("bitonic", 4, select=nsc.top_k(2)), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> target = op.select_with_rows(teacher)[1]
        >>> bool(op.cross_entropy(teacher, target) < op.cross_entropy(-teacher, target))
        True
        """
        if not is_name(name, LOSSES):
            raise OperandError(f"{self.name}.loss: no loss {name!r}; known: {', '.join(LOSSES)}")
        caller = f"{self.name}.{name}"
        arranged = self._arranged(name, x, dim, lengths, mask)
        keys = self._keys(arranged, x)
        samples = keys.shape[:-1]
        check_shares(caller, x, target, (*samples, len(self.ranks), self.n))
        check_reduction(caller, reduction)
        if weight is not None:
            check_weight(caller, x, weight, samples)
        rows = self._values_and_rows(name, arranged, keys, steepness, is_straight=False)[1]
        counted, lists = None, arranged.lists
        if lists is not None:
            is_entry = lists.of_entries(lists.is_entry, 0)
            counted = self._is_there(arranged).unsqueeze(-1) & is_entry.unsqueeze(-2)
            has_entries = counted.flatten(-2).any(-1).to(rows.dtype)
            weight = has_entries if weight is None else weight * has_entries
        error_free = self._kernel.error_free
        losses = losses_of_rows(name, rows, target.to(rows.dtype), counted, error_free)
        return reduced(losses, weight, reduction, x)

    def cross_entropy(
        self, x: Tensor, target: Tensor, steepness: Steepness = None, **options: Unpack[RowLossOptions]
    ) -> Tensor:
        """Return the mean over rows of Σ_c -S[r, c] log P[r, c], for a target S; see `loss`.

        Logarithms are cut, and keep their digits near 0, as in `Sorter.cross_entropy`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.top_k(1))
        >>> op.cross_entropy(torch.tensor([3.0, 1.0, 2.0, 0.0]), torch.tensor([[1.0, 0.0, 0.0, 0.0]])) < 0.1
        tensor(True)
        """
        return self.loss("cross_entropy", x, target, steepness, **options)

    def binary_cross_entropy(
        self, x: Tensor, target: Tensor, steepness: Steepness = None, **options: Unpack[RowLossOptions]
    ) -> Tensor:
        """Return the mean over entries of -S log P - (1 - S) log (1 - P), for a target S; see `loss`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.top_k(1))
        >>> target = torch.tensor([[0.5, 0.0, 0.5, 0.0]])
        >>> op.binary_cross_entropy(torch.tensor([3.0, 1.0, 3.0, 0.0]), target) < 0.4
        tensor(True)
        """
        return self.loss("binary_cross_entropy", x, target, steepness, **options)

    def _keys(self, arranged: Arrangement, x: Tensor) -> Tensor:
        """Return x as a kernel takes it; what does not take part is where nothing is selected."""
        return arranged.at_end(x, -math.inf) if self._largest_alone else arranged.keys(x)

    def _of_ranks(self, arranged: Arrangement, result: Tensor, columns: int = 0) -> Tensor:
        """Return a result with a number for each selected rank, or with so many axes of columns behind."""
        if arranged.lists is None:
            return arranged.of_ranks(result, columns)
        return arranged.selected(result, self._is_there(arranged), columns)

    def _is_there(self, arranged: Arrangement) -> Tensor:
        """Return which of the ranks each sample has, (…, k)."""
        assert arranged.lists is not None
        counts = arranged.lists.counts.unsqueeze(-1)
        ranks = kept_or_new(_tensor, counts, self.ranks)
        return (self.n - 1 - ranks if self._largest_alone else ranks) < counts

    def _behind(self, arranged: Arrangement) -> Tensor | None:
        """Return places (…, n) with the entries that take part behind the others; None: in front is right.

        Of equal numbers the first ones are the smaller ones. Where the largest are selected, those must be of
        entries that do not take part.
        """
        if arranged.lists is None or not self._largest_alone:
            return None
        counts = arranged.lists.counts.unsqueeze(-1)
        return (torch.arange(self.n, device=counts.device) + counts) % self.n

    def _exact_places(self, arranged: Arrangement, keys: Tensor) -> Tensor:
        """Return where the values of the ranks are among the keys, (…, k)."""
        behind = self._behind(arranged)
        if behind is None:
            order = keys.argsort(stable=True, dim=-1)
        else:
            order = behind.gather(-1, keys.gather(-1, behind).argsort(stable=True, dim=-1))
        return order.index_select(-1, kept_or_new(_tensor, keys, self.ranks))

    def _selected(self, values: Tensor) -> Tensor:
        return values.index_select(-1, self._wires(values))

    def _wires(self, like: Tensor) -> Tensor:
        """Return the wires of the ranks on a tensor's device."""
        return kept_or_new(_tensor, like, self._outputs.wires)


def _tensor(device: torch.device, values: tuple[int, ...]) -> Tensor:
    return torch.tensor(values, device=device)
