"""Checks of an operator's arguments, and the errors for wrong ones."""

from __future__ import annotations

import torch
from torch import Tensor

from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.relaxed.call import Call, is_loss, output_shapes, payload_of, real_of
from nsc.runtime.relaxed.kernel import Kernel

# The least and the greatest steepness in an arithmetic type: kernels take smaller numbers for zero.
RANGES = {
    dtype: (torch.finfo(dtype).tiny, torch.finfo(dtype).max) for dtype in (torch.float32, torch.float64)
}


def check_call(call: Call) -> None:
    """Raise OperandError unless tensors have the shapes and dtypes that kernels take their memory for."""
    x, steepness, payload, routing, kernel, _ = call
    if real_of(x.dtype) not in kernel.reals:
        raise OperandError(
            f"{kernel.name}: no kernel for {x.dtype}, only for {', '.join(sorted(kernel.reals))}"
        )
    batch = x.shape[0] if x.dim() else 0
    _check_tensor(kernel, "x", x, (batch, kernel.n), x.dtype)
    _check_tensor(kernel, "steepness", steepness, (batch,), x.dtype)
    known = [name for name, row in ROUTINGS.items() if kernel.outputs is None or row.selector is not None]
    if routing not in known:
        raise OperandError(f"{kernel.name}: no routing {routing!r}; known: {', '.join(known)}")
    columns = payload.shape[-1] if payload is not None and payload.dim() > 1 else 0
    match payload_of(routing):
        case Payload.COLUMNS:
            _check_tensor(kernel, "payload", payload, (batch, kernel.n, columns), x.dtype)
        case Payload.TARGET:
            _check_tensor(kernel, "target", payload, (batch, kernel.n), torch.int64)
        case Payload.INTERVALS:
            _check_tensor(kernel, "intervals", payload, (batch, 3, kernel.n), x.dtype)
        case Payload.SHARES:
            _check_tensor(kernel, "shares", payload, (batch, kernel.n + 1, kernel.n), x.dtype)
        case Payload.RANKS:
            _check_tensor(kernel, "ranks", payload, (batch, columns), torch.int64)
        case Payload.NOTHING:
            pass


def check_grads(call: Call, values_grad: Tensor | None, routed_grad: Tensor | None) -> None:
    """Raise OperandError unless gradients, where given, have the shapes and dtype of a call's results."""
    shapes = output_shapes(call.x, call.payload, call.routing)
    for grad, shape in zip((values_grad, routed_grad), shapes, strict=True):
        if grad is not None:
            _check_tensor(call.kernel, "gradient", grad, shape, call.x.dtype)


def check_loss(call: Call) -> None:
    """Raise OperandError unless a call's routing is a loss."""
    if not is_loss(call.routing):
        raise OperandError(f"{_caller(call)}: this routing is no loss")


def _check_tensor(
    kernel: Kernel, name: str, tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """Raise OperandError unless a tensor has the shape and dtype that it must have."""
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        description = "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        raise OperandError(f"{kernel.name}: {name} must be {dtype} {tuple(shape)}, got {description}")


def check_values(call: Call) -> None:
    """Raise the error that a kernel would answer with: for wrong values of a steepness, a target or ranks."""
    steepness, payload, n = call.steepness.detach(), call.payload, call.kernel.n
    if not bool(((steepness > 0) & steepness.isfinite()).all()):
        raise no_steepness(call)
    if payload is None:
        return
    if is_loss(call.routing):
        if not bool(_is_target(n, payload, payload_of(call.routing)).all()):
            raise bad_target(call)
    elif payload_of(call.routing) is Payload.RANKS and not bool(((payload >= 0) & (payload < n)).all()):
        raise no_rank(call)


def _is_target(n: int, target: Tensor, form: Payload) -> Tensor:
    """Return whether numbers form a target."""
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


def no_steepness(call: Call) -> OperandError | OperandTypeError:
    """Return the error for a tensor of steepnesses with a wrong one; it names the first of these."""
    steepness = call.steepness.detach()
    lowest, highest = RANGES[steepness.dtype]
    first = int((~((steepness >= lowest) & (steepness <= highest))).int().argmax())
    return bad_steepness(_caller(call), repr(steepness[first].item()), steepness.dtype)


# The end of a message about wrong ranks.
ABOUT_RANKS = (
    f"; {IGNORED} stands for an item that does not count. Pass grades as relevance=; from ranks that count "
    "from 1 subtract 1"
)


def bad_target(call: Call) -> OperandError:
    """Return the error for a target of wrong numbers."""
    last = call.kernel.n - 1
    rules = {
        Payload.TARGET: f"must hold each rank 0 … {last} once in every sample{ABOUT_RANKS}",
        Payload.INTERVALS: f"must have first and last ranks with 0 ≤ first ≤ last ≤ {last}, and weights that "
        "are finite and not below 0",
        Payload.SHARES: "must hold numbers in 0 … 1, and weights that are finite and not below 0",
    }
    return OperandError(f"{_caller(call)}: target {rules[payload_of(call.routing)]}")


def no_rank(call: Call) -> OperandError:
    """Return the error for a number that is no rank."""
    return OperandError(f"{_caller(call)}: ranks must be in 0 … {call.kernel.n - 1}")


def _caller(call: Call) -> str:
    """Return an operator and the method that led to a call's routing."""
    row = ROUTINGS[call.routing]
    return f"{call.kernel.name}.{row.sorter if call.kernel.outputs is None else row.selector}"
