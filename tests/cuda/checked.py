"""A kernel of CUDA on a device that is emulated, compared with the plain torch reference."""

from __future__ import annotations

import random

import torch
from device import EmulatedProgram

from nsc.compiler.driver import compile_network
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.contract.routings import IGNORED, ROUTINGS, Payload
from nsc.runtime.relaxed import cuda, reference
from nsc.runtime.relaxed.kernel import register_kernel
from nsc.runtime.relaxed.shapes import has_gradient, is_loss

BATCH = 5
TOLERANCE = {
    torch.float64: {"rtol": 1e-9, "atol": 1e-9},
    torch.float32: {"rtol": 5e-4, "atol": 5e-5},
}
# Routings, each with the number of columns of its payload.
ROUTED = [
    ("none", 0),
    ("permutation", 0),
    ("route", 1),
    ("route", 35),
    ("transposed", 1),
    ("transposed", 3),
    ("rows", 2),
    *((name, 0) for name, routing in ROUTINGS.items() if routing.is_loss),
]


def irregular(n: int) -> Network:
    """Return a merge exchange network with random crossings of wires and comparators in both directions."""
    layers = family_network("merge_exchange", n).layers()
    draw, names, crossed = random.Random(1), list(range(n)), []
    # From the end: to exchange two wires in front of their comparator changes no result.
    for layer in reversed([layer.tolist() for layer in layers]):
        crossed.append([(names[lo], names[hi]) for lo, hi in layer])
        for lo, hi in layer:
            if draw.random() < 0.5:
                names[lo], names[hi] = names[hi], names[lo]
    return Network.from_layers(n, crossed[::-1])


def targets(routing, n, batch, dtype, draw, order=None):
    """Return targets as a loss takes them: ranks in a random order, or `order`, and what is made of these.

    Some items do not count, and of the second sample none; other samples have items of equal rank.
    """
    order = torch.rand(batch, n, generator=draw).argsort(-1) if order is None else order
    counts = torch.rand(batch, n, generator=draw) < 0.8
    counts[:1], counts[1:2] = True, False
    form = ROUTINGS[routing].payload
    if form is Payload.TARGET:
        return torch.where(counts, order, IGNORED)
    weights = torch.where(counts, torch.rand(batch, n, generator=draw) + 0.5, 0)[:, None] / n
    if form is Payload.INTERVALS:
        rows = torch.stack([order // 3 * 3, (order // 3 * 3 + 2).clamp_max(n - 1)], 1)
        rows[-1:] = order[-1:, None]  # one rank for each
    else:
        rows = (order[:, None] == torch.arange(n)[:, None]).to(dtype)
        rows[1:] = torch.rand(batch - 1, n, n, generator=draw)
    return torch.cat([rows, weights], 1).to(dtype)


class Device:
    """A kernel and its emulated device.

    Attributes:
        steepness: of the inputs.
    """

    steepness = 3.0

    def __init__(self, monkeypatch, folder, request, **options):
        self.kernel = register_kernel(compile_network(request).package.files)
        self.program = EmulatedProgram(self.kernel, folder, **options)
        self.dtype = getattr(torch, request.dtypes[0])
        self.outputs = list(self.kernel.outputs.wires if self.kernel.outputs else range(self.kernel.n))
        monkeypatch.setattr(cuda, "program_of", lambda kernel, device: self.program)

    def inputs(self, routing, columns, batch=BATCH):
        n, draw = self.kernel.n, torch.Generator().manual_seed(2)
        x = torch.randn(batch, n, dtype=self.dtype, generator=draw)
        steepness = torch.tensor(self.steepness, dtype=self.dtype).expand(batch)
        if routing == "rows":
            return x, steepness, torch.arange(n)[self.outputs].flip(0)[:columns].expand(batch, -1)
        if is_loss(routing):
            return x, steepness, targets(routing, n, batch, self.dtype, draw)
        payload = torch.randn(batch, n, columns, dtype=self.dtype, generator=draw) if columns else None
        return x, steepness, payload

    def check(self, routing, columns, batch=BATCH):
        """Compare values, the routed output and all gradients with the reference."""
        inputs = self.inputs(routing, columns, batch)
        is_leaf = (True, True, has_gradient(routing))
        leaves = [t.clone().requires_grad_() if is_leaf[k] else t for k, t in enumerate(inputs)]
        expected = reference.relax(self.kernel, *leaves, routing)
        actual = cuda.relax_unchecked(*inputs, routing, self.kernel.spec)
        kinds = (0,) if routing == "none" else (0, 1)
        grads = [torch.randn_like(t) for t in expected]
        if self.kernel.outputs is not None:  # the other wires have no result and no gradient
            others = [wire for wire in range(self.kernel.n) if wire not in self.outputs]
            unwanted = [(0, (slice(None), others))] + [(1, (slice(None), others))] * (routing == "route")
            for k, place in unwanted:
                for tensor in (grads[k], expected[k].data, actual[k]):
                    tensor[place] = 0
        total = self.nothing(leaves) + sum((expected[k] * grads[k]).sum() for k in kinds)
        places = [k for k, t in enumerate(leaves) if t is not None and t.requires_grad]
        actual_grads = cuda.relax_backward_unchecked(
            grads[0], grads[1] if 1 in kinds else None, *inputs, routing, self.kernel.spec
        )
        for k in kinds:
            self.close(actual[k], expected[k].detach())
        expected_grads = torch.autograd.grad(total, [leaves[k] for k in places])
        for k, grad in zip(places, expected_grads, strict=True):
            self.close(actual_grads[k], grad)
        if is_loss(routing):
            losses, *actual_grads_of_losses = cuda.loss(*inputs, routing, self.kernel.spec)
            expected = reference.relax(self.kernel, *leaves, routing)[1]
            self.close(losses, expected.detach())
            grads = torch.autograd.grad(expected.sum() + self.nothing(leaves), [leaves[k] for k in places])
            for k, grad in zip(places, grads, strict=True):
                self.close(actual_grads_of_losses[k], grad)
            assert has_gradient(routing) or actual_grads_of_losses[2].numel() == 0
        return actual, actual_grads

    @staticmethod
    def nothing(leaves):
        """Return 0, a function of x and steepness: a loss of a network of one wire depends on neither."""
        return 0 * leaves[0].sum() + 0 * leaves[1].sum()

    def close(self, actual, expected):
        scale = max(1.0, float(expected.abs().max())) if expected.numel() else 1.0
        torch.testing.assert_close(actual / scale, expected / scale, **TOLERANCE[expected.dtype])
