"""Calls of the relaxed functions of a built kernel, with arrays of NumPy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.contract.interface import Status
from nsc.contract.routings import Payload, Routing
from nsc.runtime.relaxed.kernel import Kernel
from nsc.runtime.relaxed.library import Functions

Array = npt.NDArray[np.floating]
Numbers = npt.NDArray[Any]

# Most numbers of the matrices P of a call.
_MOST_OF_P = 1 << 22
# Samples at once: more than two registers have lanes, so that some lanes of a kernel are idle.
_SAMPLES = 33


@dataclass(frozen=True)
class KernelInputs:
    """What a call of a relaxed kernel takes.

    Attributes:
        x: (batch, n).
        steepness: (batch,).
        payload: what the routing takes, (batch, …); None: nothing.
    """

    x: Array
    steepness: Array
    payload: Numbers | None = None

    def first(self, count: int) -> KernelInputs:
        """Return the operands of the first samples."""
        payload = None if self.payload is None else self.payload[:count]
        return KernelInputs(self.x[:count], self.steepness[:count], payload)


class RelaxedKernel:
    """The relaxed functions of a built kernel for one arithmetic type, on NumPy's arrays.

    Attributes:
        error_free: whether results are exact, and gradients those of relaxed ones.
        sigmoid, art_lambda: of its relaxation.

    Raises, in every call:
        MemoryError: too little memory.
    """

    def __init__(self, kernel: Kernel, functions: Functions, real: str) -> None:
        self.name, self.n, self.real, self.dtype = kernel.name, kernel.n, real, np.dtype(real)
        self.error_free, self.sigmoid, self.art_lambda = kernel.error_free, kernel.sigmoid, kernel.art_lambda
        self._functions = functions

    @property
    def samples(self) -> int:
        """How many samples a call with matrices P takes."""
        return max(1, min(_SAMPLES, _MOST_OF_P // self.n**2))

    def forward(self, routing: Routing, operands: KernelInputs) -> tuple[Array, Array, Array | None]:
        """Return values (batch, n), what is routed, and what is kept for `backward`."""
        batch, n = operands.x.shape
        columns = 0 if operands.payload is None else operands.payload.shape[-1]
        shape = {
            Payload.NOTHING: (batch, n, 0 if routing.name == "none" else n),
            Payload.COLUMNS: (batch, n, columns),
            Payload.RANKS: (batch, n, columns),
        }.get(routing.payload, (batch,))
        values, routed = np.empty((batch, n), self.dtype), np.zeros(shape, self.dtype)
        count = self._functions.kept(routing.code, batch)
        kept = np.empty(count, self.dtype) if count else None
        results = values.ctypes.data, None if routing.name == "none" else routed.ctypes.data
        memory = None if kept is None else kept.ctypes.data
        self._check(self._functions.forward(*_arguments(routing, operands), *results, memory, None))
        return values, routed, kept

    def backward(
        self,
        routing: Routing,
        operands: KernelInputs,
        grads: tuple[Array | None, ...],
        kept: Array | None,
        with_steepness: bool,
    ) -> tuple[KernelInputs, Array | None]:
        """Return the gradients of the operands, and the losses, whose sum they are of, if the routing is one.

        Args:
            grads: those of the values and of what is routed; None: zero.
            kept: what `forward` kept; None: nothing.
            with_steepness: whether the gradient of the steepness is asked for, else it is 0.
        """
        x_grad, steepness_grad = np.empty_like(operands.x), np.zeros_like(operands.steepness)
        has_gradient = routing.payload.has_gradient and operands.payload is not None
        payload_grad = np.empty_like(operands.payload) if has_gradient else None
        losses = np.empty(len(operands.x), self.dtype) if routing.is_loss else None
        status = self._functions.backward(
            *_arguments(routing, operands),
            *(
                None if each is None else each.ctypes.data
                for each in (
                    *grads,
                    x_grad,
                    steepness_grad if with_steepness else None,
                    payload_grad,
                    losses,
                    kept,
                )
            ),
            None,
        )
        self._check(status)
        return KernelInputs(x_grad, steepness_grad, payload_grad), losses

    def _check(self, status: int) -> None:
        if status != Status.OK:
            raise MemoryError(f"{self.name}: the built kernel answers {Status(status).name}")


def _arguments(routing: Routing, operands: KernelInputs) -> tuple[object, ...]:
    """Return what forward and backward begin with."""
    payload, batch = operands.payload, len(operands.x)
    start = (routing.code, batch, operands.x.ctypes.data, operands.steepness.ctypes.data, 1)
    if payload is None:
        return (*start, None, 0, 0)
    return (*start, payload.ctypes.data, payload.size // batch, payload.shape[-1])
