"""Routings: what the routing pass does, in one table, with the shapes that follow from it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.kernel import Kernel, find


@dataclass(frozen=True)
class Routing:
    """One thing that the routing pass can do.

    Attributes:
        code: its number in the C interface.
        payload: what it takes: "columns", a payload (batch, n, m) that has a gradient; "target", the
            int64 ranks (batch, n) of a loss; "ranks", those (batch, k) of wanted rows; "" for nothing.
        method: the method of `Sorter` that it serves.
        selects: the method of `Selector`; "" where it makes no sense if only some wires carry their rank.
    """

    code: int
    method: str
    payload: str = ""
    selects: str = ""


ROUTINGS: dict[str, Routing] = {
    "none": Routing(0, "sort", selects="select"),
    "permutation": Routing(1, "sort_with_permutation"),
    "route": Routing(2, "route", "columns", selects="route"),
    "transposed": Routing(3, "rank", "columns"),
    "cross_entropy": Routing(5, "cross_entropy", "target"),
    "binary_cross_entropy": Routing(6, "binary_cross_entropy", "target"),
    "rows": Routing(4, "topk", "ranks", selects="select_with_rows"),
}

# The numbers that a steepness may be in an arithmetic type: kernels take smaller ones for zero.
RANGES = {
    dtype: (torch.finfo(dtype).tiny, torch.finfo(dtype).max) for dtype in (torch.float32, torch.float64)
}


def takes(routing: str) -> str:
    """Return what payload a routing takes; "" too for one that is not known."""
    return ROUTINGS[routing].payload if routing in ROUTINGS else ""


def output_shapes(x: Tensor, payload: Tensor | None, routing: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the values and of what is routed."""
    batch, n = x.shape
    if takes(routing) in ("columns", "ranks"):
        assert payload is not None
        return (batch, n), (batch, n, payload.shape[-1])
    return (batch, n), {"none": (batch, 0), "permutation": (batch, n, n)}.get(routing, (batch,))


def empty_outputs(
    x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
) -> tuple[Tensor, Tensor]:
    """Return uninitialised values and routed results of `nsc::relax`."""
    values, routed = output_shapes(x, payload, routing)
    return x.new_empty(values), x.new_empty(routed)


def empty_grads(
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    spec: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return uninitialised results of `nsc::relax_backward`."""
    shape = payload.shape if payload is not None and takes(routing) == "columns" else (0,)
    return x.new_empty(x.shape), x.new_empty((x.shape[0],)), x.new_empty(shape)


def empty_loss(
    x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Return uninitialised results of `nsc::loss`."""
    return x.new_empty((x.shape[0],)), x.new_empty(x.shape), x.new_empty((x.shape[0],))


def empty_sorted(x: Tensor, spec: str) -> tuple[Tensor, Tensor]:
    """Return uninitialised results of `nsc::hard_sort`."""
    outputs = find(spec).outputs
    shape = x.shape if outputs is None else (x.shape[0], len(outputs.wires))
    return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)


@functools.cache
def real_of(dtype: torch.dtype) -> str:
    """Return a dtype's name as kernels know it."""
    return str(dtype).removeprefix("torch.")


def check_tensors(kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str) -> None:
    """Check what a kernel cannot: that the memory it is given is what it takes it for."""
    check_keys(kernel, x)
    batch = x.shape[0]
    check_tensor(kernel, "steepness", steepness, (batch,), x.dtype)
    known = [name for name, one in ROUTINGS.items() if kernel.outputs is None or one.selects]
    if routing not in known:
        raise OperandError(f"{kernel.name}: no routing {routing!r}; known: {', '.join(known)}")
    what = takes(routing)
    columns = payload.shape[-1] if payload is not None and payload.dim() > 1 else 0
    if what == "columns":
        check_tensor(kernel, "payload", payload, (batch, kernel.n, columns), x.dtype)
    elif what == "target":
        check_tensor(kernel, "target", payload, (batch, kernel.n), torch.int64)
    elif what == "ranks":
        check_tensor(kernel, "ranks", payload, (batch, columns), torch.int64)


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
    """Return `nsc::relax_backward` of a device: its arguments checked, then its implementation for those
    that fit together. It gives the gradients of x, steepness and, if it has one, payload; a gradient that
    is None is zero.
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
        check_relax_backward(find(spec), values_grad, routed_grad, x, steepness, payload, routing)
        grads = unchecked(values_grad, routed_grad, x, steepness, payload, routing, spec)
        return grads[0], grads[1], x.new_empty(0) if grads[2] is None else grads[2]

    return relax_backward


def through_loss(
    loss: Callable[..., tuple[Tensor, Tensor, Tensor]],
    backward: Callable[..., tuple[Tensor, Tensor | None, Tensor | None]],
    values_grad: Tensor | None,
    routed_grad: Tensor,
    x: Tensor,
    steepness: Tensor,
    target: Tensor,
    routing: str,
    spec: str,
) -> tuple[Tensor, Tensor, None]:
    """Return the gradients of x and steepness for gradients of the values and of the samples' losses.

    Those of the losses multiply last: inside the kernels they could leave the normal numbers.
    """
    _, x_grad, steepness_grad = loss(x, steepness, target, routing, spec)
    x_grad, steepness_grad = x_grad * routed_grad.unsqueeze(-1), steepness_grad * routed_grad
    if values_grad is not None:
        of_values = backward(values_grad, None, x, steepness, None, "none", spec)
        assert of_values[1] is not None
        x_grad, steepness_grad = x_grad + of_values[0], steepness_grad + of_values[1]
    return x_grad, steepness_grad, None


def inner_contiguous(payload: Tensor | None) -> Tensor | None:
    """Return a payload whose samples are contiguous; one expanded over the batch stays one."""
    if payload is None or payload.shape[0] == 0:
        return payload
    if payload.stride(0) == 0 and payload.shape[0] > 1 and payload[0].is_contiguous():
        return payload
    return payload.contiguous()


def check_keys(kernel: Kernel, x: Tensor) -> None:
    """Raise OperandError unless x is (batch, n) of a type that the kernel is compiled for."""
    if real_of(x.dtype) not in kernel.reals:
        raise OperandError(
            f"{kernel.name}: no kernel for {x.dtype}, only for {', '.join(sorted(kernel.reals))}"
        )
    check_tensor(kernel, "x", x, (x.shape[0] if x.dim() else 0, kernel.n), x.dtype)


def check_tensor(
    kernel: Kernel, what: str, tensor: Tensor | None, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """Raise OperandError unless a tensor has the shape and dtype that it must have."""
    if tensor is None or tensor.shape != shape or tensor.dtype != dtype:
        found = "none" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
        raise OperandError(f"{kernel.name}: {what} must be {dtype} {tuple(shape)}, got {found}")


def check_values(kernel: Kernel, steepness: Tensor, payload: Tensor | None, routing: str) -> None:
    """Check what a kernel checks itself: the steepness, and that targets are permutations."""
    steepness = steepness.detach()
    if not bool(((steepness > 0) & steepness.isfinite()).all()):
        raise no_steepness(kernel, routing, steepness)
    if takes(routing) in ("target", "ranks"):
        assert payload is not None
        ranks = torch.arange(kernel.n, device=payload.device)
        if takes(routing) == "target" and not bool((payload.sort(-1).values == ranks).all()):
            raise no_permutation(kernel, routing)
        if not bool(((payload >= 0) & (payload < kernel.n)).all()):
            raise no_rank(kernel, routing)


def bad_steepness(
    call: str,
    found: str,
    dtype: torch.dtype,
    kind: type[OperandError] | type[OperandTypeError] = OperandError,
) -> OperandError | OperandTypeError:
    """Return the error for what is no steepness.

    Args:
        call: the operator and its method.
        found: what was passed, in words.
        dtype: the arithmetic type of the call.
        kind: the error's class.
    """
    lowest, highest = RANGES[dtype]
    return kind(
        f"{call}: steepness must be a float or a 0-d tensor, finite and above 0 (in {real_of(dtype)} "
        f"{lowest:.1e} … {highest:.1e}), got {found}"
    )


def no_steepness(kernel: Kernel, routing: str, steepness: Tensor) -> OperandError | OperandTypeError:
    """Return the error for a tensor that holds no steepness; it names the first that is none."""
    lowest, highest = RANGES[steepness.dtype]
    steepness = steepness.detach()
    first = int((~((steepness >= lowest) & (steepness <= highest))).int().argmax())
    return bad_steepness(_call(kernel, routing), repr(steepness[first].item()), steepness.dtype)


def no_permutation(kernel: Kernel, routing: str) -> OperandError:
    """Return the error for a target that is no permutation of the ranks."""
    return OperandError(
        f"{_call(kernel, routing)}: target must hold each rank 0 … {kernel.n - 1} once in every sample"
    )


def no_rank(kernel: Kernel, routing: str) -> OperandError:
    """Return the error for a rank that is none."""
    return OperandError(f"{_call(kernel, routing)}: ranks must be in 0 … {kernel.n - 1}")


def _call(kernel: Kernel, routing: str) -> str:
    """Return an operator and the method that led to a routing."""
    one = ROUTINGS[routing]
    return f"{kernel.name}.{one.method if kernel.outputs is None else one.selects}"
