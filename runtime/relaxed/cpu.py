"""The CPU implementation of the operators: tensors to addresses, the C call, errors from its status."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from nsc.contract.interface import Status
from nsc.contract.routings import ROUTINGS
from nsc.runtime.devices.pool import thread_pool
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.call import Call, has_gradient, inner_contiguous, is_loss, output_shapes, real_of
from nsc.runtime.relaxed.checks import bad_target, check_values, no_rank, no_steepness
from nsc.runtime.relaxed.derivatives import reference_vjp, through_loss
from nsc.runtime.relaxed.library import Functions

_CODES = {name: routing.code for name, routing in ROUTINGS.items()}


def _functions(call: Call) -> Functions | None:
    """Return the functions for a call, perhaps not for the next one; None: the plain reference serves."""
    return (call.kernel.serving or call.kernel.library()).functions[real_of(call.x.dtype)]


def empty_kept(call: Call) -> None:
    """Return None: nothing is kept, as computing weights again takes no longer."""


def relax(call: Call, kept: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Run the keys pass and a routing; see `Implementation`."""
    functions = _functions(call)
    x, steepness, payload, routing, kernel, _ = call
    if functions is None:
        check_values(call)
        values, found = reference.relax(kernel, x, steepness, payload, routing)
        return _own_copy(values, x, steepness), _own_copy(found, x, payload)
    routed = None if routing == "none" else _empty_routed(call)
    x, payload = x.contiguous(), inner_contiguous(payload)
    values = torch.empty_like(x)
    status = functions.forward(
        *_operands(x, steepness, payload, routing),
        values.data_ptr(),
        None if routed is None else routed.data_ptr(),
        thread_pool(),
    )
    if status:
        raise _error(status, call)
    return values, routed


def _empty_routed(call: Call) -> Tensor:
    """Return memory for what is routed: P of 65,536 wires takes 17 GB a sample in float32."""
    shape = output_shapes(call.x, call.payload, call.routing)[1]
    try:
        return call.x.new_empty(*shape)
    except RuntimeError:
        size = math.prod(shape) * call.x.element_size()
        raise MemoryError(
            f"{call.kernel.name}: no memory for results of {' × '.join(map(str, shape))} numbers, "
            f"{size / 1e9:,.1f} GB: take fewer samples or columns at once; sort, rank, top_k_weights and "
            "losses store no P"
        ) from None


def relax_backward(
    call: Call,
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    needs: tuple[bool, bool] = (True, True),
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Return the gradients of x, steepness and payload; see `Implementation`."""
    if routed_grad is not None and is_loss(call.routing):
        return through_loss(loss, relax_backward, call, values_grad, routed_grad)
    functions = _functions(call)
    x, steepness, payload, routing, *_ = call
    if functions is None:
        grads = reference_vjp(call, values_grad, routed_grad)
        inputs = (values_grad, routed_grad, x, steepness, payload)
        payload_grad = _own_copy(grads[2], *inputs) if has_gradient(routing) else None
        return _own_copy(grads[0], *inputs), _own_copy(grads[1], *inputs), payload_grad
    x = x.contiguous()
    x_grad = torch.empty_like(x)
    steepness_grad = x.new_empty(x.shape[0]) if needs[0] else None
    payload_grad = None
    if needs[1] and payload is not None and has_gradient(routing):
        payload_grad = x.new_zeros(payload.shape) if routed_grad is None else x.new_empty(payload.shape)
    payload = inner_contiguous(payload)
    values_grad = None if values_grad is None else values_grad.contiguous()
    routed_grad = None if routed_grad is None else routed_grad.contiguous()
    status = functions.backward(
        *_operands(x, steepness, payload, routing),
        None if values_grad is None else values_grad.data_ptr(),
        None if routed_grad is None else routed_grad.data_ptr(),
        x_grad.data_ptr(),
        None if steepness_grad is None else steepness_grad.data_ptr(),
        None if payload_grad is None else payload_grad.data_ptr(),
        None,
        thread_pool(),
    )
    if status:
        raise _error(status, call)
    return x_grad, steepness_grad, payload_grad


def loss(
    call: Call, needs: tuple[bool, bool] = (True, True)
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Return the losses and their gradients of x, steepness and target; see `Implementation`."""
    functions = _functions(call)
    x, steepness, target, routing, kernel, _ = call
    assert target is not None
    if functions is None:
        check_values(call)
        losses = reference.relax(kernel, x, steepness, target, routing)[1]
        grads = reference_vjp(call, None, torch.ones_like(losses))
        target_grad = _own_copy(grads[2], target) if has_gradient(routing) else None
        return losses, _own_copy(grads[0], x), _own_copy(grads[1], steepness), target_grad
    x, target = x.contiguous(), target.contiguous()
    losses, x_grad = x.new_empty(x.shape[0]), torch.empty_like(x)
    steepness_grad = x.new_empty(x.shape[0]) if needs[0] else None
    target_grad = torch.empty_like(target) if needs[1] and has_gradient(routing) else None
    status = functions.backward(
        *_operands(x, steepness, target, routing),
        None,
        None,
        x_grad.data_ptr(),
        None if steepness_grad is None else steepness_grad.data_ptr(),
        None if target_grad is None else target_grad.data_ptr(),
        losses.data_ptr(),
        thread_pool(),
    )
    if status:
        raise _error(status, call)
    return losses, x_grad, steepness_grad, target_grad


def _operands(x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> tuple[Any, ...]:
    """Return the arguments that the C functions share."""
    code, stride = _CODES[routing], steepness.stride()[0]
    if payload is None:
        return code, x.shape[0], x.data_ptr(), steepness.data_ptr(), stride, None, 0, 0
    columns = payload.data_ptr(), payload.stride(0), payload.shape[-1]
    return code, x.shape[0], x.data_ptr(), steepness.data_ptr(), stride, *columns


def _own_copy(result: Tensor, *inputs: Tensor | None) -> Tensor:
    """Return the result, contiguous and with memory of its own, as an operator must."""
    result = result.contiguous()
    memory = {t.untyped_storage().data_ptr() for t in inputs if t is not None}
    return result.clone() if result.untyped_storage().data_ptr() in memory else result


def _error(status: int, call: Call) -> Exception:
    """Return the error for what a kernel's function answered."""
    match Status(status):
        case Status.BAD_STEEPNESS:
            return no_steepness(call)
        case Status.BAD_TARGET:
            return bad_target(call)
        case Status.NO_RANK:
            return no_rank(call)
        case _:
            return MemoryError(f"{call.kernel.name}: not enough memory for the weights of one sample")
