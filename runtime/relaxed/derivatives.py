"""Derivatives that no kernel has: by the plain torch reference, and through a loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.call import Call, has_gradient


def reference_vjp(
    call: Call, values_grad: Tensor | None, routed_grad: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return what `nsc::relax_backward` does, in differentiable torch operations."""
    x, steepness, payload, routing, kernel, _ = call
    differentiable = payload if has_gradient(routing) else None

    def outputs(*inputs: Tensor) -> tuple[Tensor, Tensor]:
        used = inputs[2] if differentiable is not None else payload
        return reference.relax(kernel, inputs[0], inputs[1], used, routing)

    inputs = (x, steepness) if differentiable is None else (x, steepness, differentiable)
    (values, routed), pullback = torch.func.vjp(outputs, *inputs)  # type: ignore[misc]
    cotangents = (
        torch.zeros_like(values) if values_grad is None else values_grad,
        torch.zeros_like(routed) if routed_grad is None else routed_grad,
    )
    grads = pullback(cotangents)
    return grads[0], grads[1], grads[2] if differentiable is not None else x.new_empty(0)


def second_vjp(
    saved: tuple[Tensor | None, ...], cotangents: tuple[Tensor | None, ...], routing: str, spec: str
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `nsc::relax_backward` with respect to its five tensors."""
    places = [place for place, t in enumerate(saved) if t is not None and t.dtype.is_floating_point]

    def backward(*chosen: Tensor) -> tuple[Tensor, ...]:
        tensors = list(saved)
        for place, tensor in zip(places, chosen, strict=True):
            tensors[place] = tensor
        values_grad, routed_grad, *inputs = tensors
        return reference_vjp(Call.of(*inputs, routing, spec), values_grad, routed_grad)  # type: ignore[call-arg, arg-type]

    chosen = [t for t in map(saved.__getitem__, places) if t is not None]
    outputs, pullback = torch.func.vjp(backward, *chosen)  # type: ignore[misc]
    filled = tuple(
        torch.zeros_like(output) if cotangent is None else cotangent
        for output, cotangent in zip(outputs, cotangents, strict=True)
    )
    grads: list[Tensor | None] = [None] * len(saved)
    for place, grad in zip(places, pullback(filled), strict=True):
        grads[place] = grad
    return tuple(grads)


def through_loss(
    loss: Callable[..., tuple[Tensor, Tensor, Tensor | None, Tensor | None]],
    backward: Callable[..., tuple[Tensor, Tensor | None, Tensor | None]],
    call: Call,
    values_grad: Tensor | None,
    routed_grad: Tensor,
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the gradients of x, steepness and a target of shares, for gradients of values and losses.

    Gradients of the losses are multiplied in last: inside the kernels products could leave the normal
    numbers.
    """
    _, x_grad, steepness_grad, target_grad = loss(call)
    assert steepness_grad is not None
    x_grad, steepness_grad = x_grad * routed_grad.unsqueeze(-1), steepness_grad * routed_grad
    if values_grad is not None:
        grads_of_values = backward(call._replace(payload=None, routing="none"), values_grad, None)
        assert grads_of_values[1] is not None
        x_grad, steepness_grad = x_grad + grads_of_values[0], steepness_grad + grads_of_values[1]
    return x_grad, steepness_grad, None if target_grad is None else target_grad * routed_grad.view(-1, 1, 1)
