"""Exact sorting and selection of tensors of any type along any axis, as torch users call it.

Up to MOST values an exact kernel can do the work, whatever network an operator relaxes. Its network is the
smallest that nsc has for the task. torch.sort does the work until the build of the kernel has paid, by the
rule of nsc.join.choosing. It also does it for more values, for a task without a proof, on a device that
is neither a CPU nor NVIDIA's, and where there is no compiler.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nsc.contract.exact import ELEMENTS, MOST
from nsc.errors import OperandTypeError, ToolchainError, UnprovedError
from nsc.join.choosing import serve
from nsc.join.on_demand import exact_kernel, exact_kernel_of, exact_kind
from nsc.operators.operands import axis_of
from nsc.runtime.dispatch.registering import below, is_differentiated, register_operator
from nsc.runtime.dispatch.ways import PLAIN, is_written_out, way_of
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.exact.kernel import ExactFunction, ExactKernel, places_fit
from nsc.runtime.exact.sorting import CpuSort, ExactSort, TorchSort
from nsc.runtime.relaxed.devices import DEVICES
from nsc.runtime.relaxed.kernel import Kernel, find_kernel

# Dtypes of tensors to their names.
DTYPE_NAMES = {getattr(torch, name): name for name in ELEMENTS if hasattr(torch, name)}


class Sorted(NamedTuple):
    """Exact values, and the place that each had along its axis."""

    values: Tensor
    indices: Tensor


def hard_sort(
    caller: str,
    kernel: Kernel,
    x: Tensor,
    dim: int,
    descending: bool,
    values_only: bool,
    index_dtype: torch.dtype,
) -> Sorted | Tensor:
    """Sort or select along an axis, as the caller's kernel says; arguments and errors as `Sorter.hard_sort`.

    Only a kernel that sorts takes `descending`.
    """
    axis = _checked_axis(caller, x, kernel.n, dim)
    if index_dtype not in (torch.int64, torch.int32):
        raise OperandTypeError(f"{caller}: index_dtype must be torch.int64 or torch.int32, got {index_dtype}")
    way, spec, is_short = way_of(x), kernel.spec, index_dtype == torch.int32
    if way is not PLAIN:
        if is_written_out():
            worker = _torch_sort(spec, says_stable=False)
            values, places = worker.sorted(x, axis, _descends(spec, descending), index_dtype)
            assert places is not None
            return values if values_only else Sorted(values, places)
        if values_only:
            return torch.ops.nsc.exact_values(x, axis, descending, spec)  # type: ignore[no-any-return]
        return Sorted(*torch.ops.nsc.exact_sort(x, axis, descending, is_short, spec))
    if values_only and not x.requires_grad:
        return _values(x, axis, descending, spec)
    values, indices = _sort(x.detach(), axis, descending, is_short, spec)
    if x.requires_grad:
        values = _gathered(x, axis, indices)
    return values if values_only else Sorted(values, indices)


def _checked_axis(caller: str, x: Tensor, n: int, dim: int) -> int:
    """Return the axis that is sorted; errors as in `hard_sort`."""
    if x.dtype not in DTYPE_NAMES:
        raise OperandTypeError(
            f"{caller}: dtype {x.dtype} is not served: {', '.join(DTYPE_NAMES.values())} are"
        )
    return axis_of(caller, x, n, dim)


def _gathered(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Return the values of x at indices along an axis. A gather has all of torch's derivatives."""
    return x.gather(axis, indices.long())


@functools.lru_cache(maxsize=256)
def _exact_kernel(spec: str) -> ExactKernel | None:
    """Return the exact kernel for an operator's task; None if `exact_kernel_of` has none."""
    return exact_kernel_of(find_kernel(spec))


def _sort(x: Tensor, dim: int, descending: bool, is_short: bool, spec: str) -> tuple[Tensor, Tensor]:
    """Return values and indices; the indices are int32 if `is_short`, else int64."""
    if x.dim() == 0:
        values, indices = _sort(x.unsqueeze(0), dim, descending, is_short, spec)
        return values.squeeze(0), indices.squeeze(0)
    if x.is_cpu and not places_fit(x.shape[dim], x.itemsize):
        wide, indices = _sort(x.to(torch.int16), dim, descending, is_short, spec)
        return wide.to(x.dtype), indices
    index_dtype = torch.int32 if is_short else torch.int64
    values, places = _worker(x, spec).sorted(x, dim, _descends(spec, descending), index_dtype)
    assert places is not None
    return values, places


def _values(x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    if x.dim() == 0:
        return x.clone()
    return _worker(x, spec).sorted(x, dim, _descends(spec, descending), None)[0]


def _descends(spec: str, descending: bool) -> bool:
    """Return whether the order descends: a selection of the largest says so, for a sort the caller does."""
    outputs = find_kernel(spec).outputs
    return descending if outputs is None else outputs.descends


def _worker(x: Tensor, spec: str) -> ExactSort:
    """Return the sort of a tensor for an operator: torch's, an exact kernel's, or a choice between both."""
    kernel, peer = find_kernel(spec), _torch_sort(spec)
    if x.is_cpu and kernel.n <= MOST:
        return _ChosenSort(None if kernel.outputs is None else kernel.outputs.places, peer)
    exact = _exact_kernel(spec) if x.is_cuda else None
    return (None if exact is None else _on_gpu(exact, x)) or peer


class _ChosenSort:
    """Sorts tensors on the CPU by torch.sort, or by an exact kernel where that has paid."""

    def __init__(self, places: tuple[int, ...] | None, peer: TorchSort) -> None:
        self._places, self._peer = places, peer

    def sorted(
        self, x: Tensor, dim: int, descending: bool, index_dtype: torch.dtype | None
    ) -> tuple[Tensor, Tensor | None]:
        if not x.numel():
            return self._peer.sorted(x, dim, descending, index_dtype)
        n = x.shape[dim]
        kind = exact_kind(n, self._places, DTYPE_NAMES[x.dtype], index_dtype is not None, "torch")
        samples = x.numel() // n

        def probe(share: float) -> int:
            # A share of the longest other axis.
            other = max((axis for axis in range(x.dim()) if axis != dim), key=x.shape.__getitem__)
            part = x.narrow(other, 0, max(1, int(share * x.shape[other])))
            self._peer.sorted(part, dim, descending, index_dtype)
            return part.numel() // n

        def sort(kernel: ExactFunction | None) -> tuple[Tensor, Tensor | None]:
            worker = self._peer if kernel is None else CpuSort(kernel)
            return worker.sorted(x, dim, descending, index_dtype)

        try:
            return serve(lambda: kind, samples, x.numel(), sort, probe)
        except ToolchainError:
            return sort(None)


def _torch_sort(spec: str, says_stable: bool = True) -> TorchSort:
    outputs = find_kernel(spec).outputs
    return TorchSort(None if outputs is None else outputs.places, says_stable)


def _on_gpu(exact: ExactKernel, x: Tensor) -> ExactSort | None:
    """Return an exact kernel on a tensor's GPU; None if it cannot be built or loaded now."""
    try:
        program = exact_cuda.program_of(exact.source, DTYPE_NAMES[x.dtype], x.device)
        return exact_cuda.CudaSort(exact.source, program)
    except ToolchainError:
        return None


def select_rows(x: Tensor, rank: int) -> Tensor:
    """Return the value of a rank, 0 the smallest, of each row of the last axis.

    An exact kernel selects it on a GPU, torch.sort elsewhere.
    """
    worker = _selecting_on_gpu(x, rank) or TorchSort((rank,), not is_written_out())
    return worker.sorted(x, x.dim() - 1, False, None)[0].squeeze(-1)


def _selecting_on_gpu(x: Tensor, rank: int) -> ExactSort | None:
    if not x.is_cuda or x.shape[-1] > MOST:
        return None
    try:
        return _on_gpu(exact_kernel(x.shape[-1], (rank,)), x)
    except UnprovedError:
        return None


def _exact_sort(x: Tensor, dim: int, descending: bool, is_short: bool, spec: str) -> tuple[Tensor, Tensor]:
    """Implement `nsc::exact_sort`, which any program may call."""
    kernel = find_kernel(spec)
    axis = _checked_axis(f"{kernel.name}.exact_sort", x, kernel.n, dim)
    return _sort(x, axis, descending, is_short, spec)


def _exact_values(x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    """Implement `nsc::exact_values`, which any program may call."""
    kernel = find_kernel(spec)
    return _values(x, _checked_axis(f"{kernel.name}.exact_values", x, kernel.n, dim), descending, spec)


def _fake_sort(x: Tensor, dim: int, descending: bool, is_short: bool, spec: str) -> tuple[Tensor, Tensor]:
    values = _empty_values(x, dim, descending, spec)
    return values, values.new_empty(values.shape, dtype=torch.int32 if is_short else torch.int64)


def _empty_values(x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    outputs = find_kernel(spec).outputs
    if outputs is None or x.dim() == 0:
        return x.new_empty(x.shape)
    dim %= x.dim()
    return x.new_empty((*x.shape[:dim], len(outputs.ranks), *x.shape[dim + 1 :]))


def _differentiable_sort(keyset: Any, x: Tensor, dim: int, *options: Any) -> tuple[Tensor, Tensor]:
    """Do what `nsc::exact_sort` does, with derivatives if one may be asked for."""
    values, indices = below("exact_sort", keyset, (x.detach(), dim, *options))
    return _gathered(x, dim, indices) if is_differentiated(x) else values, indices


def _differentiable_values(keyset: Any, x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    """Do what `nsc::exact_values` does, with derivatives if one may be asked for."""
    if is_differentiated(x):
        return _differentiable_sort(keyset, x, dim, descending, False, spec)[0]
    return below("exact_values", keyset, (x, dim, descending, spec))  # type: ignore[no-any-return]


def _vmap(
    call: Callable[..., Any], info: Any, dims: tuple[Any, ...], x: Tensor, dim: int, *rest: Any
) -> tuple[Any, Any]:
    """Put the mapped dimension in front, and call with the next axis."""
    moved = x.movedim(dims[0], 0)
    if moved.dim() == 1:  # each sample is one value
        results = call(moved.unsqueeze(1), 1, *rest)
        flat = (
            results.squeeze(1) if isinstance(results, Tensor) else tuple(each.squeeze(1) for each in results)
        )
        return flat, 0 if isinstance(results, Tensor) else (0, 0)
    results = call(moved, dim if dim < 0 else dim + 1, *rest)
    return results, 0 if isinstance(results, Tensor) else (0, 0)


register_operator(
    "exact_sort",
    "(Tensor x, int dim, bool descending, bool is_short, str kernel) -> (Tensor, Tensor)",
    dict.fromkeys(DEVICES, _exact_sort),
    fake=_fake_sort,
    vmap=_vmap,
    autograd=_differentiable_sort,
)
register_operator(
    "exact_values",
    "(Tensor x, int dim, bool descending, str kernel) -> Tensor",
    dict.fromkeys(DEVICES, _exact_values),
    fake=_empty_values,
    vmap=_vmap,
    autograd=_differentiable_values,
)
