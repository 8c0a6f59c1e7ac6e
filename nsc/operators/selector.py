"""Selector: a network compiled for some ranks alone, as torch users call it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor

from nsc.arguments import is_name
from nsc.contract.routings import LOSSES
from nsc.errors import OperandError, OperandTypeError, PackageError
from nsc.operators.exact import Sorted
from nsc.operators.operands import Steepness, check_dense, check_device, kept_or_new
from nsc.operators.operator import Operator, tensor_of_numbers
from nsc.operators.samples import Arrangement, Lengths, ListOptions, Mask, SelectOptions, arranged, by_samples
from nsc.operators.sharding import Axes
from nsc.operators.targets import RowLossOptions, check_reduction, check_weight, reduced
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed import reference

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Selector(Operator):
    """Differentiable and exact selection of some ranks of n values: the largest, a median, any others.

    In every method x has n values along the axis `dim`, the last by default, and any other axes. The results
    of the ranks take the place of that axis, in the order of `ranks`. Rows of P have their two axes at the
    end, behind the other axes of x in their order. Dtypes, steepness, ties, NaN and infinities are as in
    `Sorter`. A steepness of None is 2 × the depth of the restricted network. At the same steepness soft
    values and rows of P equal the whole network's, unless redundant comparators were left out. `best` may be
    another network for each choice of ranks, with other soft values than the `best` that sorts. Cost per
    sample: O(size) for values, O(k·size) for the rows of k ranks.

    `lengths` and `mask` say which values of each sample take part, and `straight_through` gives the exact
    results with the gradients of the soft ones, as in `Sorter`. The ranks then count among these values, 0
    the smallest. Ranks n - 1, n - 2, …, as `nsc.top_k` names them, count from the largest. If a sample has
    too few values for a rank, its result is `fill`, its row 0 and its index -1. Short samples cost as much as
    full ones.

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
        if self._outputs.descends:
            self._descends, self._absent = True, -math.inf

    @property
    def ranks(self) -> tuple[int, ...]:
        """The selected ranks, in the order of the results; 0 is the smallest value."""
        return self._outputs.ranks

    @by_samples(Axes.OF_X)
    def select(self, x: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]) -> Tensor:
        """Return the relaxed values of the ranks, (…, k); op(x) is op.select(x). Errors as `Sorter.sort`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.select(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([0., 3.])
        """
        arrangement = arranged(self._operands, "select", x, **options)
        values, _ = self._run("select", x, arrangement, steepness, "none")
        return arrangement.of_ranks(values, is_there=self._is_there(arrangement))

    __call__ = select

    @by_samples(Axes.OF_X, Axes.FIRST)
    def select_with_rows(
        self, x: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]
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
        arrangement = arranged(self._operands, "select_with_rows", x, **options)
        is_there = self._is_there(arrangement)
        values, rows = self._run("select_with_rows", x, arrangement, steepness, "rows", self._wires(x))
        return arrangement.of_ranks(values, is_there=is_there), arrangement.of_rows(rows, is_there)

    @by_samples(Axes.OF_X)
    def route(
        self, x: Tensor, payload: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]
    ) -> Tensor:
        """Return the ranks' rows of P @ payload: the payload's rows, softly selected by the keys x.

        The payload is (…, n, m): the shape of x, then m columns. The result is (…, k, m), of the wider dtype
        of x and payload; differentiable in both.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3)), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> op.route(x, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), steepness=50.0).round().squeeze(-1)
        tensor([40., 10.])
        """
        arrangement = arranged(self._operands, "route", x, **options)
        self._operands.check_payload("route", x, payload)
        columns = arrangement.at_end(payload, 0, 1)
        _, routed = self._run("route", x, arrangement, steepness, "route", columns)
        return arrangement.of_ranks(routed, 1, self._is_there(arrangement))

    @overload
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: Literal[False] = False,
        **options: Unpack[SelectOptions],
    ) -> Sorted: ...

    @overload
    def hard_select(
        self, x: Tensor, dim: int = -1, *, values_only: Literal[True], **options: Unpack[SelectOptions]
    ) -> Tensor: ...

    @by_samples(Axes.OF_X)
    def hard_select(
        self, x: Tensor, dim: int = -1, *, values_only: bool = False, **options: Unpack[SelectOptions]
    ) -> Sorted | Tensor:
        """Return the exact values of the ranks and their indices, as torch.sort(stable=True) has them.

        Of equal values the lower index comes first in the order in which ranks count: the descending one for
        ranks n - 1, n - 2, …, as `nsc.top_k` names them, else the ascending one. NaN is larger than every
        number, for a median too. Arguments as in `Sorter.hard_sort`; the results take the place of the axis
        `dim`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.hard_select(torch.tensor([3, 1, 2, 0])).values
        tensor([0, 3])
        """
        return self._hard("hard_select", x, dim, values_only, **options)

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
        """Return a loss of the rows of P against a target, such as another operator's rows.

        Args:
            name: cross_entropy or binary_cross_entropy; the methods of these names define them.
            x: (…, n) scores.
            target: (…, k, n) floating-point numbers in 0 … 1, what the rows of `select_with_rows` should be,
                in their order. It may need a gradient.
            weight: the weight of each sample, of the shape of x without its sorted axis.
            reduction: over samples: mean, sum, or none for the loss of each sample.
            lengths, mask: which inputs take part, see the class. Ranks that a sample does not have do not
                count, nor does a sample that has none of the ranks.

        Returns:
            A 0-d tensor, or without reduction one of the shape of the samples; its dtype is as in
            `Sorter.loss`. The rows are kept for the gradient: O(k·n) numbers for each sample.

        Raises:
            OperandError: an unknown loss, or a target that does not fit.

        >>> import nsc
        >>> op, teacher = nsc.compile("bitonic", 4, select=nsc.top_k(2)), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> target = op.select_with_rows(teacher)[1]
        >>> bool(op.cross_entropy(teacher, target) < op.cross_entropy(-teacher, target))
        True
        """
        if not is_name(name, LOSSES):
            raise OperandError(f"{self.name}.loss: no loss {name!r}; known: {', '.join(LOSSES)}")
        caller = f"{self.name}.{name}"
        arrangement = arranged(self._operands, name, x, dim, lengths, mask)
        samples = arrangement.keys(x).shape[:-1]
        _check_shares(caller, x, target, (*samples, len(self.ranks), self.n))
        check_reduction(caller, reduction)
        if weight is not None:
            check_weight(caller, x, weight, samples)
        rows = self._run(name, x, arrangement, steepness, "rows", self._wires(x))[1]
        counted, is_there, lists = None, self._is_there(arrangement), arrangement.lists
        rows = arrangement.of_rows(rows, is_there)
        if lists is not None and is_there is not None:
            is_entry = lists.is_entry if lists.place is None else lists.is_entry.gather(-1, lists.place)
            counted = is_there.unsqueeze(-1) & is_entry.unsqueeze(-2)
            has_entries = counted.flatten(-2).any(-1).to(rows.dtype)
            weight = has_entries if weight is None else weight * has_entries
        error_free = self._kernel.error_free
        losses = _losses_of_rows(name, rows, target.to(rows.dtype), counted, error_free)
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

    def _is_there(self, arrangement: Arrangement) -> Tensor | None:
        """Return which of the ranks each sample has, (…, k); None: each has all."""
        if arrangement.lists is None:
            return None
        counts = arrangement.lists.counts.unsqueeze(-1)
        places = kept_or_new(tensor_of_numbers, counts, self._outputs.places)
        return places < counts

    def _wires(self, like: Tensor) -> Tensor:
        """Return the wires of the ranks on a tensor's device."""
        return kept_or_new(tensor_of_numbers, like, self._outputs.wires)


def _check_shares(caller: str, x: Tensor, target: Any, shape: tuple[int, ...]) -> None:
    """Refuse a target that does not hold shares for the rows of a call, which have a shape."""
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
    check_device(caller, x, "target", target)
    if way_of(target) is PLAIN and not target.is_cuda and not bool(((target >= 0) & (target <= 1)).all()):
        raise OperandError(f"{caller}: target must hold numbers in 0 … 1")


def _losses_of_rows(
    name: str, rows: Tensor, shares: Tensor, counted: Tensor | None, error_free: bool
) -> Tensor:
    """Return the loss of each sample: the mean over its rows, or over all their entries for a loss by rank.

    Rows, shares and which entries there are (None: all) have the shape (…, k, n). A sample without an entry
    has the loss 0.
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
