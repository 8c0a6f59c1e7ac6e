"""Checks of an operator's arguments, and the errors for wrong ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.relaxed.kernel import Kernel, find_kernel
from nsc.runtime.relaxed.shapes import is_loss, output_shapes, payload_of, real_of

# The least and the greatest steepness in an arithmetic type: kernels take smaller numbers for zero.
RANGES = {
    dtype: (torch.finfo(dtype).tiny, torch.finfo(dtype).max) for dtype in (torch.float32, torch.float64)
}


def check_tensors(kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> None:
    """Raise OperandError unless tensors have the shapes and dtypes that kernels take their memory for."""
    check_keys(kernel, x)
    batch = x.shape[0]
    check_tensor(kernel, "steepness", steepness, (batch,), x.dtype)
    known = [name for name, row in ROUTINGS.items() if kernel.outputs is None or row.selector is not None]
    if routing not in known:
        raise OperandError(f"{kernel.name}: no routing {routing!r}; known: {', '.join(known)}")
    columns = payload.shape[-1] if payload is not None and payload.dim() > 1 else 0
    match payload_of(routing):
        case Payload.COLUMNS:
            check_tensor(kernel, "payload", payload, (batch, kernel.n, columns), x.dtype)
        case Payload.TARGET:
            check_tensor(kernel, "target", payload, (batch, kernel.n), torch.int64)
        case Payload.INTERVALS:
            check_tensor(kernel, "intervals", payload, (batch, 3, kernel.n), x.dtype)
        case Payload.SHARES:
            check_tensor(kernel, "shares", payload, (batch, kernel.n + 1, kernel.n), x.dtype)
        case Payload.RANKS:
            check_tensor(kernel, "ranks", payload, (batch, columns), torch.int64)
        case Payload.NOTHING:
            pass


def check_relax_backward(
    kernel: Kernel,
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
) -> None:
    """Check the arguments of `nsc::relax_backward` as `check_tensors` does."""
    check_tensors(kernel, x, steepness, payload, routing)
    for grad, shape in zip((values_grad, routed_grad), output_shapes(x, payload, routing), strict=True):
        if grad is not None:
            check_tensor(kernel, "gradient", grad, shape, x.dtype)


def checked_backward(unchecked: Callable[..., Any]) -> Callable[..., tuple[Tensor, Tensor, Tensor]]:
    """Return `nsc::relax_backward` of a device, which checks its arguments and calls the unchecked function.

    It returns the gradients of x, steepness and, if it has one, payload. An incoming gradient
    that is None counts as zero.
    """

    def relax_backward(
        values_grad: Tensor | None,
        routed_grad: Tensor | None,
        x: Tensor,
        steepness: Tensor,
        payload: Tensor | None,
        routing: str,
        spec: str,
    ) -> tuple[Tensor, Tensor, Tensor]:
        check_relax_backward(find_kernel(spec), values_grad, routed_grad, x, steepness, payload, routing)
        grads = unchecked(values_grad, routed_grad, x, steepness, payload, routing, spec)
        return grads[0], grads[1], x.new_empty(0) if grads[2] is None else grads[2]

    return relax_backward


def checked_loss(unchecked: Callable[..., Any]) -> Callable[..., tuple[Tensor, Tensor, Tensor, Tensor]]:
    """Return `nsc::loss` of a device, which checks its arguments and calls the unchecked function.

    It returns the losses, and their gradients of x, steepness and, if it has one, target.
    """

    def loss(
        x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        kernel = find_kernel(spec)
        check_tensors(kernel, x, steepness, target, routing)
        if not is_loss(routing):
            raise OperandError(f"{_call(kernel, routing)}: this routing is no loss")
        losses, x_grad, steepness_grad, target_grad = unchecked(x, steepness, target, routing, spec)
        return losses, x_grad, steepness_grad, x.new_empty(0) if target_grad is None else target_grad

    return loss


def check_keys(kernel: Kernel, x: Tensor) -> None:
    """Raise OperandError unless x is (batch, n) of a type that the kernel is compiled for."""
    if real_of(x.dtype) not in kernel.reals:
        raise OperandError(
            f"{kernel.name}: no kernel for {x.dtype}, only for {', '.join(sorted(kernel.reals))}"
        )
    check_tensor(kernel, "x", x, (x.shape[0] if x.dim() else 0, kernel.n), x.dtype)


def check_tensor(
    kernel: Kernel, name: str, tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """Raise OperandError unless a tensor has the shape and dtype that it must have."""
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        description = "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        raise OperandError(f"{kernel.name}: {name} must be {dtype} {tuple(shape)}, got {description}")


def check_values(kernel: Kernel, steepness: Tensor, payload: Tensor | None, routing: str) -> None:
    """Raise the error that a kernel would answer with: for wrong values of a steepness, a target or ranks."""
    steepness = steepness.detach()
    if not bool(((steepness > 0) & steepness.isfinite()).all()):
        raise no_steepness(kernel, routing, steepness)
    if payload is None:
        return
    if is_loss(routing):
        if not bool(_is_target(kernel.n, payload, payload_of(routing)).all()):
            raise bad_target(kernel, routing)
    elif payload_of(routing) is Payload.RANKS and not bool(((payload >= 0) & (payload < kernel.n)).all()):
        raise no_rank(kernel, routing)


def _is_target(n: int, target: Tensor, form: Payload) -> Tensor:
    """Return whether numbers are those of a target."""
    if form is Payload.TARGET:
        ranks = target.sort(-1).values
        is_new = torch.ones_like(ranks, dtype=torch.bool)
        is_new[..., 1:] = ranks[..., 1:] != ranks[..., :-1]
        return (ranks == IGNORED) | ((ranks >= 0) & (ranks < n) & is_new)
    weight = target[..., -1, :]
    is_weight = (weight >= 0) & weight.isfinite()
    if form is Payload.SHARES:
        return ((target[..., :-1, :] >= 0) & (target[..., :-1, :] <= 1)).all(-2) & is_weight
    first, last = target[..., 0, :], target[..., 1, :]
    is_interval = (first >= 0) & (first <= last) & (last < n) & (first == first.floor())
    return is_interval & (last == last.floor()) & is_weight


def bad_steepness(
    call: str,
    passed: str,
    dtype: torch.dtype,
    kind: type[OperandError] | type[OperandTypeError] = OperandError,
) -> OperandError | OperandTypeError:
    """Return the error for a value that is no steepness.

    Args:
        call: the operator and its method.
        passed: what was passed, in words.
        dtype: the arithmetic type of the call.
        kind: the error's class.
    """
    lowest, highest = RANGES[dtype]
    return kind(
        f"{call}: steepness must be a float or a tensor, one number or one for each sample, finite and above "
        f"0 (in {real_of(dtype)} {lowest:.1e} … {highest:.1e}), got {passed}"
    )


def no_steepness(kernel: Kernel, routing: str, steepness: Tensor) -> OperandError | OperandTypeError:
    """Return the error for a tensor of steepnesses with a wrong one; it names the first of these."""
    lowest, highest = RANGES[steepness.dtype]
    steepness = steepness.detach()
    first = int((~((steepness >= lowest) & (steepness <= highest))).int().argmax())
    return bad_steepness(_call(kernel, routing), repr(steepness[first].item()), steepness.dtype)


# What a message says to who passes wrong ranks.
ABOUT_RANKS = (
    f"; {IGNORED} stands for an item that does not count. Pass grades as relevance=; from ranks that count "
    "from 1 subtract 1"
)


def bad_target(kernel: Kernel, routing: str) -> OperandError:
    """Return the error for a target of wrong numbers."""
    last = kernel.n - 1
    rules = {
        Payload.TARGET: f"must hold each rank 0 … {last} once in every sample{ABOUT_RANKS}",
        Payload.INTERVALS: f"must have first and last ranks with 0 ≤ first ≤ last ≤ {last}, and weights that "
        "are finite and not below 0",
        Payload.SHARES: "must hold numbers in 0 … 1, and weights that are finite and not below 0",
    }
    return OperandError(f"{_call(kernel, routing)}: target {rules[payload_of(routing)]}")


def no_rank(kernel: Kernel, routing: str) -> OperandError:
    """Return the error for a rank that is none."""
    return OperandError(f"{_call(kernel, routing)}: ranks must be in 0 … {kernel.n - 1}")


def _call(kernel: Kernel, routing: str) -> str:
    """Return an operator and the method that led to a routing."""
    row = ROUTINGS[routing]
    return f"{kernel.name}.{row.sorter if kernel.outputs is None else row.selector}"
