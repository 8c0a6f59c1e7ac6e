"""Size classes: samples of few entries, called by the kernel of the network's first wires.

What a class's kernel takes and gives is cut out of the call's tensors, and put back. P is 0 where a sample
has no such rank or entry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from nsc.contract.routings import LOSSES, ROUTINGS, Payload
from nsc.runtime.relaxed.devices import Implementation
from nsc.runtime.relaxed.shapes import has_gradient, output_shapes


@dataclass(frozen=True)
class SizeClass:
    """Samples of a call, and the kernel that serves them.

    Attributes:
        spec: the kernel's name in the process.
        size: its wires.
        chosen: the samples' numbers, int64; None: all, by the kernel of the whole network.
        counts: (k,), the entries of each.
    """

    spec: str
    size: int
    chosen: Tensor | None
    counts: Tensor


Classes = tuple[SizeClass, ...]

_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def relax(
    device: Implementation,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    classes: Classes,
) -> tuple[Tensor, Tensor | None]:
    """Do what `relax_unchecked` of a device does."""
    shapes = output_shapes(x, payload, routing)
    results = x.new_zeros(shapes[0]), None if routing == "none" else x.new_zeros(shapes[1])
    for each in classes:
        parts = device.relax_unchecked(*_inputs(each, x, steepness, payload, routing), routing, each.spec)
        if routing == "permutation" and parts[1] is not None:
            _zero_others(parts[1], each)
        if each.chosen is None:
            return parts
        _put_all(results, each, parts)
    return results


def relax_backward(
    device: Implementation,
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    x: Tensor,
    steepness: Tensor,
    payload: Tensor | None,
    routing: str,
    classes: Classes,
    with_steepness: bool,
    with_payload: bool,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward_unchecked` of a device does."""
    grads = _empty_grads(x, payload if with_payload else None, routing, with_steepness)
    for each in classes:
        inputs = _inputs(each, x, steepness, payload, routing)
        of_values = None if values_grad is None else _cut(values_grad, each, (1,))
        of_routed = None if routed_grad is None else _cut(routed_grad, each, _axes_of_wires(routing))
        if routing == "permutation" and of_routed is not None:
            if each.chosen is None:
                of_routed = of_routed.clone(memory_format=torch.contiguous_format)
            _zero_others(of_routed, each)
        parts = device.relax_backward_unchecked(
            of_values, of_routed, *inputs, routing, each.spec, with_steepness, with_payload
        )
        if each.chosen is None:
            return parts
        _put_all(grads, each, parts)
    return grads


def loss(
    device: Implementation,
    x: Tensor,
    steepness: Tensor,
    target: Tensor,
    routing: str,
    classes: Classes,
    with_steepness: bool,
    with_target: bool,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Do what `loss_unchecked` of a device does."""
    losses = x.new_zeros(x.shape[0])
    grads = _empty_grads(x, target if with_target else None, routing, with_steepness)
    for each in classes:
        inputs = _inputs(each, x, steepness, target, routing)
        parts = device.loss_unchecked(*inputs, routing, each.spec, with_steepness, with_target)  # type: ignore[arg-type]
        if each.chosen is None:
            return parts
        _put(losses, each, parts[0])
        _put_all(grads, each, parts[1:])
    return losses, *grads


def _zero_others(p: Tensor, each: SizeClass) -> None:
    """Zero P, or its gradient, in the rows of ranks that a sample has not, and in the columns of others.

    It is done on bits, in a fifth of the time of torch.where, and zeroes NaN too.
    """
    bits = _BITS[p.dtype]
    is_there = (torch.arange(each.size, device=p.device) < each.counts.unsqueeze(-1)).to(bits).neg()
    p.view(bits).bitwise_and_(is_there.unsqueeze(-1)).bitwise_and_(is_there.unsqueeze(-2))


def _empty_grads(
    x: Tensor, payload: Tensor | None, routing: str, with_steepness: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    of_payload = payload is not None and has_gradient(routing)
    return (
        x.new_zeros(x.shape),
        x.new_zeros(x.shape[0]) if with_steepness else None,
        payload.new_zeros(payload.shape) if of_payload and payload is not None else None,
    )


def _inputs(
    each: SizeClass, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    if each.chosen is None:
        return x, steepness, payload
    own = None if payload is None else _cut_payload(payload.index_select(0, each.chosen), routing, each.size)
    return _cut(x, each, (1,)), steepness.index_select(0, each.chosen), own


def _cut(tensor: Tensor, each: SizeClass, axes: tuple[int, ...]) -> Tensor:
    if each.chosen is None:
        return tensor
    for axis in axes:
        tensor = tensor.narrow(axis, 0, each.size)
    return tensor.index_select(0, each.chosen)


def _axes_of_wires(routing: str) -> tuple[int, ...]:
    """Return the axes of what is routed that have as many places as there are wires."""
    if ROUTINGS[routing].is_loss:
        return ()
    return (1, 2) if routing == "permutation" else (1,)


def _cut_payload(payload: Tensor, routing: str, size: int) -> Tensor:
    """Return the payload of samples for the kernel of their first wires."""
    known = ROUTINGS[routing]
    match known.payload:
        case Payload.RANKS:
            return payload
        case Payload.COLUMNS | Payload.TARGET:
            return payload[:, :size]
        case _:
            rows = size if known.payload is Payload.SHARES else 2
            weights = payload[:, -1:, :size]
            if known.loss is not None and LOSSES[known.loss].by_rank:  # the kernel divides by its wires
                weights = weights * (size / payload.shape[-1])
            return torch.cat([payload[:, :rows, :size], weights], 1)


def _put_all(results: tuple[Tensor | None, ...], each: SizeClass, parts: tuple[Any, ...]) -> None:
    for result, part in zip(results, parts, strict=True):
        if result is not None and part is not None:
            _put(result, each, part)


def _put(result: Tensor, each: SizeClass, part: Tensor) -> None:
    """Write the part of a class where its samples and wires are, without the weights of a target."""
    assert each.chosen is not None
    for axis in range(1, result.dim()):
        if part.shape[axis] != result.shape[axis]:
            length = min(part.shape[axis], each.size)
            part, result = part.narrow(axis, 0, length), result.narrow(axis, 0, length)
    result.index_copy_(0, each.chosen, part)
