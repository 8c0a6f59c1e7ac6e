"""Autograd: the gradients of the operators, on every way.

`PlainRelax` and `PlainLoss` stand around the C calls for plain tensors. `RELAX`, `RELAX_BACKWARD` and
`LOSS` are the operators' kernels for the dispatcher's Autograd key, see `registering`. Forward mode, and the
derivatives of `nsc::relax_backward`, are those of the plain torch reference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch._subclasses.fake_tensor import is_fake
from torch.autograd.function import _SingleLevelFunction

from nsc.errors import OperandError
from nsc.runtime.dispatch import by_class
from nsc.runtime.dispatch.registering import AutogradKernel, below
from nsc.runtime.dispatch.ways import PLAIN, Way, way_of
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.checks import check_values
from nsc.runtime.relaxed.derivatives import reference_vjp, second_vjp
from nsc.runtime.relaxed.devices import BY_DEVICE
from nsc.runtime.relaxed.kernel import find_kernel
from nsc.runtime.relaxed.shapes import has_gradient

# What a gradient formula returns: a gradient for each argument of the operator.
Gradients = tuple[Any, ...]


def save_relax(ctx: Any, *args: Any) -> None:
    """Keep the arguments of `nsc::relax` for its gradient."""
    *tensors, ctx.routing, ctx.spec = args
    ctx.save_for_backward(*tensors)
    # A loss on the values alone must not allocate an n × n zero gradient for P.
    ctx.set_materialize_grads(False)


def relax_gradients(ctx: Any, values_grad: Tensor | None, routed_grad: Tensor | None) -> Gradients:
    """Return the gradients of `nsc::relax`, themselves differentiable."""
    if values_grad is None and routed_grad is None:
        return (None,) * 5
    inputs = ctx.saved_tensors[:3]
    grads = torch.ops.nsc.relax_backward(
        dense(values_grad), dense(routed_grad), *inputs, ctx.routing, ctx.spec
    )
    return grads[0], grads[1], grads[2] if has_gradient(ctx.routing) else None, None, None


def save_loss(ctx: Any, args: tuple[Any, ...], grads: tuple[Tensor | None, ...]) -> None:
    """Keep the arguments of `nsc::loss` and the gradients that it worked out."""
    *tensors, ctx.routing, ctx.spec = args
    ctx.save_for_backward(*tensors, *grads)
    ctx.set_materialize_grads(False)


def loss_gradients(ctx: Any, losses_grad: Tensor | None, *_: Any) -> Gradients:
    """Return the gradients of `nsc::loss`."""
    if losses_grad is None:
        return (None,) * 5
    *inputs, x_grad, steepness_grad, target_grad = ctx.saved_tensors
    losses_grad = dense(losses_grad)
    of_target = None
    if torch.is_grad_enabled():  # the gradient will be differentiated, so it must depend on the inputs
        grads = torch.ops.nsc.relax_backward(None, losses_grad, *inputs, ctx.routing, ctx.spec)
        return grads[0], grads[1], grads[2] if has_gradient(ctx.routing) else None, None, None
    if has_gradient(ctx.routing):
        of_target = losses_grad.view(-1, 1, 1) * target_grad
    return losses_grad.unsqueeze(-1) * x_grad, losses_grad * steepness_grad, of_target, None, None


def dense(grad: Any) -> Any:
    """Return a gradient with dense memory, which those of torch's sparse embeddings lack; None stays None."""
    return grad if grad is None or grad.layout is torch.strided else grad.to_dense()


class PlainRelax(torch.autograd.Function):
    """The kernel for plain tensors, or those of size classes."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        x, steepness, payload, routing, spec, classes = args
        device = BY_DEVICE[x.device]
        kept = None if classes else device.empty_kept(x, routing, spec)
        ctx.routing, ctx.spec, ctx.classes = routing, spec, classes
        ctx.save_for_backward(x, steepness, payload, kept)
        ctx.set_materialize_grads(False)
        if classes:
            return by_class.relax(device, x, steepness, payload, routing, classes)
        return device.relax_unchecked(x, steepness, payload, routing, spec, kept)

    @staticmethod
    def backward(ctx: Any, values_grad: Tensor | None, routed_grad: Tensor | None) -> Any:
        if torch.is_grad_enabled() or way_of(values_grad, routed_grad) is not PLAIN:
            return *relax_gradients(ctx, values_grad, routed_grad), None
        if values_grad is None and routed_grad is None:
            return (None,) * 6
        x, steepness, payload, kept = ctx.saved_tensors  # read once: a checkpoint hands them out only once
        _, needs_steepness, needs_payload, *_ = ctx.needs_input_grad
        device, inputs = BY_DEVICE[x.device], (values_grad, routed_grad, x, steepness, payload, ctx.routing)
        needs = needs_steepness, needs_payload
        if ctx.classes:
            grads = by_class.relax_backward(device, *inputs, ctx.classes, *needs)
        else:
            grads = device.relax_backward_unchecked(*inputs, ctx.spec, *needs, kept)
        return *grads, None, None, None


class PlainLoss(torch.autograd.Function):
    """The losses of the samples, or their mean, and the gradients, for plain tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        x, steepness, target, routing, spec, is_mean, classes = args
        device, needs = BY_DEVICE[x.device], ctx.needs_input_grad[1:3]
        if classes:
            found = by_class.loss(device, x, steepness, target, routing, classes, *needs)
        else:
            found = device.loss_unchecked(x, steepness, target, routing, spec, *needs)
        losses, x_grad, steepness_grad, target_grad = found
        ctx.routing, ctx.spec, ctx.is_mean = routing, spec, is_mean
        ctx.save_for_backward(x, steepness, target, x_grad, steepness_grad, target_grad)
        ctx.set_materialize_grads(False)
        return mean(losses) if is_mean else losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Gradients:
        if grad is None:
            return (None,) * 7
        # Read once: a checkpoint hands them out only once.
        x, steepness, target, x_grad, steepness_grad, target_grad = ctx.saved_tensors
        loss_grad = dense(grad) / x.shape[0] if ctx.is_mean else dense(grad)
        if torch.is_grad_enabled():  # the gradient will be differentiated, so it must depend on the inputs
            losses_grad = loss_grad.expand(x.shape[0])
            grads = torch.ops.nsc.relax_backward(
                None, losses_grad, x, steepness, target, ctx.routing, ctx.spec
            )
            of_target = grads[2] if has_gradient(ctx.routing) else None
            return grads[0], grads[1], of_target, None, None, None, None
        of_steepness = None if steepness_grad is None else loss_grad * steepness_grad
        # A number serves gradients of any shape.
        of_samples = loss_grad if ctx.is_mean else loss_grad.unsqueeze(-1)
        of_target = None if target_grad is None else of_samples.unsqueeze(-1) * target_grad
        return of_samples * x_grad, of_steepness, of_target, None, None, None, None


def mean(losses: Tensor) -> Tensor:
    """Return the mean with the bits that a sum of weighted losses has, which is one in float64."""
    return losses.mean(dtype=torch.float64).to(losses.dtype)


# How both are called. `Function.apply` looks for transforms of torch.func first, which takes as long as a
# small sort. `way_of` has looked already.
apply_relax: Callable[..., Any] = super(torch.autograd.Function, PlainRelax).apply
apply_loss: Callable[..., Any] = super(torch.autograd.Function, PlainLoss).apply


def _below_function(name: str, keyset: Any, args: tuple[Any, ...]) -> Any:
    """Call `below` from a Function's forward.

    Gradients are off there. They go back on for outer levels of torch.func.
    """
    with torch.enable_grad():
        return below(name, keyset, args)


class _Relax(_SingleLevelFunction):
    @staticmethod
    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        save_relax(ctx, *args)
        return _below_function("relax", keyset, args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *relax_gradients(ctx, *grads)


class _RelaxBackward(_SingleLevelFunction):
    @staticmethod
    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        save_relax(ctx, *args)
        return _below_function("relax_backward", keyset, args)

    @staticmethod
    def backward(ctx: Any, *cotangents: Any) -> Any:
        if all(cotangent is None for cotangent in cotangents):
            return (None,) * 8
        return None, *second_vjp(ctx.saved_tensors, cotangents, ctx.routing, ctx.spec), None, None


class _Loss(_SingleLevelFunction):
    @staticmethod
    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        losses, *grads = _below_function("loss", keyset, args)
        save_loss(ctx, args, tuple(grads))
        ctx.mark_non_differentiable(*grads)
        return losses, *grads

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, *loss_gradients(ctx, *grads)


def _relax_by_reference(
    keyset: Any, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    kernel = find_kernel(spec)
    if way_of(x, steepness, payload, with_tangents=False) is PLAIN:
        check_values(kernel, steepness, payload, routing)
    return reference.relax(kernel, x, steepness, payload, routing)


def _relax_backward_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, ...]:
    if torch._C._are_functorch_transforms_active():  # torch.func cannot begin a level inside an operator
        raise OperandError(
            f"{args[-1]}: torch.func has no forward mode of a gradient that was taken before: take both "
            "in one function, as jvp of grad"
        )
    return reference_vjp(*args)


def _loss_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, ...]:
    return _relax_by_reference(keyset, *args)[1], *below("loss", keyset, args)[1:]


def _autograd_kernel(
    name: str, function: type[_SingleLevelFunction], by_reference: Callable[..., Any]
) -> AutogradKernel:
    """Return an operator's kernel for the Autograd key.

    Args:
        name: the operator's.
        function: its gradient.
        by_reference: the operator in differentiable operations of torch, for forward mode.
    """

    def call(keyset: Any, *args: Any) -> Any:
        if way_of() is Way.FORWARD:
            if any(is_fake(tensor) for tensor in args):
                raise OperandError(
                    f"{args[-1]}: forward mode (jvp, jacfwd, hessian) is not compiled: call it outside "
                    "torch.compile, or compile vjp, jacrev or grad"
                )
            return by_reference(keyset, *args)
        if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            return below(name, keyset, args)
        # Inside torch.func the dispatcher has already chosen the level of this gradient.
        with enable_single_level_autograd_function():
            return function.apply(keyset, *args)  # type: ignore[attr-defined]

    return call


RELAX = _autograd_kernel("relax", _Relax, _relax_by_reference)
RELAX_BACKWARD = _autograd_kernel("relax_backward", _RelaxBackward, _relax_backward_by_reference)
LOSS = _autograd_kernel("loss", _Loss, _loss_by_reference)
