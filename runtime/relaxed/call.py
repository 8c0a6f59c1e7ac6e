"""Call: what an operator of a relaxed network is called with, and the shapes of its results."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from nsc.contract.routings import ROUTINGS, Payload
from nsc.runtime.relaxed.kernel import Kernel, find_kernel


@dataclass(frozen=True)
class SizeClass:
    """Samples of a call, and the kernel that serves them.

    Attributes:
        kernel: the kernel of the network's first wires.
        chosen: the samples' numbers, int64; None: all, by the kernel of the whole network.
        counts: (k,), the entries of each.
    """

    kernel: Kernel
    chosen: Tensor | None
    counts: Tensor


Classes = tuple[SizeClass, ...]
NO_CLASSES: Classes = ()


class Call(NamedTuple):
    """The operands of an operator of a relaxed network, and its kernel.

    Attributes:
        x: (batch, n), of an arithmetic type that the kernel is compiled for.
        steepness: (batch,), same dtype; may be expanded from one value.
        payload: see ROUTINGS; same dtype, or int64 for ranks.
        routing: a key of ROUTINGS.
        kernel: a registered kernel.
        classes: the size classes of all samples, which plain tensors may have; none: the kernel serves all.
    """

    x: Tensor
    steepness: Tensor
    payload: Tensor | None
    routing: str
    kernel: Kernel
    classes: Classes = NO_CLASSES

    @classmethod
    def of(cls, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str) -> Call:
        """Return a call by the arguments of torch's operators, which name the kernel."""
        return cls(x, steepness, payload, routing, find_kernel(spec))

    @property
    def flat(self) -> tuple[Tensor, Tensor, Tensor | None, str, str]:
        """The arguments of torch's operators."""
        return self.x, self.steepness, self.payload, self.routing, self.kernel.spec


_PAYLOADS = {name: routing.payload for name, routing in ROUTINGS.items()}
_LOSSES = frozenset(name for name, routing in ROUTINGS.items() if routing.is_loss)
_WITH_GRADIENT = frozenset(name for name, payload in _PAYLOADS.items() if payload.has_gradient)


def payload_of(routing: str) -> Payload:
    """Return what a routing takes; an unknown one, which `check_call` refuses, takes nothing."""
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
