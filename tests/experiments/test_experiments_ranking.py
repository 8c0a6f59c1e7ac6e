"""The ranking task: house numbers from end to end, the noise, the items that are measured, the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from works import run_of

from experiments.data import Data, Part, fingerprint, load
from experiments.ranking import Ranking
from experiments.run import Run
from experiments.training import train

pytestmark = pytest.mark.slow("methods of the experiments run")

CPU = torch.device("cpu")
HOUSES = """
import torch
from experiments.data import Data, Part, Source


def part(seed):
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (12, 3, 64, 64), dtype=torch.uint8, generator=generator)
    return Part(images, torch.tensor([3, 17, 250, 8, 17, 1024, 66, 5, 90, 31, 2, 400]))


SOURCE = Source("houses", "Houses", "numbers", 64, False, "stands in this file",
                lambda: Data(part(0), part(1), part(2)))
"""
RUN = replace(
    run_of(0),
    model="half",
    n=2,
    batch=10,
    steps=2,
    learning_rate=1e-3,
    validation=10,
    test=20,
)


@pytest.fixture
def houses(tmp_path: Path) -> str:
    file = tmp_path / "houses.py"
    file.write_text(HOUSES)
    return str(file)


def grey(side: int) -> Data:
    """Return three parts of ten images each, whose pixels are far from black and white."""

    def part(seed: int) -> Part:
        generator = torch.Generator().manual_seed(seed)
        images = torch.randint(100, 156, (10, 1, side, side), dtype=torch.uint8, generator=generator)
        return Part(images, torch.arange(10))

    return Data(part(0), part(1), part(2))


class Watching(nn.Module):
    """Keeps the images that it is given; its scores are zeros."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Tensor] = []

    def forward(self, images: Tensor) -> Tensor:
        self.seen.append(images)
        return torch.zeros(len(images))


def task(run: Run, data: Data, device: torch.device = CPU) -> Ranking:
    return Ranking(run, data, device, torch.Generator().manual_seed(run.seed))


def test_a_scorer_learns_from_house_numbers(houses: str) -> None:
    digest = fingerprint(load(houses))
    run = replace(RUN, data=houses, data_digest=digest, model="svhn", n=3, batch=2, noise=0.1)
    result = train(run)
    assert result.failure == ""
    assert [step for step, _ in result.losses] == [1, 2]
    assert result.test.keys() == result.training.keys() == {"em", "ew", "em5"}
    assert train(run).losses == result.losses


def test_noise_is_in_units_from_black_to_white(houses: str) -> None:
    for data, side, span in (("digits", 8, 1.0), (houses, 64, 2.0)):
        quiet, noisy = Watching(), Watching()
        task(replace(RUN, data=data), grey(side)).loss(quiet)
        task(replace(RUN, data=data, noise=0.1), grey(side)).loss(noisy)
        noise = noisy.seen[0] - quiet.seen[0]
        assert noise.std().item() == pytest.approx(0.1 * span, rel=0.05)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_what_is_measured_is_not_what_a_seed_draws(seed: int) -> None:
    learning, model = task(replace(RUN, seed=seed), grey(8)), Watching()
    learning.loss(model)
    parts = ("training", "validation", "test")
    for part in parts:
        learning.measure(model, part)
        learning.measure(model, part)
    learned, *measured = (images[:10] for images in model.seen)
    for first, again in zip(measured[::2], measured[1::2], strict=True):
        assert torch.equal(first, again)
        assert not torch.equal(first, learned)
