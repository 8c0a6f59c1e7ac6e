"""Sorter: a compiled sorting network as torch users call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import torch
from torch import Tensor

from nsc.arguments import is_name
from nsc.contract.routings import LOSSES, ROUTING_OF
from nsc.errors import OperandError, PackageError
from nsc.operators.classes import classes_of
from nsc.operators.exact import Sorted
from nsc.operators.operands import Steepness, as_loss, k_of, kept_or_new, tensor_of
from nsc.operators.operator import Operator
from nsc.operators.samples import ListOptions, SortOptions, arranged, by_samples
from nsc.operators.sharding import Axes, loss_of_group
from nsc.operators.targets import (
    Given,
    LossOptions,
    Target,
    check_given,
    check_reduction,
    operand_of,
    reduced,
)
from nsc.runtime.dispatch import relaxed
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.relaxed.call import NO_CLASSES, Call

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup
    from typing_extensions import Unpack


class Sorter(Operator):
    """Differentiable and exact sorting of n values through one compiled network.

    In every method x has n values along the axis `dim`, the last by default, which is sorted ascending, and
    any other axes. Shapes are written for the last axis: x is (…, n). Values and ranks have the sorted axis
    where x has it. P and its rows have their two axes at the end, behind the other axes of x in their order.
    A tensor without axes is one value. Results keep dtype and device; bfloat16 and float16 are computed in
    float32. Under autocast losses are float32, as torch's; all else keeps its dtype, as torch.sort does.

    steepness, in units of x^(λ − 1), is a float or a tensor, which may need a gradient. A tensor has no axes,
    or a shape that expands to the shape of the samples: a steepness for each sample. None means 2 × depth,
    the paper's choice.

    `lengths`, integers of the shape of x without its sorted axis, says how many values of each sample take
    part: the first ones. `mask`, booleans of the shape of x, says which values take part. The other values
    count as +∞, with which a value of +∞ ties. They do not matter, NaN included, and have no gradient. P is 0
    in their columns and in the rows of ranks that a sample does not have; other results have `fill` there. A
    batch is cut into classes by the numbers of values, so that a short list costs what its class costs.

    `straight_through` gives the exact results of torch.sort(stable=True) with the gradients of the whole soft
    network. (The error-free form differs: each comparator is exact in the forward pass, and its gradient is a
    soft comparator's at the exact values.)

    Every value compared with NaN becomes NaN. Infinite values sort exactly and have no gradient. Ties mix
    half and half; in the error-free form they keep their places. In all but `hard_sort` numbers below the
    smallest normal one (1.2e-38 in float32) count as zero.

    Cost per sample: O(size) for values, O(m·size) for m columns of payload, less than O(n·size) for P.

    In the error-free form a gradient passes each comparator as if it were soft. The sum depends on the
    direction of the routing: gradients of `rank` and of the rows of `topk` differ from the gradients of the
    same rows of P.

    Operators pickle, copy and compare by the content of their package.

    >>> import nsc
    >>> op = nsc.compile("bitonic", 4)
    >>> op
    Sorter(bitonic_4: n=4, size=6, depth=3)
    """

    def __init__(self, files: Mapping[str, str]) -> None:
        """Take a generated package's files: name to text, the manifest among them.

        Raises:
            PackageError: files that no `nsc compile` of this version wrote, or of a network that was
                compiled for some ranks alone.
        """
        super().__init__(files)
        if self._kernel.outputs is not None:
            raise PackageError(f"{self.name} selects some ranks: it is a Selector, see nsc.load")

    @by_samples(Axes.OF_X)
    def sort(self, x: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]) -> Tensor:
        """Return the relaxed sorted values, of the shape of x; op(x) is op.sort(x).

        Raises:
            OperandError: no such axis, another number of values along it, or a wrong device or steepness.
            OperandTypeError: a dtype that the operator does not take, or an argument of another type.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> op.sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([0., 1., 2., 3.])
        """
        arrangement = arranged(self._operands, "sort", x, **options)
        values, _ = self._run("sort", x, arrangement, steepness, "none")
        return arrangement.of_ranks(values)

    __call__ = sort

    @by_samples(Axes.OF_X, Axes.FIRST)
    def sort_with_permutation(
        self, x: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]
    ) -> tuple[Tensor, Tensor]:
        """Return the relaxed sorted values and the relaxed permutation matrix P.

        Returns:
            values (…, n) and P (…, n, n), doubly stochastic: P[r, c] is the weight of input c at
            rank r, and values = P @ x.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> values, P = op.sort_with_permutation(x)
        >>> P.argmax(-1), torch.allclose(P @ x, values)
        (tensor([3, 1, 2, 0]), True)
        """
        arrangement = arranged(self._operands, "sort_with_permutation", x, **options)
        values, permutation = self._run(
            "sort_with_permutation", x, arrangement, steepness, "permutation", None
        )
        return arrangement.of_ranks(values), arrangement.of_rows(permutation)

    @by_samples(Axes.OF_X)
    def rank(self, x: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]) -> Tensor:
        """Return the soft ranks Pᵀ (0, …, n-1), of the shape of x: 0 for the smallest; P is never formed.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> op.rank(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([3., 1., 2., 0.])
        """
        arrangement = arranged(self._operands, "rank", x, **options)
        ranks = kept_or_new(_all_ranks, x, self.n, x.dtype if x.is_floating_point() else torch.int64)
        _, columns = self._run("rank", x, arrangement, steepness, "transposed", ranks)
        return arrangement.of_entries(columns.squeeze(-1))

    @by_samples(Axes.OF_X)
    def route(
        self, x: Tensor, payload: Tensor, steepness: Steepness = None, **options: Unpack[ListOptions]
    ) -> Tensor:
        """Return P @ payload: the payload softly sorted by the keys x, differentiable in both.

        The payload is (…, n, m): the shape of x, then m columns. The result has its shape, and the wider
        dtype of x and payload.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> op.route(x, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), steepness=50.0).round().squeeze(-1)
        tensor([40., 20., 30., 10.])
        """
        arrangement = arranged(self._operands, "route", x, **options)
        self._operands.check_payload("route", x, payload)
        rows = arrangement.at_end(payload, 0, 1)
        _, routed = self._run("route", x, arrangement, steepness, "route", rows)
        return arrangement.of_ranks(routed, 1)

    @by_samples(Axes.OF_X, Axes.FIRST)
    def topk(
        self, x: Tensor, k: int, steepness: Steepness = None, **options: Unpack[ListOptions]
    ) -> tuple[Tensor, Tensor]:
        """Return the k largest values, largest first as torch.topk, and their rows of P.

        Returns:
            values (…, k) and rows (…, k, n); the rows are computed alone, P is never formed.

        Raises:
            OperandError: k outside 1 … n.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> values, rows = op.topk(x, 2, steepness=50.0)
        >>> values.round(), rows.argmax(-1)
        (tensor([3., 2.]), tensor([0, 2]))
        """
        count = k_of(f"{self.name}.topk", k, self.n)
        arrangement = arranged(self._operands, "topk", x, **options)
        lists, is_there = arrangement.lists, None
        if lists is None:
            ranks = kept_or_new(_largest_ranks, x, self.n, count)
        else:
            largest = lists.counts.unsqueeze(-1) - 1 - torch.arange(count, device=x.device)
            ranks, is_there = largest.clamp_min(0), largest >= 0
        values, rows = self._run("topk", x, arrangement, steepness, "rows", ranks, of_largest=True)
        return arrangement.of_ranks(values, is_there=is_there), arrangement.of_rows(rows, is_there)

    @by_samples(Axes.OF_X)
    def top_k_weights(
        self, x: Tensor, k: int, steepness: Steepness = None, **options: Unpack[ListOptions]
    ) -> Tensor:
        """Return how much of each value is among the k largest, of the shape of x, in 0 … 1.

        It is the sum of the rows that `topk` returns, for the cost of one column. The weights of a sample add
        up to k, or to the number of its values if fewer take part.

        Raises:
            OperandError: k outside 1 … n.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> op.top_k_weights(torch.tensor([3.0, 1.0, 2.0, 0.0]), 2, steepness=50.0).round()
        tensor([1., 0., 1., 0.])
        """
        count = k_of(f"{self.name}.top_k_weights", k, self.n)
        arrangement = arranged(self._operands, "top_k_weights", x, **options)
        if arrangement.lists is None:
            is_top = kept_or_new(_is_of_largest, x, self.n, count, x.dtype)
        else:
            is_top = arrangement.lists.is_of_largest(count).to(x.dtype).unsqueeze(-1)
        _, columns = self._run(
            "top_k_weights", x, arrangement, steepness, "transposed", is_top, of_largest=True
        )
        return arrangement.of_entries(columns.squeeze(-1))

    @by_samples(Axes.FIRST)
    def loss(
        self,
        name: str,
        x: Tensor,
        target: Target | None = None,
        steepness: Steepness = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return a loss of P against a target; P is never stored.

        Args:
            name: cross_entropy or binary_cross_entropy; the methods of these names define them.
            x: (…, n) scores.
            target: one of

                - (…, n) integers, the true rank 0 … n-1 of each input, or -100 for an input that does not
                  count;
                - a pair of such integers, the first and the last of the ranks that each input may have;
                - (…, n, n) floating-point numbers, what P should be: a row for each rank, a column for
                  each input. It may need a gradient.
            steepness: see the class.
            relevance: (…, n), grades in place of the target: the highest comes last. Inputs of equal
                relevance share their ranks: each may have any of them.
            weight: the weight of each sample, of the shape of x without its sorted axis, or the weight of
                each input, of the shape of x. Losses are divided by the sum of the weights.
            label_smoothing: ε in 0 … 1, for a target of ranks. Every one of a sample's m ranks has the share
                ε / m of an input, and the true rank 1 - ε more, as in torch.nn.CrossEntropyLoss. These shares
                take O(n²) of memory per sample.
            reduction: over samples: mean, sum, or none for the loss of each sample.
            dim: the axis of x, and of target, relevance and weight, to sort along.
            lengths, mask: which inputs take part, see the class. A sample without inputs does not count.
            group: processes that make this call with the same operands, and share out the columns of P. Each
                gets the whole loss and its whole gradients. The loss takes one all-reduce, its gradients
                another.

        Returns:
            A 0-d tensor, or without reduction one of the shape of the samples. It has the dtype of x, under
            autocast at least float32. Samples and inputs that do not count are not in the mean, and a mean
            over nothing is 0.

        Raises:
            OperandError: an unknown loss, or a target that does not fit.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> right, wrong = torch.tensor([3, 1, 2, 0]), torch.arange(4)
        >>> bool(op.loss("cross_entropy", x, right) < op.loss("cross_entropy", x, wrong))
        True
        >>> grades = torch.tensor([2.0, 0.0, 2.0, 0.0])
        >>> bool(op.loss("cross_entropy", x, relevance=grades) < op.loss("cross_entropy", x, right))
        True
        """
        if not is_name(name, LOSSES):
            raise OperandError(f"{self.name}.loss: no loss {name!r}; known: {', '.join(LOSSES)}")
        return self._loss(name, x, target, steepness, **options)

    def _loss(
        self,
        name: str,
        x: Tensor,
        target: Target | None,
        steepness: Steepness,
        relevance: Tensor | None = None,
        weight: Tensor | None = None,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        group: ProcessGroup | None = None,
        **lists: Any,
    ) -> Tensor:
        given = Given(target, relevance, weight, label_smoothing)
        arrangement = arranged(self._operands, name, x, **lists)
        caller = f"{self._operands.name}.{name}"
        moved = arrangement.keys(x)
        samples = moved.shape[:-1]
        check_given(caller, x, moved, given, arrangement)
        check_reduction(caller, reduction)
        way = way_of(x, given.first_tensor, tensor_of(steepness))
        keys = self._operands.keys(name, moved, x.dtype)
        slopes = self._operands.steepness(name, steepness, keys, way, moved)
        is_seen = way is PLAIN and not keys.is_cuda
        payload, form, weight = operand_of(caller, name, given, arrangement, keys.dtype, samples, is_seen)
        routing, classes = ROUTING_OF[name, form], NO_CLASSES
        if arrangement.lists is not None and is_seen:
            classes = classes_of(self._kernel, arrangement.lists.counts.reshape(-1), routing)
        call = Call(keys, slopes, payload, routing, self._kernel, classes)
        if group is not None:
            losses = loss_of_group(caller, group, way, call)
        else:
            is_mean = is_seen and reduction == "mean" and weight is None and x.numel() > 0
            losses = relaxed.loss(way, call, is_mean)
            if is_mean:
                return as_loss(losses, x)
        return reduced(losses.reshape(samples), weight, reduction, x)

    @by_samples(Axes.FIRST)
    def cross_entropy(
        self,
        x: Tensor,
        target: Target | None = None,
        steepness: Steepness = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return the paper's loss, equation 6, averaged over the samples; P is never stored.

        The loss of a sample is

            (1/n) Σ_c -log P[target[c], c]           for ranks
            (1/n) Σ_c -log Σ_r P[r, c]               over the ranks r that input c may have
            (1/n) Σ_c Σ_r -S[r, c] log P[r, c]       for shares S

        Logarithms are cut at -80, and a cut one has no gradient; elsewhere the gradient is the derivative of
        the value. For a probability above 3/4 the logarithm is taken of 1 minus its column's other entries.
        In the error-free form P is 0 or 1, and 1 / max(p, 1e-12) stands for the derivative of log p.

        Arguments, results and errors as in `loss`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> x = torch.tensor([3.0, 1.0, 2.0, 0.0], requires_grad=True)
        >>> op.cross_entropy(x, torch.tensor([3, 2, 1, 0])).backward()
        >>> bool(x.grad[1] < 0 < x.grad[2])  # the second score should grow, the third should fall
        True
        """
        return self._loss("cross_entropy", x, target, steepness, **options)

    @by_samples(Axes.FIRST)
    def binary_cross_entropy(
        self,
        x: Tensor,
        target: Target | None = None,
        steepness: Steepness = None,
        **options: Unpack[LossOptions],
    ) -> Tensor:
        """Return the binary cross entropy between P and the true permutation matrix.

        It is the mean over samples and all n² entries, as in the authors' released code; with lengths or a
        mask over the entries of the inputs that take part. If an input may have g ranks, each is true by 1/g,
        which is the average over the orders of equal inputs. P is never stored. Arguments and errors as in
        `loss`, the cut of logarithms and the error-free form as in `cross_entropy`. For an entry p above 3/4,
        1 - p is the sum of its column's other entries.

        torch.nn.BCELoss on a stored P, and so diffsort, differ where entries are extreme: they cut logarithms
        at -100 and reciprocals at 1e-12, and their 1 - p is 0 for a p that rounds to 1. There their
        gradient is not the derivative of their value.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> bool(op.binary_cross_entropy(x, torch.tensor([3, 1, 2, 0]), steepness=50.0) < 0.01)
        True
        """
        return self._loss("binary_cross_entropy", x, target, steepness, **options)

    @overload
    def hard_sort(
        self, x: Tensor, dim: int = -1, *, values_only: Literal[False] = False, **options: Unpack[SortOptions]
    ) -> Sorted: ...

    @overload
    def hard_sort(
        self, x: Tensor, dim: int = -1, *, values_only: Literal[True], **options: Unpack[SortOptions]
    ) -> Tensor: ...

    @by_samples(Axes.OF_X)
    def hard_sort(
        self, x: Tensor, dim: int = -1, *, values_only: bool = False, **options: Unpack[SortOptions]
    ) -> Sorted | Tensor:
        """Return exactly sorted values and indices, as torch.sort(stable=True).

        Up to 1,024 values it runs the smallest network that nsc has, proved when first used, whatever network
        the operator relaxes. For more values it runs torch.sort.

        Args:
            x: n values along an axis, of any shape: floating-point numbers, integers or bool.
            dim: the axis to sort along.
            descending: whether the largest value comes first. NaN is larger than every number, as in torch:
                it comes first in a descending order. The lower index of equal values comes first in both.
            values_only: whether to return the values alone. This takes a fraction of the time. -0 may then
                come before 0, and NaN may lose its sign.
            index_dtype: torch.int64 or torch.int32.
            lengths, mask: which values take part, see the class. They come first, in either direction.
            fill: the value in the places behind them; the indices there are -1.

        Returns:
            A named tuple of values and indices, of the shape of x; or the values. The gradient of the values
            is torch.sort's.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> values, indices = op.hard_sort(torch.tensor([3, 1, 2, 0]), descending=True)
        >>> values, indices
        (tensor([3, 2, 1, 0]), tensor([0, 2, 1, 3]))
        """
        return self._hard("hard_sort", x, dim, values_only, **options)


def _all_ranks(device: torch.device, n: int, dtype: torch.dtype) -> Tensor:
    """Return the ranks 0 … n-1 as one column of a payload, (n, 1)."""
    return torch.arange(n, dtype=dtype, device=device).unsqueeze(-1)


def _largest_ranks(device: torch.device, n: int, k: int) -> Tensor:
    """Return the ranks of the k largest of n values, the largest first."""
    return torch.arange(n - 1, n - 1 - k, -1, device=device)


def _is_of_largest(device: torch.device, n: int, k: int, dtype: torch.dtype) -> Tensor:
    """Return 1 for the ranks of the k largest of n values, else 0, as one column of a payload, (n, 1)."""
    return (torch.arange(n, device=device) >= n - k).to(dtype).unsqueeze(-1)
