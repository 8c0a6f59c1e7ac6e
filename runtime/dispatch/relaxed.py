"""The operators of relaxed networks: how a call reaches a kernel, and its gradient on every way.

An operator's methods call `relax` and `loss`. Plain tensors pass `PlainRelax` and `PlainLoss`, which stand
around the C calls. All others pass the operators of torch: `nsc::relax` and `nsc::relax_backward` do all that
is soft, `nsc::loss` a loss and its gradient at once. These are defined once at import, and name their kernel
by a string. So compiled, traced and exported programs find it in any process that has imported its package.

The plain torch reference gives forward mode, and the derivatives of `nsc::relax_backward`.
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
from nsc.runtime.dispatch.registering import below, register_operator
from nsc.runtime.dispatch.ways import PLAIN, Way, is_written_out, way_of
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.call import Call, has_gradient, output_shapes
from nsc.runtime.relaxed.checks import check_call, check_grads, check_loss, check_values
from nsc.runtime.relaxed.derivatives import reference_vjp, second_vjp
from nsc.runtime.relaxed.devices import BY_DEVICE, DEVICES, Implementation


def relax(way: Way, call: Call) -> tuple[Tensor, Tensor | None]:
    """Run the keys pass and a routing, by the way of the tensors; results as `Implementation.relax`."""
    if way is not PLAIN:
        if is_written_out():
            return reference.relax(call.kernel, call.x, call.steepness, call.payload, call.routing)
        return torch.ops.nsc.relax(*call.flat)  # type: ignore[no-any-return]
    if _needs_gradient(call):
        return apply_relax(*call[:3], call)  # type: ignore[no-any-return]
    return _serving(call).relax(call)


def loss(way: Way, call: Call, is_mean: bool) -> Tensor:
    """Run a routing that is a loss and return it for each sample, (batch,), or, of plain tensors, its mean.

    Arguments as in `relax`. If a gradient will be needed, it is computed in the same pass over P, block by
    block.
    """
    if _needs_gradient(call):
        match way:
            case Way.PLAIN:
                return apply_loss(*call[:3], call, is_mean)  # type: ignore[no-any-return]
            case Way.COMPILED if not is_written_out():
                return torch.ops.nsc.loss(*call.flat)[0]  # type: ignore[no-any-return]
            case _:  # no transform could differentiate the gradient that `nsc::loss` works out
                pass
    losses = relax(way, call)[1]
    assert losses is not None
    return _mean(losses) if is_mean else losses


def _needs_gradient(call: Call) -> bool:
    payload = call.payload
    return (
        call.x.requires_grad
        or call.steepness.requires_grad
        or (payload is not None and payload.requires_grad)
    ) and torch.is_grad_enabled()


def _serving(call: Call) -> Implementation:
    """Return what serves plain tensors: their device, class by class where the call has size classes."""
    if call.classes:
        return by_class
    return BY_DEVICE[call.x.device]  # type: ignore[no-any-return]


class PlainRelax(torch.autograd.Function):
    """`relax` of plain tensors, with its gradient.

    It takes the tensors of a call one by one, so that autograd sees them, and then the call itself.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, steepness: Tensor, payload: Tensor | None, call: Call) -> Any:
        kept = _serving(call).empty_kept(call)
        ctx.rest = call[3:]  # not the call, which would keep the tensors behind the back of autograd
        ctx.save_for_backward(x, steepness, payload, kept)
        ctx.set_materialize_grads(False)
        return _serving(call).relax(call, kept)

    @staticmethod
    def backward(ctx: Any, values_grad: Tensor | None, routed_grad: Tensor | None) -> Any:
        if values_grad is None and routed_grad is None:
            return (None,) * 4
        # Read once: a checkpoint hands them out only once.
        x, steepness, payload, kept = ctx.saved_tensors
        call = Call(x, steepness, payload, *ctx.rest)
        if torch.is_grad_enabled() or way_of(values_grad, routed_grad) is not PLAIN:
            return *_by_operator(call.flat, values_grad, routed_grad), None
        needs = ctx.needs_input_grad[1:3]
        return *_serving(call).relax_backward(call, values_grad, routed_grad, needs, kept), None


class PlainLoss(torch.autograd.Function):
    """`loss` of plain tensors. It takes the arguments of `PlainRelax`, and whether the mean is wanted."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, steepness: Tensor, target: Tensor, call: Call, is_mean: bool) -> Tensor:
        losses, *grads = _serving(call).loss(call, ctx.needs_input_grad[1:3])
        _save_loss(ctx, (x, steepness, target, *grads), call.routing, call.kernel.spec, is_mean)
        return _mean(losses) if is_mean else losses

    @staticmethod
    def backward(ctx: Any, grad: Tensor | None) -> Any:
        return *_loss_gradients(ctx, grad), None, None


def _save_loss(ctx: Any, tensors: tuple[Tensor | None, ...], routing: str, spec: str, is_mean: bool) -> None:
    """Keep the tensors of a loss, and the gradients that it worked out."""
    ctx.routing, ctx.spec, ctx.is_mean = routing, spec, is_mean
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _loss_gradients(ctx: Any, grad: Tensor | None) -> tuple[Tensor | None, ...]:
    """Return the gradients of a loss with respect to its tensors."""
    if grad is None:
        return None, None, None
    # Read once: a checkpoint hands them out only once.
    x, steepness, target, x_grad, steepness_grad, target_grad = ctx.saved_tensors
    grad = dense(grad) / x.shape[0] if ctx.is_mean else dense(grad)
    if torch.is_grad_enabled():  # the gradient will be differentiated, so it must depend on the inputs
        sample_grads = grad.expand(x.shape[0]) if ctx.is_mean else grad
        return _by_operator((x, steepness, target, ctx.routing, ctx.spec), None, sample_grads)
    # A number serves gradients of any shape.
    sample_grads = grad if ctx.is_mean else grad.unsqueeze(-1)
    scaled_steepness_grad = None if steepness_grad is None else grad * steepness_grad
    scaled_target_grad = None
    if target_grad is not None and has_gradient(ctx.routing):
        scaled_target_grad = sample_grads.unsqueeze(-1) * target_grad
    return sample_grads * x_grad, scaled_steepness_grad, scaled_target_grad


def _by_operator(
    flat: tuple[Any, ...], values_grad: Tensor | None, routed_grad: Tensor | None
) -> tuple[Tensor | None, ...]:
    """Return the gradients of `nsc::relax`, which can be differentiated again."""
    grads = torch.ops.nsc.relax_backward(dense(values_grad), dense(routed_grad), *flat)
    return grads[0], grads[1], grads[2] if has_gradient(flat[3]) else None


def dense(grad: Any) -> Any:
    """Return a gradient with dense memory: torch's sparse embeddings give sparse ones. None stays None."""
    return grad if grad is None or grad.layout is torch.strided else grad.to_dense()


def _mean(losses: Tensor) -> Tensor:
    """Return the mean, summed in float64 as a sum of weighted losses is, for the same bits."""
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
        _save(ctx, args)
        return _below_function("relax", keyset, args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if all(grad is None for grad in grads):
            return (None,) * 6
        flat = *ctx.saved_tensors[:3], ctx.routing, ctx.spec
        return None, *_by_operator(flat, *grads), None, None


class _RelaxBackward(_SingleLevelFunction):
    @staticmethod
    def forward(ctx: Any, keyset: Any, *args: Any) -> Any:
        _save(ctx, args)
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
        *tensors, routing, spec = args
        _save_loss(ctx, (*tensors, *grads), routing, spec, is_mean=False)
        ctx.mark_non_differentiable(*grads)
        return losses, *grads

    @staticmethod
    def backward(ctx: Any, grad: Any, *_: Any) -> Any:
        return None, *_loss_gradients(ctx, grad), None, None


def _save(ctx: Any, args: tuple[Any, ...]) -> None:
    """Keep the arguments of an operator for its gradient."""
    *tensors, ctx.routing, ctx.spec = args
    ctx.save_for_backward(*tensors)
    # A loss on the values alone must not allocate an n × n zero gradient for P.
    ctx.set_materialize_grads(False)


def _relax_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, Tensor]:
    call = Call.of(*args)
    if way_of(*call[:3], with_tangents=False) is PLAIN:
        check_values(call)
    return reference.relax(call.kernel, call.x, call.steepness, call.payload, call.routing)


def _relax_backward_by_reference(
    keyset: Any, values_grad: Tensor | None, routed_grad: Tensor | None, *args: Any
) -> tuple[Tensor, ...]:
    if torch._C._are_functorch_transforms_active():  # torch.func cannot begin a level inside an operator
        raise OperandError(
            f"{args[-1]}: torch.func has no forward mode of a gradient that was taken before: take both "
            "in one function, as jvp of grad"
        )
    return reference_vjp(Call.of(*args), values_grad, routed_grad)


def _loss_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, ...]:
    return _relax_by_reference(keyset, *args)[1], *below("loss", keyset, args)[1:]


def _autograd_kernel(
    name: str, function: type[_SingleLevelFunction], by_reference: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an operator's kernel for the Autograd key: its gradient, and for forward mode the reference."""

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


def _relax_of(device: Implementation) -> Callable[..., Any]:
    """Return `nsc::relax` for a device."""

    def checked(*args: Any) -> tuple[Tensor, Tensor]:
        check_call(call := Call.of(*args))
        values, routed = device.relax(call)
        return values, values.new_empty(values.shape[0], 0) if routed is None else routed

    return checked


def _relax_backward_of(device: Implementation) -> Callable[..., Any]:
    """Return `nsc::relax_backward` for a device: an incoming gradient that is None counts as zero."""

    def checked(values_grad: Tensor | None, routed_grad: Tensor | None, *args: Any) -> tuple[Any, ...]:
        check_call(call := Call.of(*args))
        check_grads(call, values_grad, routed_grad)
        return _without_none(device.relax_backward(call, values_grad, routed_grad))

    return checked


def _loss_of(device: Implementation) -> Callable[..., Any]:
    """Return `nsc::loss` for a device."""

    def checked(*args: Any) -> tuple[Any, ...]:
        check_call(call := Call.of(*args))
        check_loss(call)
        return _without_none(device.loss(call))

    return checked


def _without_none(results: tuple[Tensor | None, ...]) -> tuple[Any, ...]:
    """Return the results of an operator; none of them may be missing."""
    *others, last = results
    assert others[0] is not None
    return *others, others[0].new_empty(0) if last is None else last


def _fake_relax(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    values, routed = output_shapes(x, payload, routing)
    return x.new_empty(values), x.new_empty(routed)


def _fake_grads(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor, Tensor]:
    shape = payload.shape if payload is not None and has_gradient(routing) else (0,)
    return x.new_empty(x.shape), x.new_empty((x.shape[0],)), x.new_empty(shape)


def _vmap(call: Callable[..., Any], info: Any, dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    """Fold the mapped dimension into the batch, call, and unfold."""
    size = info.batch_size

    def fold(argument: Any, dim: int | None) -> Any:
        if not isinstance(argument, Tensor):
            return argument
        moved = argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)
        return moved.reshape(size * moved.shape[1], *moved.shape[2:])

    outputs = call(*(fold(argument, dim) for argument, dim in zip(args, dims, strict=True)))
    return tuple(out.reshape(size, out.shape[0] // size, *out.shape[1:]) for out in outputs), (0,) * len(
        outputs
    )


_CALL = "Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel"
for _name, _schema, _of, _fake, _function, _by_reference in (
    (
        "relax",
        f"({_CALL}) -> (Tensor values, Tensor routed)",
        _relax_of,
        _fake_relax,
        _Relax,
        _relax_by_reference,
    ),
    (
        "relax_backward",
        f"(Tensor? values_grad, Tensor? routed_grad, {_CALL}) -> (Tensor, Tensor, Tensor)",
        _relax_backward_of,
        lambda values_grad, routed_grad, *args: _fake_grads(*args),
        _RelaxBackward,
        _relax_backward_by_reference,
    ),
    (
        "loss",
        "(Tensor x, Tensor steepness, Tensor target, str routing, str kernel)"
        " -> (Tensor losses, Tensor x_grad, Tensor steepness_grad, Tensor target_grad)",
        _loss_of,
        lambda x, *args: (x.new_empty((x.shape[0],)), *_fake_grads(x, *args)),
        _Loss,
        _loss_by_reference,
    ),
):
    register_operator(
        _name,
        _schema,
        {device: _of(implementation) for device, implementation in DEVICES.items()},
        fake=_fake,
        vmap=_vmap,
        autograd=_autograd_kernel(_name, _function, _by_reference),
    )
