"""Sorter: a compiled sorting network as torch users call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, overload

import torch
from torch import Tensor

from nsc.arguments import is_name, whole
from nsc.contract.routings import LOSSES
from nsc.errors import OperandError, PackageError
from nsc.operators.exact import Sorted
from nsc.operators.operands import Steepness, as_loss, kept_or_new, tensor_of, unfolded
from nsc.operators.operator import Operator
from nsc.runtime.dispatch import entries
from nsc.runtime.dispatch.ways import way_of


class Sorter(Operator):
    """Differentiable and exact sorting of n values through one compiled network.

    In every method x has n values along the axis `dim`, the last by default, which is sorted ascending, and
    any other axes. Shapes are written for the last axis: x is (…, n). Values and ranks have the sorted axis
    where x has it; P and its rows have their two axes at the end, behind the other axes of x in their order.
    A tensor without axes is one value. Results keep dtype and device; bfloat16 and float16 are computed in
    float32. Under autocast losses are float32, as torch's; all else keeps its dtype, as torch.sort does.
    steepness, in units of x^(λ − 1), is a float or a 0-d tensor, which may need a gradient; None means
    2 × depth, the paper's choice.

    Every value compared with NaN becomes NaN. Infinite values sort exactly and have no gradient. Ties mix
    half and half; in the error-free form they keep their places. In all but `hard_sort` numbers below the
    smallest normal one (1.2e-38 in float32) count as zero. Cost per sample: O(size) for
    values, O(m·size) for m columns of payload, less than O(n·size) for P.

    In the error-free form a gradient passes each comparator as if it were soft. What that adds up to depends
    on the direction of the routing: gradients of `rank` and of the rows of `topk` differ from those of the
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

    def sort(self, x: Tensor, steepness: Steepness = None, *, dim: int = -1) -> Tensor:
        """Return the relaxed sorted values, of the shape of x; op(x) is op.sort(x).

        Raises:
            OperandError: no such axis, another number of values along it, or a wrong device or steepness.
            OperandTypeError: a dtype that the operator does not take, or an argument of another type.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> op.sort(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([0., 1., 2., 3.])
        """
        axis = self._operands.axis("sort", x, dim)
        return axis.back(self._run("sort", axis.at_end(x), steepness, None, "none")[0])

    __call__ = sort

    def sort_with_permutation(
        self, x: Tensor, steepness: Steepness = None, *, dim: int = -1
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
        axis = self._operands.axis("sort_with_permutation", x, dim)
        values, permutation = self._run(
            "sort_with_permutation", axis.at_end(x), steepness, None, "permutation"
        )
        return axis.back(values), permutation

    def rank(self, x: Tensor, steepness: Steepness = None, *, dim: int = -1) -> Tensor:
        """Return the soft ranks Pᵀ (0, …, n-1), of the shape of x: 0 for the smallest; P is never formed.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> op.rank(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([3., 1., 2., 0.])
        """
        axis = self._operands.axis("rank", x, dim)
        ranks = kept_or_new(_all_ranks, x, self.n, x.dtype)
        column = self._run("rank", axis.at_end(x), steepness, ranks, "transposed", is_shared=True)[1]
        return axis.back(column.squeeze(-1))

    def route(self, x: Tensor, payload: Tensor, steepness: Steepness = None, *, dim: int = -1) -> Tensor:
        """Return P @ payload: the payload softly sorted by the keys x, differentiable in both.

        Args:
            x: (…, n) keys.
            payload: (…, n, m): the shape of x, then m columns.
            steepness: see the class.
            dim: the axis of x, and of the payload, to sort along.

        Returns:
            A tensor of the payload's shape, of the wider dtype of x and payload.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> op.route(x, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), steepness=50.0).round().squeeze(-1)
        tensor([40., 20., 30., 10.])
        """
        axis = self._operands.axis("route", x, dim)
        self._operands.check_payload("route", x, payload)
        routed = self._run("route", axis.at_end(x), steepness, axis.at_end(payload, 1), "route")[1]
        return axis.back(routed, 1)

    def topk(self, x: Tensor, k: int, steepness: Steepness = None, *, dim: int = -1) -> tuple[Tensor, Tensor]:
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
        count = whole(k)
        if count is None or not 1 <= count <= self.n:
            raise OperandError(f"{self.name}.topk: k must be an integer in 1 … {self.n}, got {k!r}")
        axis = self._operands.axis("topk", x, dim)
        ranks = kept_or_new(_largest_ranks, x, self.n, count)
        values, rows = self._run("topk", axis.at_end(x), steepness, ranks, "rows", is_shared=True)
        return axis.back(values[..., self.n - count :].flip(-1)), rows.transpose(-1, -2)

    def loss(
        self, name: str, x: Tensor, target: Tensor, steepness: Steepness = None, *, dim: int = -1
    ) -> Tensor:
        """Return a loss of P against the true ranks, averaged over the samples; P is never stored.

        Args:
            name: cross_entropy or binary_cross_entropy; the methods of these names say what they are.
            x: (…, n) scores.
            target: (…, n) integers, the true rank 0 … n-1 of each input.
            steepness: see the class.
            dim: the axis of x, and of the target, to sort along.

        Returns:
            A 0-d tensor, of the dtype of x, under autocast at least float32; NaN for an empty batch, as
            torch's mean.

        Raises:
            OperandError: an unknown loss, or a target that is no permutation.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> right, wrong = torch.tensor([3, 1, 2, 0]), torch.arange(4)
        >>> bool(op.loss("cross_entropy", x, right) < op.loss("cross_entropy", x, wrong))
        True
        """
        if not is_name(name, LOSSES):
            raise OperandError(f"{self.name}.loss: no loss {name!r}; known: {', '.join(LOSSES)}")
        return self._loss(name, x, target, steepness, dim)

    def _loss(self, name: str, x: Tensor, target: Tensor, steepness: Steepness, dim: int) -> Tensor:
        axis = self._operands.axis(name, x, dim)
        self._operands.check_target(name, x, target)
        way = way_of(x, target, tensor_of(steepness))
        keys = self._operands.keys(name, axis.at_end(x), x.dtype)
        weights = self._operands.steepness(name, steepness, keys, way)
        self._operands.check_device(name, x, target)
        ranks = unfolded(axis.at_end(target), keys.shape, torch.int64)
        return as_loss(entries.mean_loss(self._kernel, way, keys, weights, ranks, name), x)

    def cross_entropy(
        self, x: Tensor, target: Tensor, steepness: Steepness = None, *, dim: int = -1
    ) -> Tensor:
        """Return the paper's loss, equation 6, averaged over the samples; P is never stored.

        The loss of a sample is (1/n) Σ_c -log P[target[c], c]. Logarithms are cut at -80, and a cut one has
        no gradient; elsewhere the gradient is the derivative of the value. The logarithm of an entry above
        3/4 is that of 1 minus its column's other entries. In the error-free form P is 0 or 1, and
        1 / max(p, 1e-12) stands for the derivative of log p.

        Args:
            x: (…, n) scores.
            target: (…, n) integers, the true rank 0 … n-1 of each input.
            steepness: see the class.
            dim: the axis of x, and of the target, to sort along.

        Returns:
            A 0-d tensor, of the dtype of x, under autocast at least float32; NaN for an empty batch, as
            torch's mean.

        Raises:
            OperandError: a target that is no permutation.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> x = torch.tensor([3.0, 1.0, 2.0, 0.0], requires_grad=True)
        >>> op.cross_entropy(x, torch.tensor([3, 2, 1, 0])).backward()
        >>> bool(x.grad[1] < 0 < x.grad[2])  # the second score should grow, the third should fall
        True
        """
        return self._loss("cross_entropy", x, target, steepness, dim)

    def binary_cross_entropy(
        self, x: Tensor, target: Tensor, steepness: Steepness = None, *, dim: int = -1
    ) -> Tensor:
        """Return the binary cross entropy between P and the true permutation matrix.

        The mean over samples and all n² entries, as in the authors' released code. P is never stored.
        Arguments, the cut of logarithms and the error-free form as in `cross_entropy`; 1 - p of an entry
        above 3/4 is the sum of its column's other entries.

        torch.nn.BCELoss on a stored P, and so diffsort, differ where entries are extreme: they cut logarithms
        at -100 and reciprocals at 1e-12, and their 1 - p is 0 for a p that rounds to 1. There their
        gradient is not the derivative of their value.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> bool(op.binary_cross_entropy(x, torch.tensor([3, 1, 2, 0]), steepness=50.0) < 0.01)
        True
        """
        return self._loss("binary_cross_entropy", x, target, steepness, dim)

    @overload
    def hard_sort(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        descending: bool = False,
        values_only: Literal[False] = False,
        index_dtype: torch.dtype = torch.int64,
    ) -> Sorted: ...

    @overload
    def hard_sort(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        descending: bool = False,
        values_only: Literal[True],
        index_dtype: torch.dtype = torch.int64,
    ) -> Tensor: ...

    def hard_sort(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        descending: bool = False,
        values_only: bool = False,
        index_dtype: torch.dtype = torch.int64,
    ) -> Sorted | Tensor:
        """Return exactly sorted values and indices, as torch.sort(stable=True).

        Up to 1,024 values it runs the smallest network that nsc has, proved when first used, whatever network
        the operator relaxes. Beyond, it runs torch.sort.

        Args:
            x: n values along an axis, of any shape: floating-point numbers, integers or bool.
            dim: the axis to sort along.
            descending: whether the largest value comes first. NaN is larger than every number.
            values_only: whether to return the values alone. This takes a fraction of the time. -0 may then
                come before 0, and NaN may lose its sign.
            index_dtype: torch.int64 or torch.int32.

        Returns:
            A named tuple of values and indices, of the shape of x; or the values. The gradient of the values
            is torch.sort's.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4)
        >>> values, indices = op.hard_sort(torch.tensor([3, 1, 2, 0]), descending=True)
        >>> values, indices
        (tensor([3, 2, 1, 0]), tensor([0, 2, 1, 3]))
        """
        return self._exact("hard_sort", x, dim, descending, values_only, index_dtype)


def _all_ranks(device: torch.device, n: int, dtype: torch.dtype) -> Tensor:
    """Return the ranks 0 … n-1 as one column of a payload, (n, 1)."""
    return torch.arange(n, dtype=dtype, device=device).unsqueeze(-1)


def _largest_ranks(device: torch.device, n: int, k: int) -> Tensor:
    """Return the ranks of the k largest of n values, the largest first."""
    return torch.arange(n - 1, n - 1 - k, -1, device=device)
