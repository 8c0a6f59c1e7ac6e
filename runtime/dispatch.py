"""The operators as torch knows them: one static family, its kernel named by a string.

`nsc::relax` and `nsc::relax_backward` do everything soft, `nsc::argsort` everything exact. They are
defined once at import; kernels are built when first called. Compiled and exported programs keep the
string, so they find their kernel in any process that has imported its package.

Three ways lead to a kernel, because no single one serves every transform of torch:
  - eager and torch.compile call the operator, whose backward formula is registered;
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

from nsc.runtime import cpu, reference
from nsc.runtime.derivatives import second_vjp
from nsc.runtime.kernel import Kernel
from nsc.runtime.routing import check_values, empty_grads, empty_indices, empty_outputs, takes


def relax(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor]:
    """Run the keys pass and a routing.

    Args:
        kernel: a registered kernel.
        x: (batch, n), of an arithmetic type the kernel is compiled for.
        steepness: (batch,), same dtype; may be expanded from one value.
        payload: see ROUTINGS; same dtype, or int64 for targets.
        routing: a key of ROUTINGS.

    Returns:
        Values (batch, n), and what was routed: (batch, 0) for "none", P (batch, n, n) for
        "permutation", (batch, n, m) for a payload, (batch,) for a loss.
    """
    if forward_ad._current_level >= 0:
        if not torch.compiler.is_compiling() and not _in_transform():
            check_values(kernel, steepness, payload, routing)
        return reference.relax(kernel, x, steepness, payload, routing)
    if not torch.compiler.is_compiling() and _in_transform():
        return _Relax.apply(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
    return torch.ops.nsc.relax(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]


def argsort(kernel: Kernel, x: Tensor) -> Tensor:
    """Return the order of x, (batch, n), ascending: ties by position, NaN last; int64."""
    return torch.ops.nsc.argsort(x, kernel.spec)  # type: ignore[no-any-return]


def _in_transform() -> bool:
    return torch._C._are_functorch_transforms_active()


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
        payload_grad = grads[2] if takes(ctx.routing) == "rows" else None
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
    "argsort": "(Tensor x, str kernel) -> Tensor",
}
_IMPLEMENTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "relax": (cpu.relax, empty_outputs),
    "relax_backward": (cpu.relax_backward, empty_grads),
    "argsort": (cpu.argsort, empty_indices),
}

_library: Any = torch.library.Library("nsc", "DEF")  # type: ignore[no-untyped-call]
for _name, _schema in _SCHEMAS.items():
    _cpu, _fake = _IMPLEMENTATIONS[_name]
    _library.define(_name + _schema, tags=(torch.Tag.pt2_compliant_tag,))
    _library.impl(_name, _cpu, "CPU")
    torch.library.register_fake(f"nsc::{_name}", _fake, lib=_library)
    torch.library.register_vmap(
        f"nsc::{_name}",
        functools.partial(_vmap, getattr(torch.ops.nsc, _name)),
        lib=_library,
    )
torch.library.register_autograd(
    "nsc::relax",
    _differentiate(torch.ops.nsc.relax_backward),
    setup_context=_setup_relax,
    lib=_library,
)
torch.library.register_autograd(
    "nsc::relax_backward",
    _differentiate_backward,
    setup_context=_setup_relax_backward,
    lib=_library,
)
