"""The ways from an operator's method to its kernel.

Plain eager tensors reach the kernel through an autograd.Function, in a fraction of the time of a registered
operator, which is what small sorts consist of. Everything else that torch does with a call (torch.compile,
torch.func, forward mode, tracing, dispatch modes, subclasses of tensors) goes to the registered operators;
see `library`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nsc.runtime.devices import cpu, cuda
from nsc.runtime.dispatch.operators import (
    in_forward_mode,
    is_watched,
    loss_gradients,
    relax_gradients,
    save_loss,
    save_relax,
)
from nsc.runtime.kernel import Kernel


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
    if not is_plain(x, steepness, payload):
        return torch.ops.nsc.relax(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]
    wanted = x.requires_grad or steepness.requires_grad or (payload is not None and payload.requires_grad)
    if wanted and torch.is_grad_enabled():
        return _PlainRelax.apply(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
    return _home(x).relax_unchecked(  # type: ignore[no-any-return]
        x, steepness, payload, routing, kernel.spec
    )


def loss(kernel: Kernel, x: Tensor, steepness: Tensor, target: Tensor, routing: str) -> Tensor:
    """Run a routing that is a loss and return it, (batch,). Arguments as in `relax`.

    Where a gradient will be wanted it is worked out in the same pass over P, block by block.
    """
    if torch.is_grad_enabled() and (x.requires_grad or steepness.requires_grad):
        if is_plain(x, steepness, target):
            return _PlainLoss.apply(x, steepness, target, routing, kernel.spec)  # type: ignore[no-any-return, no-untyped-call]
        if torch.compiler.is_compiling():
            return torch.ops.nsc.loss(x, steepness, target, routing, kernel.spec)[0]  # type: ignore[no-any-return]
    losses = relax(kernel, x, steepness, target, routing)[1]
    assert losses is not None
    return losses


def hard_sort(kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x, (batch, n), ascending, or what of it is selected, and where the values come from: ties by
    position, NaN last."""
    plain = is_plain(x)
    sort = _home(x).hard_sort if plain else torch.ops.nsc.hard_sort
    if plain and not x.requires_grad:
        return sort(x, kernel.spec)  # type: ignore[no-any-return]
    # A gather has all of torch's derivatives.
    indices = sort(x.detach(), kernel.spec)[1]
    return x.gather(-1, indices), indices


def is_plain(*tensors: Tensor | None) -> bool:
    """Return whether a kernel may be called directly: eager mode, CPU or CUDA tensors, and nothing that
    looks on."""
    return not in_forward_mode() and not is_watched(*tensors)


class _PlainRelax(torch.autograd.Function):
    """The kernel for plain tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        save_relax(ctx, *args)
        return _home(args[0]).relax_unchecked(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if torch.is_grad_enabled() or not is_plain(*grads):
            return relax_gradients(ctx, *grads)
        if grads[0] is None and grads[1] is None:
            return (None,) * 5
        saved = ctx.saved_tensors  # read once: a checkpoint gives them out once
        args: Any = (*grads, *saved, ctx.routing, ctx.spec, ctx.needs_input_grad[1])
        return *_home(saved[0]).relax_backward_unchecked(*args), None, None


class _PlainLoss(torch.autograd.Function):
    """A loss and its gradient for plain tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Any) -> Any:
        losses, *grads = _home(args[0]).loss(*args)
        save_loss(ctx, args, tuple(grads))
        return losses

    backward = staticmethod(loss_gradients)
