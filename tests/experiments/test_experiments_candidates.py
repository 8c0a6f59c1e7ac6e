"""Catches a candidate that is another loss than its name says."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice, product, repeat

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


def test_the_steepness_grows_fourfold_over_the_run():
    steps = candidates.batch_and_steps(candidates.PROFILE, 15)[1]
    first, *_, last = islice(candidates.growing(15), steps + 1)
    assert (first, last) == (0.5, 2.0)
    start = candidates.through(candidates.cross_entropy, factors=candidates.growing)
    half = candidates.through(candidates.cross_entropy, factors=lambda n: repeat(0.5))
    torch.testing.assert_close(loss(start), loss(half), rtol=0, atol=0)


def test_layers_of_one_steepness_are_the_network():
    torch.testing.assert_close(
        loss(candidates.by_layer(1.0)), loss(candidates.through(candidates.cross_entropy))
    )


@pytest.mark.parametrize("n", [2, 3, N, 15])
@pytest.mark.parametrize("network", [candidates.random_neighbours, candidates.random_in_front])
def test_random_networks_sort(network, n):
    drawn = [network(n, torch.Generator().manual_seed(seed)) for seed in range(3)]
    assert all(nsc.verify(one).verdict is nsc.Verdict.PROVED for one in drawn)
    assert n < 4 or len(set(drawn)) == 3


@pytest.mark.parametrize("name", ["steepness that is learned", "steepness that is learned for each layer"])
def test_a_learned_steepness_takes_steps_of_its_own(name):
    """Its loss begins as that of a fixed steepness, and falls below it while the scores stay."""
    scores, truth = lists()
    of = candidates.CANDIDATES[name](N, torch.Generator().manual_seed(1))
    losses = []
    for _ in range(20):
        value = of(scores, truth)
        torch.autograd.backward(value)
        losses.append(value.item())
    fixed = candidates.by_layer()(N, torch.Generator().manual_seed(1))
    same = [fixed(scores, truth).item() for _ in range(20)]
    assert losses[0] == pytest.approx(same[0], rel=1e-5)
    assert losses[-1] < 0.99 * same[-1]


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
    run = replace(candidates.run_of(settings, 15, 100), steps=12)
    found = [candidates.em5(name, run, None) for name in ("1 order", "LapSum, α = 1")]
    assert all(0 <= value < 100 for value in found)


def test_the_best_get_more_runs():
    first, *others = candidates.SEEDS
    value = {name: float(i) for i, name in enumerate(candidates.CANDIDATES)}
    value["float64"], value["pairwise"] = math.nan, 90.0
    found = {
        (name, n, first): value[name] + (n == 15)
        for name, n in product(candidates.CANDIDATES, candidates.SIZES)
    }
    best = candidates.best(found)
    assert set(candidates.ALWAYS) < set(best)
    assert "pairwise" in best
    assert "float64" not in best
    assert len(best) == candidates.BEST + len(candidates.ALWAYS)
    for i, seed in enumerate(others):
        found |= {("pairwise", n, seed): 60.0 + 2 * i for n in candidates.SIZES}
    page = candidates.page(found, "digits")
    assert "| pairwise | 91.0 | 90.0 | 62.0 (1.2) | 62.0 (1.2) |" in page
    assert f"| bitonic | {value['bitonic'] + 1:.1f} | {value['bitonic']:.1f} |  |  |" in page
    assert page.count("\n| ") == len(candidates.CANDIDATES) + 2
