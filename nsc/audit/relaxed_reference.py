"""Relaxed arithmetic in plain NumPy and float64, with derivatives, and how far rounding may move it.

Near a tie P and gradients magnify the rounding errors of the values, so no number of digits is right for all
inputs. All is therefore worked out RUNS times: in the first run as it is, and in the others with a random
error in each mix. How far these lie from the first shows how far a right kernel may lie.

Source: Vignes 1993, for errors put in.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nsc.audit.relaxed_calls import KernelInputs, Numbers, RelaxedKernel
from nsc.compiler.network import Network
from nsc.contract.interface import ART_EPSILON
from nsc.contract.routings import LARGE, LOWEST_LOG, SURROGATE_LEAST, Routing

Floats = npt.NDArray[np.float64]

RUNS = 5
# The size of such an error, in units in the last place of what is mixed.
_UNITS = 2

_erfc = np.vectorize(math.erfc, otypes=[float])

# With t >= 0, of each sigmoid f: f(-t) and f'(t).
SIGMOIDS: dict[str, tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]] = {
    "logistic": (lambda t: np.exp(-t) / (1 + np.exp(-t)), lambda t: np.exp(-t) / (1 + np.exp(-t)) ** 2),
    "gaussian": (
        lambda t: _erfc(t * math.sqrt(0.5)) / 2,
        lambda t: np.exp(-t * t / 2) / math.sqrt(2 * math.pi),
    ),
    "reciprocal": (lambda t: 1 / (2 + t), lambda t: 1 / (2 + t) ** 2),
    "cauchy": (lambda t: np.arctan2(1, t) / math.pi, lambda t: 1 / (math.pi * (1 + t * t))),
    "optimal": (
        lambda t: np.where(t > 0.25, 1 / (16 * t), 0.5 - t),
        lambda t: np.where(t > 0.25, 1 / (16 * t * t), 1),
    ),
    "hard": (np.zeros_like, np.zeros_like),
}


@dataclass(frozen=True)
class Dual:
    """Rows (runs, batch, n, m), and their derivatives along a direction."""

    at: Floats
    along: Floats

    @classmethod
    def of(cls, rows: Numbers, direction: Numbers) -> Dual:
        """Return RUNS copies of rows (batch, n, m)."""
        shape = (RUNS, *rows.shape)
        return cls(
            np.broadcast_to(rows, shape).astype(float), np.broadcast_to(direction, shape).astype(float)
        )


@dataclass(frozen=True)
class _Mix:
    """A layer: its wires, what their minima keep (runs, batch, k, 1), and what derivatives of these do."""

    lo: npt.NDArray[np.int64]
    hi: npt.NDArray[np.int64]
    keep: Floats
    soft_keep: Floats
    along: Floats


class Reference:
    """What a kernel makes of operands, and the derivatives along a direction.

    Attributes:
        values: the mixed values, as rows of one number.
    """

    def __init__(
        self, kernel: RelaxedKernel, network: Network, at: KernelInputs, along: KernelInputs
    ) -> None:
        self._random = np.random.default_rng(kernel.n)
        self._unit = np.finfo(kernel.dtype).eps
        self.values = Dual.of(at.x[..., None], along.x[..., None])
        self._mixes = []
        for layer in network.layers():
            lo, hi = layer.T
            self._mixes.append(_mix(kernel, lo, hi, self.values, at.steepness, along.steepness))
            self._apply(self._mixes[-1], self.values)

    def routed(self, routing: Routing, payload: Numbers, along: Numbers) -> Dual:
        """Return the rows of a payload (batch, n, m) mixed."""
        rows = Dual.of(payload, along)
        for mix in reversed(self._mixes) if routing.is_reversed else self._mixes:
            self._apply(mix, rows)
        return rows

    def _apply(self, mix: _Mix, rows: Dual) -> None:
        a, b = rows.at[:, :, mix.lo], rows.at[:, :, mix.hi]
        to_a, to_b = rows.along[:, :, mix.lo], rows.along[:, :, mix.hi]
        size, change = abs(a) + abs(b), mix.along * (a - b)
        rows.at[:, :, mix.lo] = self._wrong(b + mix.keep * (a - b), size)
        rows.at[:, :, mix.hi] = self._wrong(a - mix.keep * (a - b), size)
        size = abs(to_a) + abs(to_b) + abs(change)
        rows.along[:, :, mix.lo] = self._wrong(to_b + mix.soft_keep * (to_a - to_b) + change, size)
        rows.along[:, :, mix.hi] = self._wrong(to_a - mix.soft_keep * (to_a - to_b) - change, size)

    def _wrong(self, right: Floats, size: Floats) -> Floats:
        errors = self._random.standard_normal(right[1:].shape, np.float32)
        right[1:] += _UNITS * self._unit * size[1:] * errors
        return right


def _mix(
    kernel: RelaxedKernel,
    lo: npt.NDArray[np.int64],
    hi: npt.NDArray[np.int64],
    values: Dual,
    steepness: Numbers,
    along: Numbers,
) -> _Mix:
    """Return a layer's weights; the error-free form mixes exactly, with the derivatives of soft mixes."""
    gap, gap_along = (rows[:, :, hi] - rows[:, :, lo] for rows in (values.at, values.along))
    size, by = abs(gap), np.asarray(steepness, float)[:, None, None]
    stretch = (size + ART_EPSILON) ** -kernel.art_lambda
    elasticity = 1 - kernel.art_lambda * size / (size + ART_EPSILON)
    tail, slope = (function(by * size * stretch) for function in SIGMOIDS[kernel.sigmoid])
    soft = np.where(gap < 0, tail, 1 - tail)
    change = slope * stretch * (along[:, None, None] * gap + by * elasticity * gap_along)
    return _Mix(lo, hi, (gap >= 0).astype(float) if kernel.error_free else soft, soft, change)


def loss_of_p(kernel: RelaxedKernel, routing: Routing, p: Floats, target: Numbers) -> tuple[Floats, Floats]:
    """Return the losses (batch,) of matrices P and their derivatives by P (batch, n, n)."""
    n = kernel.n
    truth = target[:, None, :] == np.arange(n)[:, None]
    shares = {"cross_entropy": truth / n, "binary_cross_entropy": np.full(p.shape, n**-2.0)}[routing.name]
    large = p > LARGE
    rest = np.where(large, np.where(large, 0, p).sum(axis=1, keepdims=True), 1 - p)
    right, wrong = np.where(truth, p, rest), np.where(truth, rest, p)
    least = math.exp(LOWEST_LOG)
    logs = np.where(right > LARGE, np.log1p(-wrong), np.log(np.maximum(right, least)))
    if kernel.error_free:
        slopes = 1 / np.maximum(right, SURROGATE_LEAST)
    else:
        slopes = np.where(right <= least, 0, 1 / right)
    return -(shares * logs).sum(axis=(1, 2)), np.where(truth, -shares, shares) * slopes
