"""The CPU implementations of the operators: tensors to addresses, the C call, errors from its status."""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nsc.runtime import reference
from nsc.runtime.derivatives import reference_vjp
from nsc.runtime.kernel import Kernel, find
from nsc.runtime.routing import (
    ROUTINGS,
    check_keys,
    check_tensors,
    check_values,
    checked_backward,
    empty_loss,
    empty_sorted,
    inner_contiguous,
    no_permutation,
    no_rank,
    no_steepness,
    output_shapes,
    real_of,
    takes,
    through_loss,
)

_OUT_OF_MEMORY, _BAD_STEEPNESS, _NO_PERMUTATION, _NO_RANK = 1, 2, 3, 4


def relax(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    """Implement `nsc::relax`; see `dispatch.relax`."""
    kernel = find(spec)
    check_tensors(kernel, x, steepness, payload, routing)
    values, routed = relax_unchecked(x, steepness, payload, routing, spec)
    return values, x.new_empty(x.shape[0], 0) if routed is None else routed


def relax_unchecked(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor | None]:
    """Do what `relax` does for arguments that fit together; what routing "none" routes is None."""
    kernel = find(spec)
    library = kernel.library()
    if library is None:
        check_values(kernel, steepness, payload, routing)
        found = reference.relax(kernel, x, steepness, payload, routing)
        return _apart(found[0], x, steepness), _apart(found[1], x, payload)
    shapes = output_shapes(x, payload, routing)
    values, routed = x.new_empty(shapes[0]), None if routing == "none" else x.new_empty(shapes[1])
    x = x.contiguous()
    payload = inner_contiguous(payload)
    status = library.functions[real_of(x.dtype)].forward(
        *_call(x, steepness, payload, routing), values.data_ptr(), _address(routed), _thread_pool()
    )
    _check(status, kernel, routing, steepness)
    return values, routed


def relax_backward_unchecked(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
    with_steepness: bool = True,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward` does for arguments that fit together; what is not wanted is None.

    The weights are computed anew, so forward saves only its inputs.
    """
    if takes(routing) == "target" and routed_grad is not None:
        assert payload is not None
        return through_loss(
            loss, relax_backward_unchecked, values_grad, routed_grad, x, steepness, payload, routing, spec
        )
    kernel = find(spec)
    library = kernel.library()
    if library is None:
        grads = reference_vjp(values_grad, routed_grad, x, steepness, payload, routing, spec)
        inputs = (values_grad, routed_grad, x, steepness, payload)
        payload_grad = _apart(grads[2], *inputs) if takes(routing) == "columns" else None
        return _apart(grads[0], *inputs), _apart(grads[1], *inputs), payload_grad
    x_grad = x.new_empty(x.shape)
    steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
    payload_grad = None
    if payload is not None and takes(routing) == "columns":
        payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
    x = x.contiguous()
    payload = inner_contiguous(payload)
    values_grad = None if values_grad is None else values_grad.contiguous()
    routed_grad = None if routed_grad is None else routed_grad.contiguous()
    status = library.functions[real_of(x.dtype)].backward(
        *_call(x, steepness, payload, routing),
        _address(values_grad),
        _address(routed_grad),
        x_grad.data_ptr(),
        _address(steepness_grad),
        _address(payload_grad),
        None,
        _thread_pool(),
    )
    _check(status, kernel, routing, steepness)
    return x_grad, steepness_grad, payload_grad


relax_backward = checked_backward(relax_backward_unchecked)


def loss(
    x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Implement `nsc::loss`; see `dispatch.loss`."""
    kernel = find(spec)
    check_tensors(kernel, x, steepness, target, routing)
    library = kernel.library()
    if library is None:
        check_values(kernel, steepness, target, routing)
        losses = reference.relax(kernel, x, steepness, target, routing)[1]
        one = torch.ones_like(losses)
        grads = reference_vjp(None, one, x, steepness, target, routing, spec)[:2]
        return losses, _apart(grads[0], x), _apart(grads[1], steepness)
    losses, x_grad, steepness_grad = empty_loss(x, steepness, target, routing, spec)
    x = x.contiguous()
    target = target.contiguous()
    status = library.functions[real_of(x.dtype)].backward(
        *_call(x, steepness, target, routing),
        None,
        None,
        x_grad.data_ptr(),
        steepness_grad.data_ptr(),
        None,
        losses.data_ptr(),
        _thread_pool(),
    )
    _check(status, kernel, routing, steepness)
    return losses, x_grad, steepness_grad


def hard_sort(x: Tensor, spec: str) -> tuple[Tensor, Tensor]:
    """Implement `nsc::hard_sort`; see `dispatch.hard_sort`."""
    kernel = find(spec)
    check_keys(kernel, x)
    library = kernel.library()
    if library is None:
        return reference.hard_sort(kernel, x)
    values, indices = empty_sorted(x, spec)
    x = x.contiguous()
    status = library.functions[real_of(x.dtype)].sort(
        x.shape[0], x.data_ptr(), values.data_ptr(), indices.data_ptr(), _thread_pool()
    )
    _check_memory(status, kernel)
    return values, indices


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()


def _call(x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> tuple[Any, ...]:
    """Return the arguments that forward and backward share."""
    stride = 0 if payload is None else payload.stride(0)
    columns = 0 if payload is None else payload.shape[-1]
    return (
        ROUTINGS[routing].code,
        x.shape[0],
        x.data_ptr(),
        steepness.data_ptr(),
        steepness.stride(0),
        _address(payload),
        stride,
        columns,
    )


def _apart(result: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return the result contiguous and, as an operator must, with memory of its own."""
    result = result.contiguous()
    taken = {t.untyped_storage().data_ptr() for t in inputs if t is not None}
    return result.clone() if result.untyped_storage().data_ptr() in taken else result


def _check(status: int, kernel: Kernel, routing: str, steepness: Tensor) -> None:
    if status == _BAD_STEEPNESS:
        raise no_steepness(kernel, routing, steepness)
    if status == _NO_PERMUTATION:
        raise no_permutation(kernel, routing)
    if status == _NO_RANK:
        raise no_rank(kernel, routing)
    _check_memory(status, kernel)


def _check_memory(status: int, kernel: Kernel) -> None:
    if status == _OUT_OF_MEMORY:
        raise MemoryError(f"{kernel.name}: not enough memory for the weights of one sample")
    assert status == 0


@functools.cache
def _thread_pool() -> int | None:
    """Return the address of torch's own parallel loop (torch >= 2.10), or None: one thread."""
    name = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}.get(sys.platform, "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
        return ctypes.cast(library.torch_parallel_for, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
