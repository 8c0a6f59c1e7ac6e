"""Selector: a network compiled for some ranks alone, as torch users call it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, overload

import torch
from torch import Tensor

from nsc.errors import PackageError
from nsc.operators.exact import Sorted
from nsc.operators.operands import Steepness, kept_or_new
from nsc.operators.operator import Operator


class Selector(Operator):
    """Differentiable and exact selection of some ranks of n values: the largest, a median, any others.

    In every method x has n values along the axis `dim`, the last by default, and any other axes. What is
    selected takes the place of that axis, in the order of `ranks`. Rows of P have their two axes at the end,
    behind the other axes of x in their order. Dtypes, steepness, ties, NaN and infinities are those of
    `Sorter`; None as steepness is 2 × the depth of the restricted network. At the same steepness soft values
    and rows of P are those of the whole network, unless redundant comparators were left out. `best` may be
    another network for each choice of ranks, with other soft values than the `best` that sorts.
    Cost per sample: O(size) for values, O(k·size) for the rows of k ranks.

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

    @property
    def ranks(self) -> tuple[int, ...]:
        """The selected ranks, in the order of the results; 0 is the smallest value."""
        return self._outputs.ranks

    def select(self, x: Tensor, steepness: Steepness = None, *, dim: int = -1) -> Tensor:
        """Return the relaxed values of the ranks, (…, k); op(x) is op.select(x). Errors as `Sorter.sort`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.select(torch.tensor([3.0, 1.0, 2.0, 0.0]), steepness=50.0).round()
        tensor([0., 3.])
        """
        arranged = self._arranged("select", x, dim)
        values = self._run("select", arranged.keys(x), steepness, None, "none")[0]
        return arranged.of_ranks(self._selected(values))

    __call__ = select

    def select_with_rows(
        self, x: Tensor, steepness: Steepness = None, *, dim: int = -1
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
        arranged = self._arranged("select_with_rows", x, dim)
        values, columns = self._run(
            "select_with_rows", arranged.keys(x), steepness, self._wires(x), "rows", is_shared=True
        )
        return arranged.of_ranks(self._selected(values)), columns.transpose(-1, -2)

    def route(self, x: Tensor, payload: Tensor, steepness: Steepness = None, *, dim: int = -1) -> Tensor:
        """Return the ranks' rows of P @ payload: what is softly selected of a payload by the keys x.

        Args:
            x: (…, n) keys.
            payload: (…, n, m): the shape of x, then m columns.
            steepness: see the class.
            dim: the axis of x, and of the payload, to sort along.

        Returns:
            (…, k, m), of the wider dtype of x and payload; differentiable in both.

        >>> import nsc
        >>> op, x = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3)), torch.tensor([3.0, 1.0, 2.0, 0.0])
        >>> op.route(x, torch.tensor([[10.0], [20.0], [30.0], [40.0]]), steepness=50.0).round().squeeze(-1)
        tensor([40., 10.])
        """
        arranged = self._arranged("route", x, dim)
        self._operands.check_payload("route", x, payload)
        routed = self._run("route", arranged.keys(x), steepness, arranged.at_end(payload, 0, 1), "route")[1]
        return arranged.of_ranks(routed.index_select(-2, self._wires(x)), 1)

    @overload
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: Literal[False] = False,
        index_dtype: torch.dtype = torch.int64,
    ) -> Sorted: ...

    @overload
    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: Literal[True],
        index_dtype: torch.dtype = torch.int64,
    ) -> Tensor: ...

    def hard_select(
        self,
        x: Tensor,
        dim: int = -1,
        *,
        values_only: bool = False,
        index_dtype: torch.dtype = torch.int64,
    ) -> Sorted | Tensor:
        """Return the exact values of the ranks and their indices, as torch.sort(stable=True) has them.

        Arguments as in `Sorter.hard_sort`; what is selected takes the place of the axis `dim`.

        >>> import nsc
        >>> op = nsc.compile("bitonic", 4, select=nsc.ranks(0, 3))
        >>> op.hard_select(torch.tensor([3, 1, 2, 0])).values
        tensor([0, 3])
        """
        return self._exact("hard_select", x, dim, False, values_only, index_dtype)

    def _selected(self, values: Tensor) -> Tensor:
        return values.index_select(-1, self._wires(values))

    def _wires(self, like: Tensor) -> Tensor:
        """Return the wires of the ranks on a tensor's device."""
        return kept_or_new(_tensor, like, self._outputs.wires)


def _tensor(device: torch.device, values: tuple[int, ...]) -> Tensor:
    return torch.tensor(values, device=device)
