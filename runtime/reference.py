"""The operators in plain indexed torch: the oracle of the tests and the way without a compiler.

Every operation is an ordinary differentiable torch operation, so all of autograd, torch.func and
forward mode work here, at any order. Memory grows with the depth: O(n·m·depth) with gradients.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from nsc.runtime.kernel import Kernel, Pairs

# With d = x[hi] - x[lo], v = steepness·φ(d): f(v) of each sigmoid family.
SIGMOIDS: dict[str, Callable[[Tensor], Tensor]] = {
    "logistic": torch.sigmoid,
    "gaussian": lambda v: 0.5 * torch.erfc(-v * math.sqrt(0.5)),
    "reciprocal": lambda v: 0.5 * (v / (2 + v.abs()) + 1),
    "cauchy": lambda v: torch.atan(v) / math.pi + 0.5,
    "optimal": lambda v: _optimal(v),
    "hard": lambda v: torch.where(v.isnan(), v, (v >= 0).to(v.dtype)),
}

# The ε of the activation replacement trick, as in diffsort.
ART_EPSILON = 1e-10


@dataclass(frozen=True)
class Layer:
    """Index tensors of one layer: wires lo and hi, and where a concatenation of both and the
    untouched wires must be gathered to be in the order of the wires again."""

    lo: Tensor
    hi: Tensor
    rest: Tensor
    order: Tensor


def layers_of(kernel: Kernel) -> list[Layer]:
    """Return the index tensors of a kernel's layers; equal layers share theirs."""
    made: dict[bytes, Layer] = {}
    return [made.setdefault(pairs.tobytes(), _layer(kernel.n, pairs)) for pairs in kernel.layers]


def _layer(n: int, pairs: Pairs) -> Layer:
    lo, hi = torch.from_numpy(pairs.T.copy())
    touched = torch.zeros(n, dtype=torch.bool)
    touched[lo] = touched[hi] = True
    rest = torch.arange(n)[~touched]
    return Layer(lo, hi, rest, torch.argsort(torch.cat([lo, hi, rest])))


def relax(
    kernel: Kernel, x: Tensor, steepness: Tensor, payload: Tensor | None, routing: str
) -> tuple[Tensor, Tensor]:
    """Return values and what is routed, as `dispatch.relax` describes them."""
    layers = layers_of(kernel)
    values, weights = _keys(kernel, layers, x, steepness)
    n = kernel.n
    if routing == "none":
        return values, x.new_empty(x.shape[0], 0)
    backwards = routing in ("transposed", "rows")
    if routing in ("route", "transposed"):
        assert payload is not None
        block = payload
    elif routing == "rows":
        assert payload is not None
        block = torch.nn.functional.one_hot(payload, n).transpose(-1, -2).to(x.dtype)
    else:
        block = torch.eye(n, dtype=x.dtype, device=x.device).expand(x.shape[0], n, n)
    steps = list(zip(layers, weights, strict=True))
    for layer, weight in reversed(steps) if backwards else steps:
        block = _mix_rows(kernel, layer, weight, block)
    if routing in ("cross_entropy", "binary_cross_entropy"):
        assert payload is not None
        return values, _losses(block, payload, routing)
    return values, block


def hard_sort(kernel: Kernel, x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x ascending, or the ranks that are selected, and where the values come from: ties by position,
    NaN last."""
    values, indices = torch.sort(x, dim=-1, stable=True)
    if kernel.outputs is not None:
        ranks = list(kernel.outputs.ranks)
        return values[:, ranks], indices[:, ranks]
    return values, indices


@dataclass(frozen=True)
class _Weight:
    """A layer's keep weights: relaxed, and exact for the error-free form."""

    soft: Tensor
    exact: Tensor


def _keys(kernel: Kernel, layers: list[Layer], x: Tensor, steepness: Tensor) -> tuple[Tensor, list[_Weight]]:
    weights = []
    for layer in layers:
        a, b = x[..., layer.lo], x[..., layer.hi]
        weight = _weight(kernel, a, b, steepness.unsqueeze(-1))
        weights.append(weight)
        lo = _weighted(weight.soft, a) + _weighted(1 - weight.soft, b)
        hi = _weighted(1 - weight.soft, a) + _weighted(weight.soft, b)
        if kernel.error_free:
            keep = weight.exact
            lo = _straight_through(_weighted(keep, a) + _weighted(1 - keep, b), lo)
            hi = _straight_through(_weighted(1 - keep, a) + _weighted(keep, b), hi)
        x = torch.cat([lo, hi, x[..., layer.rest]], -1)[..., layer.order]
    return x, weights


def _weight(kernel: Kernel, a: Tensor, b: Tensor, steepness: Tensor) -> _Weight:
    tie = a == b
    gap = b - a
    infinite = gap.isinf() | (tie & a.isinf())
    safe = torch.where(infinite, torch.zeros_like(gap), gap)
    soft = SIGMOIDS[kernel.sigmoid](steepness * _activation(safe, kernel.art_lambda))
    limit = torch.where(tie, torch.full_like(gap, 0.5), (gap > 0).to(gap.dtype))
    soft = torch.where(infinite, limit, soft)
    exact = torch.where(b < a, torch.zeros_like(gap), torch.where(b >= a, torch.ones_like(gap), gap))
    return _Weight(soft, exact.detach())


def _activation(d: Tensor, strength: float) -> Tensor:
    return d / (d.abs() + ART_EPSILON).pow(strength) if strength else d


def _mix_rows(kernel: Kernel, layer: Layer, weight: _Weight, block: Tensor) -> Tensor:
    a, b = block[..., layer.lo, :], block[..., layer.hi, :]
    keep = weight.soft.unsqueeze(-1)
    lo, hi = keep * a + (1 - keep) * b, (1 - keep) * a + keep * b
    if kernel.error_free:
        keep = weight.exact.unsqueeze(-1)
        lo = _straight_through(keep * a + (1 - keep) * b, lo)
        hi = _straight_through((1 - keep) * a + keep * b, hi)
    return torch.cat([lo, hi, block[..., layer.rest, :]], -2)[..., layer.order, :]


def _straight_through(exact: Tensor, soft: Tensor) -> Tensor:
    """Return the exact values with the derivatives of the soft ones."""
    # Where soft is infinite it equals the exact value, and inf - inf would be NaN.
    return torch.where(soft.isfinite(), exact.detach() + (soft - soft.detach()), soft)


def _weighted(weight: Tensor, x: Tensor) -> Tensor:
    """Return weight·x, where a weight of zero silences an infinite x."""
    return torch.where((weight == 0) & x.isinf(), torch.zeros_like(x), weight * x)


def _optimal(v: Tensor) -> Tensor:
    inside = v.abs() <= 0.25
    outside = torch.where(inside, torch.full_like(v, 0.25), v)
    tail = torch.where(v > 0, 1 - 1 / (16 * outside), -1 / (16 * outside))
    return torch.where(inside | v.isnan(), v + 0.5, tail)


# Logarithms are cut off at -100 and the denominators of gradients at 1e-12, as torch's own binary
# cross entropy does: a probability of exactly 0 has a finite loss and gradient.
LOWEST_LOG = -100.0
LEAST_DENOMINATOR = 1e-12


def _losses(p: Tensor, target: Tensor, routing: str) -> Tensor:
    """Return the loss of each sample; see `Operator.cross_entropy` and `binary_cross_entropy`."""
    # Rounding may leave a probability outside [0, 1]; it is moved back, its gradient kept.
    p = p + (p.clamp(0, 1) - p).detach()
    n = p.shape[-1]
    if routing == "cross_entropy":
        p = p.gather(-2, target.unsqueeze(-2)).squeeze(-2)
        truth = torch.ones_like(p, dtype=torch.bool)
        smooth = p >= LEAST_DENOMINATOR
        count = n
    else:
        truth = target.unsqueeze(-2) == torch.arange(n, device=p.device).unsqueeze(-1)
        smooth = p * (1 - p) >= LEAST_DENOMINATOR
        count = n * n
    half = torch.full_like(p, 0.5)
    hit, miss = torch.where(smooth & truth, p, half), torch.where(smooth & ~truth, p, half)
    fixed = p.detach()
    edge = -torch.where(truth, fixed.log(), (-fixed).log1p()).clamp_min(LOWEST_LOG)
    slope = (fixed - truth.to(p.dtype)) / LEAST_DENOMINATOR
    entries = torch.where(smooth, -torch.where(truth, hit.log(), (-miss).log1p()), edge + slope * (p - fixed))
    return entries.flatten(1).sum(-1) / count
