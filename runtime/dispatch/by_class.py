"""Size classes: samples of few entries, run by the kernel of the network's first wires.

The functions implement the operators for calls that have size classes, as a device does for other calls. The
operands of a class's kernel are cut out of the call's tensors, and its results are put back. P is 0 at ranks
and entries that a sample does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from nsc.contract.routings import LOSSES, ROUTINGS, Payload
from nsc.runtime.relaxed.call import Call, SizeClass, has_gradient, output_shapes
from nsc.runtime.relaxed.devices import BY_DEVICE, Implementation

Results = TypeVar("Results", bound=tuple[Any, ...])

_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}


def empty_kept(call: Call) -> None:
    """Return None: nothing is kept of the samples of several kernels."""


def relax(call: Call, kept: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
    """Do what `relax` of a device does."""
    shapes = output_shapes(call.x, call.payload, call.routing)
    results = call.x.new_zeros(shapes[0]), None if call.routing == "none" else call.x.new_zeros(shapes[1])

    def run(device: Implementation, part: Call, each: SizeClass) -> tuple[Tensor, Tensor | None]:
        values, routed = device.relax(part)
        if call.routing == "permutation" and routed is not None:
            _zero_others(routed, each)
        return values, routed

    return _by_class(call, results, run)


def relax_backward(
    call: Call,
    values_grad: Tensor | None,
    routed_grad: Tensor | None,
    needs: tuple[bool, bool] = (True, True),
    kept: Tensor | None = None,
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Do what `relax_backward` of a device does."""

    def run(
        device: Implementation, part: Call, each: SizeClass
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        values_part = None if values_grad is None else _cut(values_grad, each, (1,))
        routed_part = None if routed_grad is None else _cut(routed_grad, each, _axes_of_wires(call.routing))
        if call.routing == "permutation" and routed_part is not None:
            if each.chosen is None:
                routed_part = routed_part.clone(memory_format=torch.contiguous_format)
            _zero_others(routed_part, each)
        return device.relax_backward(part, values_part, routed_part, needs)

    return _by_class(call, _empty_grads(call, needs), run)


def loss(
    call: Call, needs: tuple[bool, bool] = (True, True)
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """Do what `loss` of a device does."""
    results = call.x.new_zeros(call.x.shape[0]), *_empty_grads(call, needs)
    return _by_class(call, results, lambda device, part, each: device.loss(part, needs))


def _by_class(
    call: Call, results: Results, run: Callable[[Implementation, Call, SizeClass], Results]
) -> Results:
    """Return what `run` returns for each class, put together in the results, which are 0."""
    for each in call.classes:
        parts = run(BY_DEVICE[call.x.device], _part(call, each), each)
        if each.chosen is None:
            return parts
        for result, part in zip(results, parts, strict=True):
            if result is not None and part is not None:
                _put(result, each, part)
    return results


def _zero_others(p: Tensor, each: SizeClass) -> None:
    """Zero P, or its gradient, in the rows of ranks and the columns of entries that a sample has not.

    It is done on bits, in a fifth of the time of torch.where, and zeroes NaN too.
    """
    bits = _BITS[p.dtype]
    is_there = (torch.arange(each.kernel.n, device=p.device) < each.counts.unsqueeze(-1)).to(bits).neg()
    p.view(bits).bitwise_and_(is_there.unsqueeze(-1)).bitwise_and_(is_there.unsqueeze(-2))


def _empty_grads(call: Call, needs: tuple[bool, bool]) -> tuple[Tensor, Tensor | None, Tensor | None]:
    x, payload = call.x, call.payload if needs[1] and has_gradient(call.routing) else None
    return (
        x.new_zeros(x.shape),
        x.new_zeros(x.shape[0]) if needs[0] else None,
        None if payload is None else payload.new_zeros(payload.shape),
    )


def _part(call: Call, each: SizeClass) -> Call:
    """Return the call of a class's kernel."""
    if each.chosen is None:
        return call._replace(kernel=each.kernel, classes=())
    payload = call.payload
    if payload is not None:
        payload = _cut_payload(payload.index_select(0, each.chosen), call.routing, each.kernel.n)
    steepness = call.steepness.index_select(0, each.chosen)
    return Call(_cut(call.x, each, (1,)), steepness, payload, call.routing, each.kernel)


def _cut(tensor: Tensor, each: SizeClass, axes: tuple[int, ...]) -> Tensor:
    if each.chosen is None:
        return tensor
    for axis in axes:
        tensor = tensor.narrow(axis, 0, each.kernel.n)
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


def _put(result: Tensor, each: SizeClass, part: Tensor) -> None:
    """Write the part of a class where its samples and wires are, without the weights of a target."""
    assert each.chosen is not None
    for axis in range(1, result.dim()):
        if part.shape[axis] != result.shape[axis]:
            length = min(part.shape[axis], each.kernel.n)
            part, result = part.narrow(axis, 0, length), result.narrow(axis, 0, length)
    result.index_copy_(0, each.chosen, part)
