"""Relaxed sorting in plain indexed torch, as one would write it by hand: gathers, no dense matrices."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from nsc.compiler.network import Comparators, Network

EPSILON = 1e-10


@dataclass(frozen=True)
class Layer:
    """The wires of a layer.

    Attributes:
        lo, hi: both wires of each comparator.
        rest: the other wires.
        order: indices that gather the concatenation of lo, hi and rest in the order of the wires.
    """

    lo: Tensor
    hi: Tensor
    rest: Tensor
    order: Tensor


def layers_of(network: Network, device: str = "cpu") -> list[Layer]:
    """Return the index tensors of a network."""
    with torch.device(device):
        return [_layer(network.n, pairs) for pairs in network.layers()]


def _layer(n: int, pairs: Comparators) -> Layer:
    lo, hi = torch.tensor(pairs.T.tolist())
    rest = torch.tensor(sorted(set(range(n)) - set(pairs.ravel().tolist())), dtype=torch.int64)
    return Layer(lo, hi, rest, torch.argsort(torch.cat([lo, hi, rest])))


def sort(layers: list[Layer], x: Tensor, steepness: float, art_lambda: float) -> Tensor:
    """Return the relaxed sorted values of x, (batch, n)."""
    for layer in layers:
        x = _mixed(layer, _keep(layer, x, steepness, art_lambda), x, -1)
    return x


def permutation(layers: list[Layer], x: Tensor, steepness: float, art_lambda: float) -> Tensor:
    """Return P, (batch, n, n)."""
    P = torch.eye(x.shape[-1], device=x.device).expand(x.shape[0], -1, -1)
    for layer in layers:
        keep = _keep(layer, x, steepness, art_lambda)
        x = _mixed(layer, keep, x, -1)
        P = _mixed(layer, keep.unsqueeze(-1), P, -2)
    return P


def _keep(layer: Layer, x: Tensor, steepness: float, art_lambda: float) -> Tensor:
    gap = x.index_select(-1, layer.hi) - x.index_select(-1, layer.lo)
    return torch.sigmoid(steepness * gap / (gap.abs() + EPSILON) ** art_lambda)


def _mixed(layer: Layer, keep: Tensor, x: Tensor, wires: int) -> Tensor:
    """Return x after a layer; `wires` is the axis of the wires."""
    # index_select, because the gradient of x[..., index] adds one element at a time.
    a, b, swap = x.index_select(wires, layer.lo), x.index_select(wires, layer.hi), 1 - keep
    mixed = [keep * a + swap * b, swap * a + keep * b]
    if len(layer.rest):
        mixed.append(x.index_select(wires, layer.rest))
    return torch.cat(mixed, wires).index_select(wires, layer.order)
