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
from nsc.contract.routings import IGNORED, LARGE, LOWEST_LOG, SURROGATE_LEAST, Payload, Routing

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


@dataclass(frozen=True)
class _Truths:
    """What P should be.

    Attributes:
        shares: (batch, n, n), what each item should have of each rank.
        weights: (batch, 1, n), what each item counts.
        is_in: (batch, n, n), the ranks that each item may have; None: the target is one of shares.
    """

    shares: Numbers
    weights: Numbers
    is_in: Numbers | None


def _truths(n: int, form: Payload, target: Numbers) -> _Truths:
    if form is Payload.SHARES:
        return _Truths(target[:, :-1], target[:, -1:], None)
    if form is Payload.TARGET:
        first = last = target[:, None]
        counted = first != IGNORED
        weights = counted / np.maximum(counted.sum(axis=2, keepdims=True), 1)
    else:
        first, last, weights = (target[:, row : row + 1] for row in range(3))
    ranks = np.arange(n)[:, None]
    is_in = (first <= ranks) & (ranks <= last)
    return _Truths(is_in / np.maximum(is_in.sum(axis=1, keepdims=True), 1), weights, is_in)


@dataclass(frozen=True)
class LossOfP:
    """Losses of matrices P.

    Attributes:
        at: (batch, k, n), parts that add up to the losses of the samples.
        by_p: (batch, n, n), the derivatives of these losses by P.
        by_shares: (batch, n, n), those by the shares, if the target has some.
    """

    at: Floats
    by_p: Floats
    by_shares: Floats | None = None


def _cross_entropy(kernel: RelaxedKernel, p: Floats, rest: Floats, truths: _Truths) -> LossOfP:
    if truths.is_in is None:
        logs, slopes = _logs(kernel, p, rest)
        by_shares = -truths.weights * logs
        return LossOfP(truths.shares * by_shares, -truths.weights * truths.shares * slopes, by_shares)
    mass, outside = (
        np.where(inside, p, 0).sum(axis=1, keepdims=True) for inside in (truths.is_in, ~truths.is_in)
    )
    logs, slopes = _logs(kernel, mass, np.where(mass > LARGE, outside, 1 - mass))
    return LossOfP(-truths.weights * logs, -truths.weights * truths.is_in * slopes)


def _binary_cross_entropy(kernel: RelaxedKernel, p: Floats, rest: Floats, truths: _Truths) -> LossOfP:
    logs, slopes = _logs(kernel, p, rest)
    logs_of_rest, slopes_of_rest = _logs(kernel, rest, p)
    weights, shares = truths.weights / kernel.n, truths.shares
    losses = shares * logs + (1 - shares) * logs_of_rest
    by_p = -weights * (shares * slopes - (1 - shares) * slopes_of_rest)
    return LossOfP(-weights * losses, by_p, weights * (logs_of_rest - logs))


# The losses of `contract.routings.LOSSES`.
_LOSSES = {"cross_entropy": _cross_entropy, "binary_cross_entropy": _binary_cross_entropy}


def loss_of_p(kernel: RelaxedKernel, routing: Routing, p: Floats, target: Numbers) -> LossOfP:
    """Return the losses of matrices P.

    Args:
        target: as the routing takes it, (batch, …).
    """
    assert routing.loss is not None
    large = p > LARGE
    rest = np.where(large, np.where(large, 0, p).sum(axis=1, keepdims=True), 1 - p)
    truths = _truths(kernel.n, routing.payload, target)
    return _LOSSES[routing.loss](kernel, p, rest, truths)


def _logs(kernel: RelaxedKernel, p: Floats, rest: Floats) -> tuple[Floats, Floats]:
    """Return the logarithms of probabilities and their derivatives, given what they lack to 1."""
    least = math.exp(LOWEST_LOG)
    logs = np.where(p > LARGE, np.log1p(-np.where(p > LARGE, rest, 0)), np.log(np.maximum(p, least)))
    if kernel.error_free:
        return logs, 1 / np.maximum(p, SURROGATE_LEAST)
    return logs, np.where(p <= least, 0, 1 / np.maximum(p, least))
