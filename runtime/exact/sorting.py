"""Exact sorting of tensors: torch.sort and exact kernels, behind one protocol."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

import torch
from torch import Tensor

from nsc.contract.exact import ExactSource
from nsc.runtime.devices.pool import thread_pool
from nsc.runtime.exact.kernel import LEAST_COLUMNS, ExactFunction, Layout, layout_of


class ExactSort(Protocol):
    """Sorts, or selects from, tensors along an axis; ties keep their order, NaN is the largest."""

    def sorted(
        self, x: Tensor, dim: int, descending: bool, index_dtype: torch.dtype | None
    ) -> tuple[Tensor, Tensor | None]:
        """Return contiguous values, and the place that each had along the axis.

        Args:
            x: of one axis or more.
            dim: the axis, from 0 on.
            descending: whether the largest value comes first.
            index_dtype: int64 or int32; None: values alone.
        """


class TorchSort:
    """Sorts by torch.sort.

    Args:
        places: which places of the order are results; None: all.
        says_stable: whether calls say that ties keep their order. ONNX has no name for that. On CPUs and in
            ONNX ties keep their order all the same.
    """

    def __init__(self, places: tuple[int, ...] | None, says_stable: bool = True) -> None:
        self._places = places
        self._says_stable = says_stable

    def sorted(
        self, x: Tensor, dim: int, descending: bool, index_dtype: torch.dtype | None
    ) -> tuple[Tensor, Tensor | None]:
        if self._says_stable:
            values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
        else:
            values, indices = torch.sort(x, dim=dim, descending=descending)
        if self._places is not None:
            wanted = torch.tensor(self._places, device=x.device)
            # torch indexes the wider unsigned integers, but has no index_select of them.
            values, indices = (
                _moved_back(each.movedim(dim, -1)[..., wanted], dim) for each in (values, indices)
            )
        return values, None if index_dtype is None else indices.to(index_dtype)


class KernelSort(ABC):
    """Sorts by an exact kernel.

    Args:
        source: the kernel.

    Attributes:
        least_columns: least samples side by side that are sorted where they lie.
    """

    least_columns: int

    def __init__(self, source: ExactSource) -> None:
        self._outputs = source.outputs

    @abstractmethod
    def sort(
        self, x: Tensor, layout: Layout, descending: bool, values: Tensor, indices: Tensor | None
    ) -> None:
        """Sort, or select, into memory of the caller's.

        Args:
            x: values.
            layout: where they lie, by any strides inside of x.
            descending: whether the largest value comes first.
            values: takes the results, (slabs, samples, outputs) if the stride of wires is 1, else
                (slabs, outputs, samples).
            indices: takes their places, int64 or int32; None: values alone.
        """

    def sorted(
        self, x: Tensor, dim: int, descending: bool, index_dtype: torch.dtype | None
    ) -> tuple[Tensor, Tensor | None]:
        outer, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
        layout = layout_of(outer, n, inner, self.least_columns)
        if layout is None:
            values, indices = self.sorted(x.movedim(dim, -1), x.dim() - 1, descending, index_dtype)
            return _moved_back(values, dim), None if indices is None else _moved_back(indices, dim)
        values = x.new_empty((*x.shape[:dim], self._outputs, *x.shape[dim + 1 :]))
        indices = None if index_dtype is None else values.new_empty(values.shape, dtype=index_dtype)
        if values.numel():
            self.sort(x.contiguous(), layout, descending, values, indices)
        return values, indices


class CpuSort(KernelSort):
    """Sorts tensors on the CPU."""

    least_columns = LEAST_COLUMNS

    def __init__(self, kernel: ExactFunction) -> None:
        super().__init__(kernel.source)
        self._kernel = kernel

    def sort(
        self, x: Tensor, layout: Layout, descending: bool, values: Tensor, indices: Tensor | None
    ) -> None:
        address, index_bytes = (None, 0) if indices is None else (indices.data_ptr(), indices.itemsize)
        self._kernel.call(
            x.data_ptr(),
            layout,
            values.data_ptr(),
            address,
            index_bytes,
            descending,
            thread_pool(),
        )


def _moved_back(result: Tensor, dim: int) -> Tensor:
    return result.movedim(-1, dim).contiguous()
