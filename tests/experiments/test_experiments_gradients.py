"""Catches a measure of gradients that says something else than its name."""

from __future__ import annotations

import pytest
import torch
from click.testing import CliRunner

from experiments import gradients
from experiments.methods import Truth, find

N, BATCH = 8, 3


def measured(loss, teacher=None):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(BATCH, N, generator=generator)
    ranks = torch.stack([torch.randperm(N, generator=generator) for _ in range(BATCH)])
    truth = Truth(ranks, ranks)
    if teacher is None:
        teacher = gradients.gradients(loss, scores, truth, generator).mean(0)
    return gradients.measures(loss, teacher, scores, truth, generator), scores


def test_a_loss_of_ranks_and_scores_depends_on_no_order():
    found, _ = measured(lambda scores, truth: (scores - truth.ranks).square().sum(-1).mean())
    assert found.chance == pytest.approx(0, abs=1e-12)
    assert found.direction == pytest.approx(1)


def test_a_loss_of_places_is_chance_alone():
    """Its gradient is 1 at one place and -1 at another, whatever stands there."""
    found, _ = measured(lambda scores, truth: (scores[:, 0] - scores[:, 1]).mean())
    assert found.chance == pytest.approx(1, abs=0.05)
    assert found.largest == pytest.approx(1)
    assert found.flat == pytest.approx((N - 2) / N)
    assert found.scale == pytest.approx(gradients.FACTOR)


def test_gradients_are_of_single_lists_and_by_item():
    """A linear loss gives each item its rank, as a mean over the batch would give a share of it."""
    generator = torch.Generator().manual_seed(0)
    scores, ranks = torch.randn(BATCH, N, generator=generator), torch.arange(N).expand(BATCH, N)
    found = gradients.gradients(
        lambda scores, truth: (scores * truth.ranks).sum(-1).mean(), scores, Truth(ranks, ranks), generator
    )
    assert found.shape == (gradients.ORDERS, BATCH, N)
    torch.testing.assert_close(found, ranks.double().expand(found.shape))


def test_more_orders_leave_less_to_chance():
    one, eight = (
        measured(find(f"odd_even+cauchy+art=0+orders={orders}").start(N, 2.0, torch.Generator()))[0].chance
        for orders in (1, 8)
    )
    assert 0 < eight < one / 3


@pytest.mark.slow("a model is trained")
def test_the_command_writes_a_page_and_a_picture(tmp_path, monkeypatch):
    for name, value in {"PARTS": (1 / 400, 1 / 300), "LISTS": 6, "ORDERS": 3}.items():
        monkeypatch.setattr(gradients, name, value)
    arguments = ["--data", "digits", "--out", str(tmp_path / "results")]
    result = CliRunner().invoke(gradients.main, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    page = (tmp_path / "results" / "gradients.md").read_text(encoding="utf-8")
    assert "| LapSum | 0.0 | 0.0 |" in page
    assert page.count("step 3") == len(gradients.TITLES)
    assert (tmp_path / "results" / "gradients.png").read_bytes().startswith(b"\x89PNG")
