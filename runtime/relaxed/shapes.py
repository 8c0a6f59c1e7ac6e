"""Shapes: what a routing takes and returns, and uninitialised results."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from nsc.contract.routings import ROUTINGS, Payload

_PAYLOADS = {name: routing.payload for name, routing in ROUTINGS.items()}
_LOSSES = frozenset(name for name, routing in ROUTINGS.items() if routing.is_loss)
_WITH_GRADIENT = frozenset(name for name, payload in _PAYLOADS.items() if payload.has_gradient)


def payload_of(routing: str) -> Payload:
    """Return what a routing takes; an unknown one, which `check_tensors` refuses, takes nothing."""
    return _PAYLOADS.get(routing, Payload.NOTHING)


def has_gradient(routing: str) -> bool:
    """Return whether a routing takes a payload that has a gradient."""
    return routing in _WITH_GRADIENT


def is_loss(routing: str) -> bool:
    """Return whether a routing gives a loss for each sample."""
    return routing in _LOSSES


def output_shapes(x: Tensor, payload: Tensor | None, routing: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of the values and of what is routed."""
    batch, n = x.shape
    if payload is None or payload_of(routing) is Payload.NOTHING:
        return (batch, n), (batch, n, n) if routing == "permutation" else (batch, 0)
    return (batch, n), (batch,) if is_loss(routing) else (batch, n, payload.shape[-1])


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
    shape = payload.shape if payload is not None and has_gradient(routing) else (0,)
    return x.new_empty(x.shape), x.new_empty((x.shape[0],)), x.new_empty(shape)


def empty_loss(
    x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return uninitialised results of `nsc::loss`."""
    shape = target.shape if has_gradient(routing) else (0,)
    return x.new_empty((x.shape[0],)), x.new_empty(x.shape), x.new_empty((x.shape[0],)), x.new_empty(shape)


@functools.cache
def real_of(dtype: torch.dtype) -> str:
    """Return a dtype's name as kernels know it."""
    return str(dtype).removeprefix("torch.")


def inner_contiguous(payload: Tensor | None) -> Tensor | None:
    """Return a payload whose samples are contiguous; one expanded over the batch stays one."""
    if payload is None or payload.shape[0] == 0:
        return payload
    if payload.stride(0) == 0 and payload.shape[0] > 1 and payload[0].is_contiguous():
        return payload
    return payload.contiguous()
