"""Entries: what an operator's methods call; each chooses the way to the kernel."""

from __future__ import annotations

import torch
from torch import Tensor

# Defines the operators of torch.ops.nsc.
import nsc.runtime.dispatch.operators  # noqa: F401
from nsc.runtime.dispatch import by_class
from nsc.runtime.dispatch.autograd import apply_loss, apply_relax, mean
from nsc.runtime.dispatch.by_class import Classes
from nsc.runtime.dispatch.ways import PLAIN, Way
from nsc.runtime.dispatch.written_out import is_written_out
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.devices import BY_DEVICE
from nsc.runtime.relaxed.kernel import Kernel


def relax(
    kernel: Kernel,
    way: Way,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    classes: Classes = (),
) -> tuple[Tensor, Tensor | None]:
    """Run the keys pass and a routing.

    Args:
        kernel: a registered kernel.
        way: that of the user's tensors, of which x, steepness and payload were made.
        x: (batch, n), of an arithmetic type the kernel is compiled for.
        steepness: (batch,), same dtype; may be expanded from one value.
        payload: see ROUTINGS; same dtype, or int64 for targets.
        routing: a key of ROUTINGS.
        classes: the size classes of all samples, which plain tensors may have; none: the kernel serves all.

    Returns:
        Values (batch, n), and what was routed: P (batch, n, n) for "permutation", (batch, n, m) for a
        payload, (batch, n, k) for k rows of P, (batch,) for a loss, None or (batch, 0) for "none".
    """
    if way is not PLAIN:
        if is_written_out():
            return reference.relax(kernel, x, steepness, payload, routing)
        return torch.ops.nsc.relax(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]
    has_gradient = (
        x.requires_grad or steepness.requires_grad or (payload is not None and payload.requires_grad)
    )
    if has_gradient and torch.is_grad_enabled():
        return apply_relax(x, steepness, payload, routing, kernel.spec, classes)  # type: ignore[no-any-return]
    if classes:
        return by_class.relax(BY_DEVICE[x.device], x, steepness, payload, routing, classes)
    return BY_DEVICE[x.device].relax_unchecked(x, steepness, payload, routing, kernel.spec)  # type: ignore[no-any-return]


def loss(
    kernel: Kernel,
    way: Way,
    x: Tensor,
    steepness: Tensor,
    target: Tensor,
    routing: str,
    is_mean: bool,
    classes: Classes = (),
) -> Tensor:
    """Run a routing that is a loss and return it for each sample, (batch,), or, of plain tensors, its mean.

    Arguments as in `relax`. If a gradient will be needed, it is computed in the same pass over P, block by
    block.
    """
    if torch.is_grad_enabled() and (x.requires_grad or steepness.requires_grad or target.requires_grad):
        match way:
            case Way.PLAIN:
                return apply_loss(x, steepness, target, routing, kernel.spec, is_mean, classes)  # type: ignore[no-any-return]
            case Way.COMPILED if not is_written_out():
                return torch.ops.nsc.loss(x, steepness, target, routing, kernel.spec)[0]  # type: ignore[no-any-return]
            case _:  # no transform could differentiate the gradient that `nsc::loss` works out
                pass
    losses = relax(kernel, way, x, steepness, target, routing, classes)[1]
    assert losses is not None
    return mean(losses) if is_mean else losses
