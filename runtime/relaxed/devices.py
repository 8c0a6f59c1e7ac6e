"""Devices: the implementation of the operators for each type of device, in one table."""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor

from nsc.runtime.relaxed import cpu, cuda
from nsc.runtime.relaxed.call import Call


class Implementation(Protocol):
    """The operators for the tensors of one type of device. It does not check its arguments.

    `needs` says whether gradients of steepness and payload are needed; those that are not are None.
    """

    def empty_kept(self, call: Call) -> Tensor | None:
        """Return memory for weights that `relax` keeps for `relax_backward`; None: it keeps none."""

    def relax(self, call: Call, kept: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Run the keys pass and a routing.

        Returns:
            Values (batch, n), and what was routed: P (batch, n, n) for "permutation", (batch, n, m) for a
            payload, (batch, n, k) for k rows of P, (batch,) for a loss, None or (batch, 0) for "none".
        """

    def relax_backward(
        self,
        call: Call,
        values_grad: Tensor | None,
        routed_grad: Tensor | None,
        needs: tuple[bool, bool] = (True, True),
        kept: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """Return the gradients of x, steepness and payload; a gradient of a result that is None is zero.

        The weights are computed anew, unless `relax` kept them for the same call.
        """

    def loss(
        self, call: Call, needs: tuple[bool, bool] = (True, True)
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return the losses and their gradients of x, steepness and target."""


# Type of device, as torch names it, to the implementation for its tensors.
DEVICES: dict[str, Implementation] = {"cpu": cpu, "cuda": cuda}


class _ByDevice(dict[torch.device, Any]):
    """DEVICES by device; None for one without kernels. Reading `x.device.type` takes ten times as long."""

    def __missing__(self, device: torch.device) -> Implementation | None:
        self[device] = DEVICES.get(device.type)
        return DEVICES.get(device.type)


BY_DEVICE = _ByDevice()
