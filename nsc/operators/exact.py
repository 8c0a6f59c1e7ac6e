"""Exact sorting and selection of tensors of any type along any axis, as torch users call it.

Tensors on a processor go to exact kernels, of the smallest network that nsc has for the task, whatever
network an operator relaxes. Each is proved and built when first used. On other devices, and where there is no
C++ compiler, torch.sort does the work.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nsc.contract.exact import ELEMENTS, MOST_PLACES
from nsc.errors import OperandError, OperandTypeError, ToolchainError
from nsc.runtime.devices.cpu import thread_pool
from nsc.runtime.dispatch.ways import PLAIN, way_of
from nsc.runtime.exact import ExactKernel, Layout

# Dtypes of tensors to their names.
_NAMES = {getattr(torch, name): name for name in ELEMENTS if hasattr(torch, name)}
# Least samples side by side that are sorted where they lie; fewer are copied to rows first.
_LEAST_COLUMNS = 16


class Sorted(NamedTuple):
    """Exact values, and the place that each had along its axis."""

    values: Tensor
    indices: Tensor


def hard_sort(
    caller: str,
    x: Tensor,
    n: int,
    wanted: Sequence[int] | None,
    dim: int,
    descending: bool,
    index_dtype: torch.dtype,
) -> Sorted:
    """Sort or select along an axis; ties keep their order, and NaN is larger than every number.

    Args:
        caller: the method that was called, for messages.
        x: n values along the axis.
        n: how many values the caller's operator takes.
        wanted: the ranks of the results; None: all.
        dim: the axis.
        descending: whether the largest value, or NaN, comes first; only without wanted ranks.
        index_dtype: int64 or int32.

    Raises:
        OperandTypeError: a dtype that is not of ELEMENTS, or no dtype of indices.
        OperandError: no such axis, or another number of values along it.
    """
    axis = _checked(caller, x, n, dim)
    if index_dtype not in (torch.int64, torch.int32):
        raise OperandTypeError(f"{caller}: index_dtype must be torch.int64 or torch.int32, got {index_dtype}")
    task, is_short = _task(wanted), index_dtype == torch.int32
    way = way_of(x)
    sort = _sort if way is PLAIN else torch.ops.nsc.exact_sort
    if way is PLAIN and not x.requires_grad:
        return Sorted(*sort(x, task, axis, descending, is_short))
    indices = sort(x.detach(), task, axis, descending, is_short)[1]
    # A gather has all of torch's derivatives.
    return Sorted(x.gather(axis, indices.long() if is_short else indices), indices)


def hard_values(
    caller: str, x: Tensor, n: int, wanted: Sequence[int] | None, dim: int, descending: bool
) -> Tensor:
    """Return the values of `hard_sort` alone: -0 comes before 0, and NaN loses its sign."""
    axis = _checked(caller, x, n, dim)
    if x.requires_grad:
        return hard_sort(caller, x, n, wanted, dim, descending, torch.int64).values
    values = _values if way_of(x) is PLAIN else torch.ops.nsc.exact_values
    return values(x, _task(wanted), axis, descending)


def _checked(caller: str, x: Tensor, n: int, dim: int) -> int:
    """Return the axis as a number from 0 on; of a tensor without axes, which is one value, 0."""
    axes = max(1, x.dim())
    if not -axes <= dim < axes:
        raise OperandError(
            f"{caller}: dim must be in {-axes} … {axes - 1} for x of {x.dim()} axes, got {dim}"
        )
    axis = dim % axes
    length = x.shape[axis] if x.dim() else 1
    if length != n:
        raise OperandError(f"{caller}: x has {length} values along dim {dim}, this op takes {n}")
    if x.dtype not in _NAMES:
        raise OperandTypeError(f"{caller}: dtype {x.dtype} is not served: {', '.join(_NAMES.values())} are")
    return axis


def _task(wanted: Sequence[int] | None) -> str:
    """Return the name of a task, by which registered operators find its kernel in any process."""
    return "sort" if wanted is None else ",".join(map(str, wanted))


@functools.lru_cache(maxsize=256)
def _kernel(task: str, n: int) -> ExactKernel:
    # Most programs that load a package sort nothing exactly, and so need no compiler of networks.
    from nsc.compiler.selection import median, ranks, top_k
    from nsc.join.exact import exact_kernel

    if task == "sort":
        return exact_kernel(n)
    wanted = _ranks(task)
    for known in (top_k(len(wanted)), median()):
        if tuple(known.outputs(n).values()) == wanted:
            return exact_kernel(n, known)
    return exact_kernel(n, ranks(*wanted))


def _ranks(task: str) -> tuple[int, ...]:
    return tuple(map(int, task.split(",")))


def _sort(x: Tensor, task: str, dim: int, descending: bool, is_short: bool) -> tuple[Tensor, Tensor]:
    """Implement `nsc::exact_sort`: values and indices, int32 if is_short, else int64."""
    index_dtype = torch.int32 if is_short else torch.int64
    if x.dim() == 0:
        values, indices = _sort(x.unsqueeze(0), task, dim, descending, is_short)
        return values.squeeze(0), indices.squeeze(0)
    n = x.shape[dim]
    if n > MOST_PLACES[x.itemsize]:
        wide, indices = _sort(x.to(torch.int16), task, dim, descending, is_short)
        return wide.to(x.dtype), indices
    function = _function(x, task, dim)
    if function is None:
        return _by_torch(x, task, dim, descending, index_dtype)
    return _call(function, x, task, dim, descending, index_dtype)  # type: ignore[return-value]


def _values(x: Tensor, task: str, dim: int, descending: bool) -> Tensor:
    """Implement `nsc::exact_values`."""
    if x.dim() == 0:
        return x.clone()
    function = _function(x, task, dim)
    if function is None:
        return _by_torch(x, task, dim, descending, torch.int64)[0]
    return _call(function, x, task, dim, descending, None)[0]


def _function(x: Tensor, task: str, dim: int) -> ExactKernel | None:
    """Return the kernel for a tensor, built; None where torch has to sort."""
    if not x.is_cpu:
        return None
    kernel = _kernel(task, x.shape[dim])
    try:
        kernel.function(_NAMES[x.dtype])
    except ToolchainError:
        return None
    return kernel


def _by_torch(
    x: Tensor, task: str, dim: int, descending: bool, index_dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    values, indices = torch.sort(x, dim=dim, descending=descending, stable=True)
    if task != "sort":
        wanted = torch.tensor(_ranks(task), device=x.device)
        values, indices = values.index_select(dim, wanted), indices.index_select(dim, wanted)
    return values, indices.to(index_dtype)


def _call(
    kernel: ExactKernel, x: Tensor, task: str, dim: int, descending: bool, index_dtype: torch.dtype | None
) -> tuple[Tensor, Tensor | None]:
    inner = math.prod(x.shape[dim + 1 :])
    if 1 < inner < _LEAST_COLUMNS:
        values, indices = _call(kernel, x.movedim(dim, -1), task, x.dim() - 1, descending, index_dtype)
        back = _moved_back(dim)
        return back(values), None if indices is None else back(indices)
    outer, n, outputs = math.prod(x.shape[:dim]), x.shape[dim], kernel.source.outputs
    x = x.contiguous()
    shape = (*x.shape[:dim], outputs, *x.shape[dim + 1 :])
    values = x.new_empty(shape)
    indices = None if index_dtype is None else x.new_empty(shape, dtype=index_dtype)
    if values.numel():
        layout = Layout(1, outer, 0, 1, n) if inner == 1 else Layout(outer, inner, n * inner, inner, 1)
        address, index_bytes = (None, 0) if indices is None else (indices.data_ptr(), indices.itemsize)
        kernel.call(
            _NAMES[x.dtype],
            x.data_ptr(),
            layout,
            values.data_ptr(),
            address,
            index_bytes,
            descending,
            thread_pool(),
        )
    return values, indices


def _moved_back(dim: int) -> Callable[[Tensor], Tensor]:
    return lambda result: result.movedim(-1, dim).contiguous()


def _fake_sort(x: Tensor, task: str, dim: int, descending: bool, is_short: bool) -> tuple[Tensor, Tensor]:
    values = _fake_values(x, task, dim, descending)
    return values, values.new_empty(values.shape, dtype=torch.int32 if is_short else torch.int64)


def _fake_values(x: Tensor, task: str, dim: int, descending: bool) -> Tensor:
    if task == "sort" or x.dim() == 0:
        return x.new_empty(x.shape)
    return x.new_empty((*x.shape[:dim], len(_ranks(task)), *x.shape[dim + 1 :]))


def _vmap(
    call: Callable[..., Any], info: Any, dims: tuple[Any, ...], x: Tensor, *rest: Any
) -> tuple[Any, Any]:
    """Put the mapped dimension in front, and call with the next axis."""
    moved = x.movedim(dims[0], 0)
    task, dim, *flags = rest
    if moved.dim() == 1:  # each sample is one value
        results = call(moved.unsqueeze(1), task, 1, *flags)
        flat = (
            results.squeeze(1) if isinstance(results, Tensor) else tuple(each.squeeze(1) for each in results)
        )
        return flat, 0 if isinstance(results, Tensor) else (0, 0)
    results = call(moved, task, dim + 1, *flags)
    return results, 0 if isinstance(results, Tensor) else (0, 0)


_library: Any = torch.library.Library("nsc", "FRAGMENT")  # type: ignore[no-untyped-call]
for _name, _schema, _implementation, _fake in (
    (
        "exact_sort",
        "(Tensor x, str task, int dim, bool descending, bool is_short) -> (Tensor, Tensor)",
        _sort,
        _fake_sort,
    ),
    ("exact_values", "(Tensor x, str task, int dim, bool descending) -> Tensor", _values, _fake_values),
):
    _library.define(_name + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    for _device in ("CPU", "CUDA"):
        _library.impl(_name, _implementation, _device)
    torch.library.register_fake(f"nsc::{_name}", _fake, lib=_library)
    torch.library.register_vmap(
        f"nsc::{_name}", functools.partial(_vmap, getattr(torch.ops.nsc, _name)), lib=_library
    )
