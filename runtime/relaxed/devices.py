"""Devices: the implementation of the operators for each type of device, in one table."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from nsc.runtime.relaxed import cpu, cuda


class Implementation(Protocol):
    """The operators for the tensors of one type of device; `spec` names the kernel.

    A function that ends in `unchecked` does not check its arguments, and returns None for results that are
    not needed.
    """

    def relax(
        self, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str, spec: str
    ) -> tuple[Tensor, Tensor]:
        """Implement `nsc::relax`; see `dispatch.entries.relax`."""

    def empty_kept(self, x: Tensor, routing: str, spec: str) -> Tensor | None:
        """Return memory for weights that `relax_unchecked` keeps for `relax_backward_unchecked`, or None."""

    def relax_unchecked(
        self,
        x: Tensor,
        steepness: Tensor,
        payload: Tensor | None,
        routing: str,
        spec: str,
        kept: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return what `relax` does, and None in place of an empty result of routing "none"."""

    def relax_backward(
        self,
        values_grad: Tensor | None,
        routed_grad: Tensor | None,
        x: Tensor,
        steepness: Tensor,
        payload: Tensor | None,
        routing: str,
        spec: str,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Implement `nsc::relax_backward`: return the gradients of x, steepness and payload."""

    def relax_backward_unchecked(
        self,
        values_grad: Tensor | None,
        routed_grad: Tensor | None,
        x: Tensor,
        steepness: Tensor,
        payload: Tensor | None,
        routing: str,
        spec: str,
        with_steepness: bool = True,
        with_payload: bool = True,
        kept: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return what `relax_backward` does, and None for gradients that are not needed."""

    def loss(
        self, x: Tensor, steepness: Tensor, target: Tensor, routing: str, spec: str
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Implement `nsc::loss`: return the losses and their gradients of x, steepness and target."""

    def loss_unchecked(
        self,
        x: Tensor,
        steepness: Tensor,
        target: Tensor,
        routing: str,
        spec: str,
        with_steepness: bool = True,
        with_target: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return what `loss` does, and None for gradients that are not needed."""


# Type of device, as torch names it, to the implementation for its tensors.
DEVICES: dict[str, Implementation] = {"cpu": cpu, "cuda": cuda}


class _ByDevice(dict[torch.device, Any]):
    """DEVICES by device; None for one without kernels. Reading `x.device.type` takes ten times as long."""

    def __missing__(self, device: torch.device) -> Implementation | None:
        self[device] = DEVICES.get(device.type)
        return DEVICES.get(device.type)


BY_DEVICE = _ByDevice()
