"""The operators as torch knows them: one static family, its kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::loss` a loss and its gradient at once,
`nsc::hard_sort` everything exact. They are defined once at import; kernels are built when first
called. Compiled and exported programs keep the string, so they find their kernel in any process that
has imported its package.

Four ways lead to a kernel, because no single one serves every transform of torch:
  - plain eager tensors reach it through an autograd.Function, in a fraction of an operator's time;
  - torch.compile, dispatch modes and subclasses of tensors call the operator, whose backward formula
    is registered;
  - inside torch.func an autograd.Function with a vmap rule calls it, since registered formulas do
    not reach there;
  - forward mode goes to the plain torch reference, since a registered operator would silently have
    zero tangents.
Derivatives of the backward itself go to the reference too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad

from nsc.runtime import cpu, cuda, reference
from nsc.runtime.derivatives import second_vjp
from nsc.runtime.kernel import Kernel
from nsc.runtime.routing import check_values, empty_grads, empty_loss, empty_outputs, empty_sorted, takes


def _home(x: Tensor) -> Any:
    """Return the module that implements the operators for a tensor's device."""
    return cuda if x.is_cuda else cpu


def relax(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor | None]:
    """Run the keys pass and a routing.

    Args:
        kernel: a registered kernel.
        x: (batch, n), of an arithmetic type the kernel is compiled for.
        steepness: (batch,), same dtype; may be expanded from one value.
        payload: see ROUTINGS; same dtype, or int64 for targets.
        routing: a key of ROUTINGS.

    Returns:
        Values (batch, n), and what was routed: P (batch, n, n) for "permutation", (batch, n, m) for a
        payload, (batch, n, k) for k rows of P, (batch,) for a loss, None or (batch, 0) for "none".
    """
    if forward_ad._current_level >= 0:
        if not torch.compiler.is_compiling() and not _in_transform():
            check_values(kernel, steepness, payload, routing)
        return reference.relax(kernel, x, steepness, payload, routing)
    if is_plain(x, steepness, payload):
        return _relax_plain(x, steepness, payload, routing, kernel.spec)
    if not torch.compiler.is_compiling() and _in_transform():
        return _Relax.apply(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
    return torch.ops.nsc.relax(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]


def loss(kernel: Kernel, x: Tensor, steepness: Tensor, target: Tensor, routing: str) -> Tensor:
    """Run a routing that is a loss and return it, (batch,). Arguments as in `relax`.

    Where a gradient will be wanted it is worked out in the same pass over P, block by block.
    """
    wanted = torch.is_grad_enabled() and (x.requires_grad or steepness.requires_grad)
    in_transform = not torch.compiler.is_compiling() and _in_transform()
    if not wanted or in_transform or forward_ad._current_level >= 0:
        losses = relax(kernel, x, steepness, target, routing)[1]
        assert losses is not None
        return losses
    if is_plain(x, steepness, target):
        return _PlainLoss.apply(x, steepness, target, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
    return torch.ops.nsc.loss(x, steepness, target, routing, kernel.spec)[0]  # type: ignore[no-any-return]


def hard_sort(kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x, (batch, n), ascending, or what of it is selected, and where the values come from: ties by
    position, NaN last."""
    sort = _home(x).hard_sort if is_plain(x) else torch.ops.nsc.hard_sort
    differentiable = x.requires_grad or forward_ad._current_level >= 0
    if differentiable or (not torch.compiler.is_compiling() and _in_transform()):
        # A gather has all of torch's derivatives.
        indices = sort(x.detach(), kernel.spec)[1]
        return x.gather(-1, indices), indices
    return sort(x, kernel.spec)  # type: ignore[no-any-return]


def is_plain(*tensors: Tensor | None) -> bool:
    """Return whether a kernel may be called directly: eager mode, CPU or CUDA tensors, and nothing that
    looks on."""
    return (
        not torch.compiler.is_compiling()
        and not _in_transform()
        and forward_ad._current_level < 0
        and torch._C._len_torch_dispatch_stack() == 0
        and all(
            t is None or (type(t) in _PLAIN and (t.is_cpu or t.is_cuda) and torch._C._has_storage(t))
            for t in tensors
        )
    )


_PLAIN = (Tensor, torch.nn.Parameter)


def _in_transform() -> bool:
    return torch._C._are_functorch_transforms_active()


def _relax_plain(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor | None]:
    wanted = x.requires_grad or steepness.requires_grad or (payload is not None and payload.requires_grad)
    if wanted and torch.is_grad_enabled():
        return _PlainRelax.apply(x, steepness, payload, routing, spec)  # type: ignore[no-any-return, no-untyped-call]
    return _home(x).relax_unchecked(  # type: ignore[no-any-return]
        x, steepness, payload, routing, spec
    )


def _setup_relax(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    x, steepness, payload, ctx.routing, ctx.spec = inputs
    ctx.save_for_backward(x, steepness, payload)
    # A loss on the values alone must not allocate an n × n zero gradient for P.
    ctx.set_materialize_grads(False)


def _setup_relax_backward(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    *tensors, ctx.routing, ctx.spec = inputs
    ctx.save_for_backward(*tensors)
    ctx.set_materialize_grads(False)


def _differentiate(backward: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor | None, ...]]:
    """Return the backward formula of `relax`, in terms of the operator or of the Function."""

    def formula(ctx: Any, values_grad: Tensor | None, routed_grad: Tensor | None) -> tuple[Any, ...]:
        if values_grad is None and routed_grad is None:
            return None, None, None, None, None
        saved = ctx.saved_tensors
        grads = backward(values_grad, routed_grad, *saved, ctx.routing, ctx.spec)
        payload_grad = grads[2] if takes(ctx.routing) == "columns" else None
        return grads[0], grads[1], payload_grad, None, None

    return formula


def _differentiate_backward(ctx: Any, *cotangents: Tensor | None) -> tuple[Any, ...]:
    if all(cotangent is None for cotangent in cotangents):
        return (None,) * 7
    return (*second_vjp(ctx.saved_tensors, cotangents, ctx.routing, ctx.spec), None, None)


def _vmap(call: Callable[..., Any], info: Any, dims: tuple[Any, ...], *args: Any) -> tuple[Any, Any]:
    """Fold the mapped dimension into the batch, call, and unfold."""
    size = info.batch_size

    def fold(argument: Any, dim: int | None) -> Any:
        if not isinstance(argument, Tensor):
            return argument
        moved = argument.expand(size, *argument.shape) if dim is None else argument.movedim(dim, 0)
        return moved.reshape(size * moved.shape[1], *moved.shape[2:])

    outputs = call(*(fold(argument, dim) for argument, dim in zip(args, dims, strict=True)))
    many = outputs if isinstance(outputs, tuple) else (outputs,)
    unfolded = tuple(out.reshape(size, out.shape[0] // size, *out.shape[1:]) for out in many)
    return (unfolded, (0,) * len(many)) if isinstance(outputs, tuple) else (unfolded[0], 0)


def _differentiate_loss(ctx: Any, losses_grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if losses_grad is None:
        return (None,) * 5
    *inputs, x_grad, steepness_grad = ctx.saved_tensors
    if torch.is_grad_enabled():  # the gradient will be differentiated, so it must depend on the inputs
        grads = torch.ops.nsc.relax_backward(None, losses_grad, *inputs, ctx.routing, ctx.spec)
        return grads[0], grads[1], None, None, None
    return losses_grad.unsqueeze(-1) * x_grad, losses_grad * steepness_grad, None, None, None


def _setup_loss(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    *tensors, ctx.routing, ctx.spec = inputs
    ctx.save_for_backward(*tensors, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    ctx.set_materialize_grads(False)


_backward_of_operator = _differentiate(lambda *args: torch.ops.nsc.relax_backward(*args))


class _PlainRelax(torch.autograd.Function):
    """The kernel for plain tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        _setup_relax(ctx, args, None)
        return _home(args[0]).relax_unchecked(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled() or not is_plain(*grads):
            return _backward_of_operator(ctx, *grads)
        if grads[0] is None and grads[1] is None:
            return (None,) * 5
        args: Any = (*grads, *ctx.saved_tensors, ctx.routing, ctx.spec, ctx.needs_input_grad[1])
        return *_home(ctx.saved_tensors[0]).relax_backward_unchecked(*args), None, None


class _PlainLoss(torch.autograd.Function):
    """A loss and its gradient for plain tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        losses, *grads = _home(args[0]).loss(*args)
        *tensors, ctx.routing, ctx.spec = args
        ctx.save_for_backward(*tensors, *grads)
        ctx.set_materialize_grads(False)
        return losses

    backward = staticmethod(_differentiate_loss)


class _Relax(torch.autograd.Function):
    """`nsc::relax` for torch.func."""

    @staticmethod
    def forward(*args: Any) -> Any:
        return torch.ops.nsc.relax(*args)

    setup_context = staticmethod(_setup_relax)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _differentiate(_RelaxBackward.apply)(ctx, *grads)

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> Any:
        return _vmap(_Relax.apply, info, dims, *args)


class _RelaxBackward(torch.autograd.Function):
    """`nsc::relax_backward` for torch.func."""

    @staticmethod
    def forward(*args: Any) -> Any:
        return torch.ops.nsc.relax_backward(*args)

    setup_context = staticmethod(_setup_relax_backward)
    backward = staticmethod(_differentiate_backward)

    @staticmethod
    def vmap(info: Any, dims: Any, *args: Any) -> Any:
        return _vmap(_RelaxBackward.apply, info, dims, *args)


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
torch.library.register_autograd(
    "nsc::relax",
    _backward_of_operator,
    setup_context=_setup_relax,
    lib=_library,
)
torch.library.register_autograd(
    "nsc::relax_backward",
    _differentiate_backward,
    setup_context=_setup_relax_backward,
    lib=_library,
)
torch.library.register_autograd("nsc::loss", _differentiate_loss, setup_context=_setup_loss, lib=_library)
