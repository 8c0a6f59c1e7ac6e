"""Exact sorting and selection of tensors of any type along any axis, as torch users call it.

Three things can do the work. Up to MOST values an exact kernel: of the smallest network that nsc has for the
task, whatever network an operator relaxes, proved and built when first used. Where there is none, the
operator's own package, for the types and devices that it is compiled for. Else torch.sort: on a device that
is neither a CPU nor NVIDIA's, and where there is no compiler.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nsc.contract.exact import ELEMENTS
from nsc.errors import OperandTypeError, ToolchainError, UnprovedError
from nsc.operators.operands import axis_of
from nsc.runtime.devices import cpu, exact_cuda
from nsc.runtime.devices.exact_cuda import ExactProgram
from nsc.runtime.devices.table import DEVICES
from nsc.runtime.dispatch import entries
from nsc.runtime.dispatch.registering import below, is_differentiated, register
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.exact import LEAST_COLUMNS, ExactKernel, Layout, layout_of, places_fit
from nsc.runtime.kernel import Kernel, find

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
    """Sort or select along an axis; ties keep their order, and NaN is larger than every number.

    Args:
        caller: the method that was called, for messages.
        kernel: the caller's; it says how many values are sorted, and which ranks are the results.
        x: values along the axis.
        dim: the axis.
        descending: whether the largest value, or NaN, comes first; only where all ranks are results.
        values_only: whether to return values alone: -0 may come before 0, and NaN may lose its sign.
        index_dtype: int64 or int32.

    Raises:
        OperandTypeError: a dtype that is not of ELEMENTS, or no dtype of indices.
        OperandError: no such axis, or another number of values along it.
    """
    axis = axis_of(caller, x, kernel.n, dim)
    if x.dtype not in DTYPE_NAMES:
        raise OperandTypeError(
            f"{caller}: dtype {x.dtype} is not served: {', '.join(DTYPE_NAMES.values())} are"
        )
    if index_dtype not in (torch.int64, torch.int32):
        raise OperandTypeError(f"{caller}: index_dtype must be torch.int64 or torch.int32, got {index_dtype}")
    way, spec, is_short = way_of(x), kernel.spec, index_dtype == torch.int32
    if way is not PLAIN:
        if values_only:
            return torch.ops.nsc.exact_values(x, axis, descending, spec)  # type: ignore[no-any-return]
        return Sorted(*torch.ops.nsc.exact_sort(x, axis, descending, is_short, spec))
    if values_only and not x.requires_grad:
        return _values(x, axis, descending, spec)
    values, indices = _sort(x.detach(), axis, descending, is_short, spec)
    if x.requires_grad:
        values = _gathered(x, axis, indices)
    return values if values_only else Sorted(values, indices)


def _gathered(x: Tensor, axis: int, indices: Tensor) -> Tensor:
    """Return the values of x at indices along an axis. A gather has all of torch's derivatives."""
    return x.gather(axis, indices.long())


@functools.lru_cache(maxsize=256)
def _exact_kernel(spec: str) -> ExactKernel | None:
    """Return the exact kernel for the task of an operator; None as `exact_kernel_of`."""
    # Most programs that load a package sort nothing exactly, and so need no compiler of networks.
    from nsc.join.exact import exact_kernel_of

    return exact_kernel_of(find(spec))


def _sort(x: Tensor, dim: int, descending: bool, is_short: bool, spec: str) -> tuple[Tensor, Tensor]:
    """Implement `nsc::exact_sort`: values and indices, int32 if is_short, else int64."""
    if x.dim() == 0:
        values, indices = _sort(x.unsqueeze(0), dim, descending, is_short, spec)
        return values.squeeze(0), indices.squeeze(0)
    if x.is_cpu and not places_fit(x.shape[dim], x.itemsize):
        wide, indices = _sort(x.to(torch.int16), dim, descending, is_short, spec)
        return wide.to(x.dtype), indices
    index_dtype = torch.int32 if is_short else torch.int64
    worker = _worker(x, spec)
    if worker is None or isinstance(worker, Kernel):
        values, indices = _by_others(worker, x, dim, descending, spec)
        return values, indices.to(index_dtype)
    values, places = _by_exact_kernel(worker, x, dim, descending, index_dtype, spec)
    assert places is not None
    return values, places


def _values(x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    """Implement `nsc::exact_values`."""
    if x.dim() == 0:
        return x.clone()
    worker = _worker(x, spec)
    if worker is None or isinstance(worker, Kernel):
        return _by_others(worker, x, dim, descending, spec)[0]
    return _by_exact_kernel(worker, x, dim, descending, None, spec)[0]


def _worker(x: Tensor, spec: str) -> ExactKernel | ExactProgram | Kernel | None:
    """Return what sorts a tensor, built: an exact kernel, or the operator's package; None: torch."""
    if not (x.is_cpu or x.is_cuda):
        return None
    exact, name = _exact_kernel(spec), DTYPE_NAMES[x.dtype]
    if exact is None:
        kernel = find(spec)
        is_served = name in kernel.serves and ("cuda" if x.is_cuda else "cpu") in kernel.sources
        return kernel if is_served and (x.is_cuda or kernel.library() is not None) else None
    if x.is_cuda:
        return _program(exact, x)
    try:
        exact.function(name)
    except ToolchainError:
        return None
    return exact


def _program(exact: ExactKernel, x: Tensor) -> ExactProgram | None:
    """Return an exact kernel on a tensor's GPU; None: it cannot be loaded there, or not now."""
    try:
        return exact_cuda.program_of(exact.source, DTYPE_NAMES[x.dtype], x.device)
    except ToolchainError:
        return None


def select_rows(x: Tensor, rank: int) -> Tensor:
    """Return the value of a rank of each row of the last axis: an exact kernel on a GPU, else torch.sort.

    Args:
        x: rows of 1 to MOST values.
        rank: 0 the smallest.
    """
    program = _selecting(x, rank)
    if program is None:
        return x.sort(dim=-1).values[..., rank].contiguous()
    values = x.new_empty(x.shape[:-1])
    layout = Layout(1, values.numel(), 0, 1, x.shape[-1])
    exact_cuda.sort(program, x.contiguous(), layout, False, values, None)
    return values


def _selecting(x: Tensor, rank: int) -> ExactProgram | None:
    from nsc.compiler.selection import ranks
    from nsc.join.exact import exact_kernel

    if not x.is_cuda:
        return None
    try:
        return _program(exact_kernel(x.shape[-1], ranks(rank)), x)
    except UnprovedError:
        return None


def _by_others(
    kernel: Kernel | None, x: Tensor, dim: int, descending: bool, spec: str
) -> tuple[Tensor, Tensor]:
    if kernel is not None:
        return _by_package(kernel, x, dim, descending)
    values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
    outputs = find(spec).outputs
    if outputs is not None:
        wanted = torch.tensor(outputs.ranks, device=x.device)
        # torch indexes the wider unsigned integers, but has no index_select of them.
        values, indices = (_moved_back(each.movedim(dim, -1)[..., wanted], dim) for each in (values, indices))
    return values, indices


def _by_package(kernel: Kernel, x: Tensor, dim: int, descending: bool) -> tuple[Tensor, Tensor]:
    """Sort by the package's own kernel, whose samples are ascending rows of an arithmetic type."""
    real = getattr(torch, kernel.serves[DTYPE_NAMES[x.dtype]])
    rows = x.movedim(dim, -1)
    # Ties keep their order in an ascending sort from the end, read from its end.
    rows = rows.flip(-1) if descending else rows
    values, indices = entries.hard_sort(kernel, rows.reshape(-1, kernel.n).to(real))
    if descending:
        values, indices = values.flip(-1), kernel.n - 1 - indices.flip(-1)
    shape = (*rows.shape[:-1], values.shape[-1])
    indices = _moved_back(indices.reshape(shape), dim)
    # A NaN may lose its bits where it becomes a number of another type.
    return _moved_back(values.reshape(shape), dim) if real == x.dtype else x.gather(dim, indices), indices


def _by_exact_kernel(
    exact: ExactKernel | ExactProgram,
    x: Tensor,
    dim: int,
    descending: bool,
    index_dtype: torch.dtype | None,
    spec: str,
) -> tuple[Tensor, Tensor | None]:
    outer, n, inner = math.prod(x.shape[:dim]), x.shape[dim], math.prod(x.shape[dim + 1 :])
    # On a GPU neighbouring threads read what lies side by side, however few samples there are.
    layout = layout_of(outer, n, inner, LEAST_COLUMNS if isinstance(exact, ExactKernel) else 1)
    if layout is None:
        moved = x.movedim(dim, -1)
        values, indices = _by_exact_kernel(exact, moved, x.dim() - 1, descending, index_dtype, spec)
        return _moved_back(values, dim), None if indices is None else _moved_back(indices, dim)
    x = x.contiguous()
    values = _empty_values(x, dim, descending, spec)
    indices = None if index_dtype is None else values.new_empty(values.shape, dtype=index_dtype)
    if not values.numel():
        return values, indices
    if isinstance(exact, ExactKernel):
        address, index_bytes = (None, 0) if indices is None else (indices.data_ptr(), indices.itemsize)
        exact.call(
            DTYPE_NAMES[x.dtype],
            x.data_ptr(),
            layout,
            values.data_ptr(),
            address,
            index_bytes,
            descending,
            cpu.thread_pool(),
        )
    else:
        exact_cuda.sort(exact, x, layout, descending, values, indices)
    return values, indices


def _moved_back(result: Tensor, dim: int) -> Tensor:
    return result.movedim(-1, dim).contiguous()


def _fake_sort(x: Tensor, dim: int, descending: bool, is_short: bool, spec: str) -> tuple[Tensor, Tensor]:
    values = _empty_values(x, dim, descending, spec)
    return values, values.new_empty(values.shape, dtype=torch.int32 if is_short else torch.int64)


def _empty_values(x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    outputs = find(spec).outputs
    if outputs is None or x.dim() == 0:
        return x.new_empty(x.shape)
    return x.new_empty((*x.shape[:dim], len(outputs.ranks), *x.shape[dim + 1 :]))


def _differentiable_sort(keyset: Any, x: Tensor, dim: int, *options: Any) -> tuple[Tensor, Tensor]:
    """Return what `nsc::exact_sort` does, with derivatives where one may be asked for."""
    values, indices = below("exact_sort", keyset, (x.detach(), dim, *options))
    return _gathered(x, dim, indices) if is_differentiated(x) else values, indices


def _differentiable_values(keyset: Any, x: Tensor, dim: int, descending: bool, spec: str) -> Tensor:
    """Return what `nsc::exact_values` does, with derivatives where one may be asked for."""
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
    results = call(moved, dim + 1, *rest)
    return results, 0 if isinstance(results, Tensor) else (0, 0)


register(
    "exact_sort",
    "(Tensor x, int dim, bool descending, bool is_short, str kernel) -> (Tensor, Tensor)",
    dict.fromkeys(DEVICES, _sort),
    fake=_fake_sort,
    vmap=_vmap,
    autograd=_differentiable_sort,
)
register(
    "exact_values",
    "(Tensor x, int dim, bool descending, str kernel) -> Tensor",
    dict.fromkeys(DEVICES, _values),
    fake=_empty_values,
    vmap=_vmap,
    autograd=_differentiable_values,
)
