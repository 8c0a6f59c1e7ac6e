"""The operators in plain indexed torch: the oracle of the tests, and what runs without a C++ compiler.

Every operation is an ordinary differentiable torch operation, so all of autograd, torch.func and
forward mode work here, at any order. Memory grows with the depth: O(n·m·depth) with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from nsc.contract.interface import ART_EPSILON
from nsc.contract.routings import IGNORED, LARGE, LOWEST_LOG, ROUTINGS, SURROGATE_LEAST, Payload, Routing
from nsc.runtime.relaxed.kernel import Kernel, Pairs

# With d = x[hi] - x[lo], v = steepness·φ(d): the smaller weight of a comparator, f(-t) of t = |v| >= 0, for
# each sigmoid family. The other is 1 - f(-t), so both have full precision.
TAILS: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": lambda t: torch.sigmoid(-t),
    # In float64: the argument's rounding counts t² times in the result.
    "gaussian": lambda t: (0.5 * torch.erfc(t.double() * math.sqrt(0.5))).to(t.dtype),
    "reciprocal": lambda t: 1 / (2 + t),
    "cauchy": lambda t: torch.atan2(torch.ones_like(t), t) / math.pi,
    "optimal": lambda t: torch.where(t > 0.25, 1 / (16 * t.clamp_min(0.25)), 0.5 - t),
    "hard": lambda t: torch.where(t.isnan(), t, 0),
}


@dataclass(frozen=True)
class LayerIndices:
    """The index tensors of one layer.

    Attributes:
        lo, hi: the wires of its comparators.
        rest: the wires that it does not touch.
        order: the place of each wire in the concatenation of lo, hi and rest.
    """

    lo: Tensor
    hi: Tensor
    rest: Tensor
    order: Tensor


def layers_of(kernel: Kernel) -> list[LayerIndices]:
    """Return the index tensors of a kernel's layers; equal layers share theirs."""
    layers: dict[bytes, LayerIndices] = {}
    return [layers.setdefault(pairs.tobytes(), _layer(kernel.n, pairs)) for pairs in kernel.layers]


def _layer(n: int, pairs: Pairs) -> LayerIndices:
    # By torch.tensor, which makes constants of programs that torch traces.
    wires = [*pairs.T, np.setdiff1d(np.arange(n), pairs)]
    return LayerIndices(*map(torch.tensor, [*wires, np.argsort(np.concatenate(wires))]))


def relax(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor]:
    """Return the values and the result of the routing, as `Implementation.relax` does.

    A loss is computed in float64: its second derivatives begin with 1/p², which leaves float32 at e^-44.
    """
    known = ROUTINGS[routing]
    if known.is_loss and x.dtype != torch.float64:
        if payload is not None and payload.is_floating_point():
            payload = payload.double()
        values, losses = relax(kernel, x.double(), steepness.double(), payload, routing)
        return values.to(x.dtype), losses.to(x.dtype)
    layers = layers_of(kernel)
    values, all_weights = _keys(kernel, layers, x, steepness)
    if routing == "none":
        return values, x.new_empty(x.shape[0], 0)
    rows = _first_rows(kernel, x, payload, known.payload)
    steps = list(zip(layers, all_weights, strict=True))
    for layer, weights in reversed(steps) if known.is_reversed else steps:
        rows = _mix_rows(kernel, layer, weights, rows)
    if known.loss is not None:
        assert payload is not None
        large = rows > LARGE
        rest = torch.where(large, torch.where(large, 0, rows).sum(-2, keepdim=True), 1 - rows)
        return values, losses_of(kernel, rows, rest, payload, known)
    return values, rows


def _first_rows(kernel: Kernel, x: Tensor, payload: Tensor | None, kind: Payload) -> Tensor:
    """Return the rows that the first layer mixes: the payload, or the rows of an identity."""
    if kind is Payload.COLUMNS:
        assert payload is not None
        return payload
    if kind is Payload.RANKS:
        assert payload is not None
        # Not one_hot: it looks at values, which a traced program does not have.
        return (payload.unsqueeze(-2) == torch.arange(kernel.n, device=x.device).unsqueeze(-1)).to(x.dtype)
    return torch.eye(kernel.n, dtype=x.dtype, device=x.device).expand(x.shape[0], kernel.n, kernel.n)


@dataclass(frozen=True)
class _Mixes:
    """The weights of a layer's mixes: what a comparator's minimum takes of lo, and of hi."""

    keep: Tensor
    swap: Tensor

    def mixed(self, a: Tensor, b: Tensor) -> Tensor:
        return self.keep * a + self.swap * b

    def rows(self) -> _Mixes:
        """Return the weights as factors of rows (…, k, m)."""
        return _Mixes(self.keep.unsqueeze(-1), self.swap.unsqueeze(-1))


# A layer's weights: relaxed, and exact for the error-free form.
_Weights = tuple[_Mixes, _Mixes]


def _keys(
    kernel: Kernel, layers: list[LayerIndices], x: Tensor, steepness: Tensor
) -> tuple[Tensor, list[_Weights]]:
    all_weights = []
    for layer in layers:
        a, b = x[..., layer.lo], x[..., layer.hi]
        weights = _weights(kernel, a, b, steepness.unsqueeze(-1))
        all_weights.append(weights)
        soft, exact = weights
        lo, hi = _mixed_values(soft, a, b), _mixed_values(soft, b, a)
        if kernel.error_free:
            lo = _straight_through(_mixed_values(exact, a, b), lo)
            hi = _straight_through(_mixed_values(exact, b, a), hi)
        x = torch.cat([lo, hi, x[..., layer.rest]], -1)[..., layer.order]
    return x, all_weights


def _weights(kernel: Kernel, a: Tensor, b: Tensor, steepness: Tensor) -> _Weights:
    tie = a == b
    gap = b - a
    infinite = gap.isinf() | (tie & a.isinf())
    safe = torch.where(infinite, torch.zeros_like(gap), gap)
    soft = _mixes(kernel.sigmoid, steepness * _activation(safe, kernel.art_lambda))
    limit = torch.where(tie, torch.full_like(gap, 0.5), (gap > 0).to(gap.dtype))
    soft = _Mixes(torch.where(infinite, limit, soft.keep), torch.where(infinite, 1 - limit, soft.swap))
    exact = torch.where(b < a, torch.zeros_like(gap), torch.where(b >= a, torch.ones_like(gap), gap)).detach()
    return soft, _Mixes(exact, 1 - exact)


def _mixes(sigmoid: str, v: Tensor) -> _Mixes:
    """Return f(v) and f(-v)."""
    below = v < 0
    # Not v.abs(), whose derivative at 0 is 0.
    tail = TAILS[sigmoid](torch.where(below, -v, v))
    rest = 1 - tail
    return _Mixes(torch.where(below, tail, rest), torch.where(below, rest, tail))


def _activation(d: Tensor, strength: float) -> Tensor:
    # |d| as a product: torch 2.11 does not trace the second derivative of d.abs().
    return d / (d * d.sign() + ART_EPSILON).pow(strength) if strength else d


def _mix_rows(kernel: Kernel, layer: LayerIndices, weights: _Weights, block: Tensor) -> Tensor:
    a, b = block[..., layer.lo, :], block[..., layer.hi, :]
    soft, exact = weights
    mixes = soft.rows()
    lo, hi = mixes.mixed(a, b), mixes.mixed(b, a)
    if kernel.error_free:
        mixes = exact.rows()
        lo, hi = _straight_through(mixes.mixed(a, b), lo), _straight_through(mixes.mixed(b, a), hi)
    return torch.cat([lo, hi, block[..., layer.rest, :]], -2)[..., layer.order, :]


def _straight_through(exact: Tensor, soft: Tensor) -> Tensor:
    """Return the exact values with the derivatives of the soft ones."""
    # Where soft is infinite it equals the exact value, and inf - inf would be NaN.
    return torch.where(soft.isfinite(), exact.detach() + (soft - soft.detach()), soft)


def _mixed_values(mixes: _Mixes, a: Tensor, b: Tensor) -> Tensor:
    return _weighted(mixes.keep, a) + _weighted(mixes.swap, b)


def _weighted(weight: Tensor, x: Tensor) -> Tensor:
    """Return weight·x, where 0 times infinity counts as 0."""
    return torch.where((weight == 0) & x.isinf(), torch.zeros_like(x), weight * x)


@dataclass(frozen=True)
class Truths:
    """The target of P, or of k rows of it.

    Attributes:
        shares: (batch, k, n), what each item should have of each rank.
        weights: (batch, n), or (batch, 1), what each item counts in the loss of its sample.
        is_in: (batch, k, n), the ranks that each item may have; None: the target is one of shares.
    """

    shares: Tensor
    weights: Tensor
    is_in: Tensor | None


def _truths(target: Tensor, form: Payload, n: int, dtype: torch.dtype) -> Truths:
    if form is Payload.SHARES:
        return Truths(target[..., :-1, :], target[..., -1, :].detach(), None)
    if form is Payload.TARGET:
        counts = (target != IGNORED).to(dtype)
        first = last = target
        weights = counts / counts.sum(-1, keepdim=True).clamp_min(1)
    else:
        first, last, weights = target.unbind(-2)
    ranks = torch.arange(n, device=target.device).unsqueeze(-1)
    is_in = (first.unsqueeze(-2) <= ranks) & (ranks <= last.unsqueeze(-2))
    return Truths(is_in / is_in.sum(-2, keepdim=True).clamp_min(1).to(dtype), weights, is_in)


# The logarithms of probabilities, given what they lack to 1.
_Logs = Callable[[Tensor, Tensor], Tensor]


def _cross_entropy(p: Tensor, rest: Tensor, truths: Truths, log: _Logs) -> Tensor:
    if truths.is_in is None:
        return -(truths.weights.unsqueeze(-2) * truths.shares * log(p, rest)).flatten(1).sum(-1)
    mass = torch.where(truths.is_in, p, 0).sum(-2)
    outside = torch.where(truths.is_in, 0, p).sum(-2)
    return -(truths.weights * log(mass, torch.where(mass > LARGE, outside, 1 - mass))).sum(-1)


def _binary_cross_entropy(p: Tensor, rest: Tensor, truths: Truths, log: _Logs) -> Tensor:
    logs = truths.shares * log(p, rest) + (1 - truths.shares) * log(rest, p)
    return -(truths.weights.unsqueeze(-2) * logs).flatten(1).sum(-1) / p.shape[-1]


# The losses of `contract.routings.LOSSES`; see the methods of `Sorter` for what they are.
LOSSES: dict[str, Callable[[Tensor, Tensor, Truths, _Logs], Tensor]] = {
    "cross_entropy": _cross_entropy,
    "binary_cross_entropy": _binary_cross_entropy,
}


def losses_of(kernel: Kernel, p: Tensor, rest: Tensor, target: Tensor, routing: Routing) -> Tensor:
    """Return the loss of each sample; rest is 1 - P to full precision."""
    assert routing.loss is not None
    truths = _truths(target, routing.payload, p.shape[-1], p.dtype)
    return LOSSES[routing.loss](p, rest, truths, partial(log_of, error_free=kernel.error_free))


def complement(p: Tensor, dim: int) -> Tensor:
    """Return 1 - p to full precision; its derivative with respect to p is -1 everywhere.

    Where p is large, the value is the sum of the other entries along dim. Its derivative is not taken from
    this sum, which would give all other entries equal slopes. Mixing would round equal slopes to slightly
    different numbers, and these errors would drown a small gradient.
    """
    is_large = p > LARGE
    others = torch.where(is_large, 0, p).sum(dim, keepdim=True)
    return torch.where(is_large, others.detach() - (p - p.detach()), 1 - p)


def log_of(p: Tensor, rest: Tensor, error_free: bool) -> Tensor:
    """Return log(p), cut at LOWEST_LOG, where its derivative is 0; rest is 1 - p to full precision.

    In the error-free form P is 0 or 1, and that derivative would be 0 at every wrong entry. There the
    derivative is 1 / max(p, SURROGATE_LEAST).
    """
    large, cut = p > LARGE, p <= math.exp(LOWEST_LOG)
    one = torch.ones_like(p)
    log = torch.where(large, (-torch.where(large, rest, 0)).log1p(), torch.where(large | cut, one, p).log())
    log = torch.where(cut, LOWEST_LOG, log)
    if not error_free:
        return log
    return log.detach() + (p - p.detach()) / p.detach().clamp_min(SURROGATE_LEAST)
