"""The operators as torch's dispatcher knows them: one static family, its kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::loss` a loss and its gradient at once,
`nsc::hard_sort` everything exact. They are defined once at import; kernels are built when first
called. Compiled, traced and exported programs keep the string, so they find their kernel in any process
that has imported its package.

An operator's kernel for the Autograd key is its derivative in every transform. torch's own
`register_autograd` would not do: its formulas are refused inside torch.func, and are silently zero in
forward mode. Forward mode, and the derivatives of `nsc::relax_backward`, are those of the plain torch
reference.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._functorch.utils import enable_single_level_autograd_function
from torch._subclasses.fake_tensor import is_fake
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from nsc.errors import OperandError
from nsc.runtime import reference
from nsc.runtime.checks import check_values
from nsc.runtime.derivatives import reference_vjp, second_vjp
from nsc.runtime.devices import cpu, cuda
from nsc.runtime.kernel import find
from nsc.runtime.shapes import empty_grads, empty_loss, empty_outputs, empty_sorted, has_columns

# What a gradient formula returns: a gradient for each argument of the operator.
Gradients = tuple[Any, ...]


def in_forward_mode() -> bool:
    """Return whether tensors may carry tangents."""
    return forward_ad._current_level >= 0


def is_watched(*tensors: Tensor | None) -> bool:
    """Return whether anything stands between a call and the memory of its tensors: a transform, a tracer, a
    dispatch mode, a subclass, a device or layout without kernels, a negation that is still to be done."""
    return (
        torch.compiler.is_compiling()
        or torch._C._are_functorch_transforms_active()
        or torch._C._is_tracing()
        or torch._C._len_torch_dispatch_stack() > 0
        or not all(
            t is None
            or (type(t) in _PLAIN and (t.is_cpu or t.is_cuda) and torch._C._has_storage(t) and not t.is_neg())
            for t in tensors
        )
    )


_PLAIN = (Tensor, torch.nn.Parameter)


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
    grads = torch.ops.nsc.relax_backward(
        _dense(values_grad), _dense(routed_grad), *ctx.saved_tensors, ctx.routing, ctx.spec
    )
    return grads[0], grads[1], grads[2] if has_columns(ctx.routing) else None, None, None


def save_loss(ctx: Any, args: tuple[Any, ...], grads: tuple[Tensor, ...]) -> None:
    """Keep the arguments of `nsc::loss` and the gradients that it worked out."""
    *tensors, ctx.routing, ctx.spec = args
    ctx.save_for_backward(*tensors, *grads)
    ctx.set_materialize_grads(False)


def loss_gradients(ctx: Any, losses_grad: Tensor | None, *_: Any) -> Gradients:
    """Return the gradients of `nsc::loss`."""
    if losses_grad is None:
        return (None,) * 5
    *inputs, x_grad, steepness_grad = ctx.saved_tensors
    losses_grad = _dense(losses_grad)
    if torch.is_grad_enabled():  # the gradient will be differentiated, so it must depend on the inputs
        grads = torch.ops.nsc.relax_backward(None, losses_grad, *inputs, ctx.routing, ctx.spec)
        return grads[0], grads[1], None, None, None
    return losses_grad.unsqueeze(-1) * x_grad, losses_grad * steepness_grad, None, None, None


def _dense(grad: Any) -> Any:
    return grad if grad is None or grad.layout is torch.strided else grad.to_dense()


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


def _below(name: str, keyset: Any, args: tuple[Any, ...]) -> Any:
    """Call what of an operator lies below its Autograd kernel."""
    with torch._C._AutoDispatchBelowAutograd():
        operator = getattr(torch.ops.nsc, name).default
        return operator.redispatch(keyset & torch._C._after_autograd_keyset, *args)


def _below_function(name: str, keyset: Any, args: tuple[Any, ...]) -> Any:
    """Do the same inside a Function, which turns gradients off: outer levels of torch.func lie below too."""
    with torch.enable_grad():
        return _below(name, keyset, args)


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
    kernel = find(spec)
    if not is_watched(x, steepness, payload):
        check_values(kernel, steepness, payload, routing)
    return reference.relax(kernel, x, steepness, payload, routing)


def _relax_backward_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, ...]:
    if torch._C._are_functorch_transforms_active():  # torch.func begins no level inside an operator
        raise OperandError(
            f"{args[-1]}: torch.func has no forward mode of a gradient that was taken before: take both "
            "in one function, as jvp of grad"
        )
    return reference_vjp(*args)


def _loss_by_reference(keyset: Any, *args: Any) -> tuple[Tensor, ...]:
    return _relax_by_reference(keyset, *args)[1], *_below("loss", keyset, args)[1:]


def _autograd(
    name: str, function: type[_SingleLevelFunction], by_reference: Callable[..., Any]
) -> Callable[..., Any]:
    """Return an operator's kernel for the Autograd key.

    Args:
        name: the operator's.
        function: its gradient.
        by_reference: the same in differentiable operations of torch, for forward mode.
    """

    def call(keyset: Any, *args: Any) -> Any:
        if in_forward_mode():
            if any(is_fake(tensor) for tensor in args):
                raise OperandError(
                    f"{args[-1]}: forward mode (jvp, jacfwd, hessian) is not compiled: call it outside "
                    "torch.compile, or compile vjp, jacrev or grad"
                )
            return by_reference(keyset, *args)
        if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            return _below(name, keyset, args)
        # Inside torch.func the dispatcher has already chosen the level whose gradient this is.
        with enable_single_level_autograd_function():
            return function.apply(keyset, *args)  # type: ignore[attr-defined]

    return call


_SCHEMAS = {
    "relax": "(Tensor x, Tensor steepness, Tensor? payload, str routing, str kernel)"
    " -> (Tensor values, Tensor routed)",
    "relax_backward": "(Tensor? values_grad, Tensor? routed_grad, Tensor x, Tensor steepness,"
    " Tensor? payload, str routing, str kernel) -> (Tensor, Tensor, Tensor)",
    "loss": "(Tensor x, Tensor steepness, Tensor target, str routing, str kernel)"
    " -> (Tensor losses, Tensor x_grad, Tensor steepness_grad)",
    "hard_sort": "(Tensor x, str kernel) -> (Tensor, Tensor)",
}
_FAKES: dict[str, Callable[..., Any]] = {
    "relax": empty_outputs,
    "relax_backward": empty_grads,
    "loss": empty_loss,
    "hard_sort": empty_sorted,
}
# `hard_sort` has none: what calls it gathers the values anew where a gradient is wanted.
_AUTOGRAD: dict[str, tuple[type[_SingleLevelFunction], Callable[..., Any]]] = {
    "relax": (_Relax, _relax_by_reference),
    "relax_backward": (_RelaxBackward, _relax_backward_by_reference),
    "loss": (_Loss, _loss_by_reference),
}

_library: Any = torch.library.Library("nsc", "DEF")  # type: ignore[no-untyped-call]
for _name, _schema in _SCHEMAS.items():
    _library.define(_name + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(_name, getattr(cpu, _name), "CPU")
    _library.impl(_name, getattr(cuda, _name), "CUDA")
    torch.library.register_fake(f"nsc::{_name}", _FAKES[_name], lib=_library)
    torch.library.register_vmap(
        f"nsc::{_name}",
        functools.partial(_vmap, getattr(torch.ops.nsc, _name)),
        lib=_library,
    )
for _name, _gradient in _AUTOGRAD.items():
    _library.impl(_name, _autograd(_name, *_gradient), "Autograd", with_keyset=True)
