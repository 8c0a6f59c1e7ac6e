"""Catches a candidate that is another loss than its name says."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import nsc
from experiments import candidates
from experiments.data import fingerprint, load
from experiments.methods import Truth
from experiments.tables.plan import Settings

N, BATCH = 6, 3


def lists():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(BATCH, N, generator=generator)
    ranks = torch.stack([torch.randperm(N, generator=generator) for _ in range(BATCH)])
    return scores.requires_grad_(), Truth(ranks, ranks)


def loss(start):
    return start(N, torch.Generator().manual_seed(1))(*lists())


@pytest.mark.parametrize("name", candidates.CANDIDATES)
def test_every_candidate_teaches_scores(name):
    """A small step against the gradient lowers the loss by the square of its length."""
    start = candidates.CANDIDATES[name]
    scores, truth = lists()
    value = start(N, torch.Generator().manual_seed(1))(scores, truth)
    (gradient,) = torch.autograd.grad(value, scores)
    step = 1e-3 / gradient.norm()
    lower = start(N, torch.Generator().manual_seed(1))(scores.detach() - step * gradient, truth)
    if "straight-through" in name:  # the value is that of exact ranks
        assert lower == value
    elif name == "steepness over the scores' spread":  # the spread has no gradient
        assert gradient.norm() > 0
    else:
        assert (value - lower).item() == pytest.approx((step * gradient.norm().square()).item(), rel=0.1)


def test_layers_of_one_steepness_are_the_network():
    torch.testing.assert_close(
        loss(candidates.by_layer(1.0)), loss(candidates.through(candidates.cross_entropy))
    )


def test_the_mean_over_equal_orders_is_the_loss_of_one(monkeypatch):
    monkeypatch.setattr(candidates, "ORDERS", 2)
    same = candidates.by(True, 1, 1)
    one = loss(candidates.through(candidates.cross_entropy, candidates.by(True, 1)))
    for of in (candidates.cross_entropy, candidates.of_mean):
        torch.testing.assert_close(loss(candidates.through(of, same)), one)


def test_losses_at_a_hard_permutation():
    op = nsc.compile("odd_even", N)
    ranks = torch.arange(N).expand(BATCH, N)
    for of in (candidates.interval, candidates.cumulative, candidates.both, candidates.binary):
        assert of(op, ranks.float(), ranks, 1e4).item() == pytest.approx(0, abs=1e-3)
    assert candidates.blurred(op, ranks.float(), ranks, 1e4) > 1
    swapped = torch.tensor([1, 0, 3, 2, 5, 4]).expand(BATCH, N)
    assert candidates.interval(op, swapped.float(), ranks, 1e4).item() == pytest.approx(0, abs=1e-3)
    assert candidates.cross_entropy(op, swapped.float(), ranks, 1e4) > 1


@pytest.mark.slow("a model is trained")
def test_a_run_is_measured_on_the_validation_part(monkeypatch):
    monkeypatch.setattr(candidates, "ITEMS", 500)
    settings = Settings(candidates.PROFILE, (("digits", fingerprint(load("digits"))),), 1)
    run = replace(candidates.run_of(settings, 15), steps=12)
    found = {(name, 15): candidates.em5(name, run, None) for name in ("1 order", "LapSum, α = 1")}
    assert all(0 <= value < 100 for value in found.values())
    every = {
        (name, n): found.get((name, n), 12.34) for name in candidates.CANDIDATES for n in candidates.SIZES
    }
    page = candidates.page(every, "digits")
    assert f"| 1 order | {found['1 order', 15]:.1f} | 12.3 |" in page
    assert page.count("\n| ") == len(candidates.CANDIDATES) + 2
