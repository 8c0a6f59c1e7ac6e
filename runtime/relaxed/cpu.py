"""The CPU implementations of the operators: tensors to addresses, the C call, errors from its status."""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
from torch import Tensor

from nsc.contract.interface import Status
from nsc.contract.routings import ROUTINGS
from nsc.runtime.devices.pool import thread_pool
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.checks import (
    bad_target,
    check_tensors,
    check_values,
    checked_backward,
    checked_loss,
    no_rank,
    no_steepness,
)
from nsc.runtime.relaxed.derivatives import reference_vjp, through_loss
from nsc.runtime.relaxed.kernel import Kernel, find_kernel
from nsc.runtime.relaxed.library import Functions
from nsc.runtime.relaxed.shapes import (
    has_gradient,
    inner_contiguous,
    is_loss,
    output_shapes,
    real_of,
)

# Least comparators, of all samples together, whose weights are kept for the backward pass. Computing fewer
# again takes no longer than allocating memory for them.
_WORTH_KEEPING = 4000
_CODES = {name: routing.code for name, routing in ROUTINGS.items()}


def relax(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    """Implement `nsc::relax`; see `dispatch.entries.relax`."""
    kernel = find_kernel(spec)
    check_tensors(kernel, x, steepness, payload, routing)
    values, routed = relax_unchecked(x, steepness, payload, routing, spec)
    return values, x.new_empty(x.shape[0], 0) if routed is None else routed


def empty_kept(x: Tensor, routing: str, spec: str) -> Tensor | None:
    """Return memory for what the forward pass can keep for the backward pass; None: nothing."""
    functions = _functions(spec, x.dtype)
    if functions is None or x.shape[0] * find_kernel(spec).size < _WORTH_KEEPING:
        return None
    count = _count_kept(functions, _CODES[routing], x.shape[0])
    return x.new_empty(count) if count else None


@functools.lru_cache(maxsize=64)
def _count_kept(functions: Functions, routing: int, batch: int) -> int:
    """Return how many numbers the forward pass is to keep for the backward pass."""
    return functions.kept(routing, batch)


def _functions(spec: str, dtype: torch.dtype) -> Functions | None:
    """Return a kernel's functions for an arithmetic type; None: the plain reference serves.

    They may be others at the next call.
    """
    library = find_kernel(spec).library()
    return library.functions[real_of(dtype)] if library else None


def relax_unchecked(
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Do what `relax` does without argument checks; routing "none" gives None for its empty result."""
    functions = _functions(spec, x.dtype)
    if functions is None:
        return _relax_by_reference(find_kernel(spec), x, steepness, payload, routing)
    routed = None if routing == "none" else _empty_routed(x, payload, routing, spec)
    x = x.contiguous()
    payload = inner_contiguous(payload)
    values = torch.empty_like(x)
    status = functions.forward(
        *_call(x, steepness, payload, routing),
        values.data_ptr(),
        None if routed is None else routed.data_ptr(),
        None if kept is None else kept.data_ptr(),
        thread_pool(),
    )
    if status:
        raise _error(status, find_kernel(spec), routing, steepness)
    return values, routed


def _empty_routed(x: Tensor, payload: Tensor | None, routing: str, spec: str) -> Tensor:
    """Return memory for what is routed.

    Raises:
        MemoryError: the system has none; P of 65,536 wires takes 17 GB a sample in float32.
    """
    shape = output_shapes(x, payload, routing)[1]
    try:
        return x.new_empty(*shape)
    except RuntimeError:
        size = math.prod(shape) * x.element_size()
        raise MemoryError(
            f"{find_kernel(spec).name}: no memory for results of {' × '.join(map(str, shape))} numbers, "
            f"{size / 1e9:,.1f} GB: take fewer samples or columns at once; sort, rank, top_k_weights and "
            "losses store no P"
        ) from None


def _relax_by_reference(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor]:
    check_values(kernel, steepness, payload, routing)
    values, routed = reference.relax(kernel, x, steepness, payload, routing)
    return _apart(values, x, steepness), _apart(routed, x, payload)


def relax_backward_unchecked(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
    with_steepness: bool = True,
    with_payload: bool = True,
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward` does without argument checks; gradients that are not needed are None.

    The weights are computed anew unless `relax_unchecked` kept them for the same arguments.
    """
    if routed_grad is not None and is_loss(routing):
        assert payload is not None
        return through_loss(
            loss, relax_backward_unchecked, values_grad, routed_grad, x, steepness, payload, routing, spec
        )
    functions = _functions(spec, x.dtype)
    if functions is None:
        grads = reference_vjp(values_grad, routed_grad, x, steepness, payload, routing, spec)
        inputs = (values_grad, routed_grad, x, steepness, payload)
        payload_grad = _apart(grads[2], *inputs) if has_gradient(routing) else None
        return _apart(grads[0], *inputs), _apart(grads[1], *inputs), payload_grad
    x = x.contiguous()
    x_grad = torch.empty_like(x)
    steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
    payload_grad = None
    if with_payload and payload is not None and has_gradient(routing):
        payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
    payload = inner_contiguous(payload)
    values_grad = None if values_grad is None else values_grad.contiguous()
    routed_grad = None if routed_grad is None else routed_grad.contiguous()
    status = functions.backward(
        *_call(x, steepness, payload, routing),
        None if values_grad is None else values_grad.data_ptr(),
        None if routed_grad is None else routed_grad.data_ptr(),
        x_grad.data_ptr(),
        None if steepness_grad is None else steepness_grad.data_ptr(),
        None if payload_grad is None else payload_grad.data_ptr(),
        None,
        None if kept is None else kept.data_ptr(),
        thread_pool(),
    )
    if status:
        raise _error(status, find_kernel(spec), routing, steepness)
    return x_grad, steepness_grad, payload_grad


relax_backward = checked_backward(relax_backward_unchecked)


def loss_unchecked(
    x: Tensor,
    steepness: Tensor,
    target: Tensor,
    routing: str,
    spec: str,
    with_steepness: bool = True,
    with_target: bool = True,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Do what `loss` does without argument checks; gradients that are not needed are None."""
    functions = _functions(spec, x.dtype)
    if functions is None:
        kernel = find_kernel(spec)
        check_values(kernel, steepness, target, routing)
        losses = reference.relax(kernel, x, steepness, target, routing)[1]
        losses_grad = torch.ones_like(losses)
        grads = reference_vjp(None, losses_grad, x, steepness, target, routing, spec)
        of_target = _apart(grads[2], target) if has_gradient(routing) else None
        return losses, _apart(grads[0], x), _apart(grads[1], steepness), of_target
    x = x.contiguous()
    target = target.contiguous()
    losses, x_grad = x.new_empty(x.shape[0]), torch.empty_like(x)
    steepness_grad = x.new_empty(x.shape[0]) if with_steepness else None
    target_grad = torch.empty_like(target) if with_target and has_gradient(routing) else None
    status = functions.backward(
        *_call(x, steepness, target, routing),
        None,
        None,
        x_grad.data_ptr(),
        None if steepness_grad is None else steepness_grad.data_ptr(),
        None if target_grad is None else target_grad.data_ptr(),
        losses.data_ptr(),
        None,
        thread_pool(),
    )
    if status:
        raise _error(status, find_kernel(spec), routing, steepness)
    return losses, x_grad, steepness_grad, target_grad


loss = checked_loss(loss_unchecked)


def _call(x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> tuple[Any, ...]:
    """Return the arguments that forward and backward share."""
    code, stride = _CODES[routing], steepness.stride()[0]
    if payload is None:
        return code, x.shape[0], x.data_ptr(), steepness.data_ptr(), stride, None, 0, 0
    columns = payload.data_ptr(), payload.stride(0), payload.shape[-1]
    return code, x.shape[0], x.data_ptr(), steepness.data_ptr(), stride, *columns


def _apart(result: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return the result, contiguous and with memory of its own, as an operator must."""
    result = result.contiguous()
    memory = {t.untyped_storage().data_ptr() for t in inputs if t is not None}
    return result.clone() if result.untyped_storage().data_ptr() in memory else result


def _error(status: int, kernel: Kernel, routing: str, steepness: Tensor) -> Exception:
    """Return the error for what a kernel's function answered."""
    match Status(status):
        case Status.BAD_STEEPNESS:
            return no_steepness(kernel, routing, steepness)
        case Status.BAD_TARGET:
            return bad_target(kernel, routing)
        case Status.NO_RANK:
            return no_rank(kernel, routing)
        case _:
            return _out_of_memory(kernel)


def _out_of_memory(kernel: Kernel) -> MemoryError:
    return MemoryError(f"{kernel.name}: not enough memory for the weights of one sample")
