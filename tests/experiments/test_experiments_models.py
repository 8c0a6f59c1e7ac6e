"""The models: shapes, the paper's sizes, and values that agree with the plain order of layers."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from experiments.errors import ExperimentError
from experiments.models import MODELS, ResidualBlock

pytestmark = pytest.mark.slow("models of the experiments are built")

SHAPES = {
    "paper": (1, 28, 112),
    "half": (1, 8, 32),
    "svhn": (3, 54, 54),
    "vanilla": (3, 32, 32),
    "resnet18": (3, 32, 32),
}


def matrices(model: nn.Module) -> list[tuple[int, ...]]:
    """Return the shapes of all weights that are no vectors."""
    return [tuple(p.shape) for p in model.parameters() if p.dim() > 1]


@pytest.mark.parametrize("name", MODELS)
def test_outputs_have_their_shape_and_every_weight_a_gradient(name: str) -> None:
    torch.manual_seed(0)
    images = torch.rand(3, *SHAPES[name])
    outputs, shape = (10, (3, 10)) if name in ("vanilla", "resnet18") else (1, (3,))
    model = MODELS[name](SHAPES[name], outputs)
    scores = model(images)
    assert scores.shape == shape
    (scores - torch.linspace(-1, 1, scores.numel()).reshape(shape)).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in model.parameters())


def test_the_papers_scorers() -> None:
    assert matrices(MODELS["paper"]((1, 28, 112), 1)) == [
        (32, 1, 5, 5),
        (64, 32, 5, 5),
        (64, 64 * 7 * 28),
        (1, 64),
    ]
    assert matrices(MODELS["svhn"]((3, 54, 54), 1)) == [
        *((32, 3, 5, 5), (64, 32, 5, 5), (128, 64, 5, 5), (256, 128, 5, 5)),
        *((64, 256 * 3 * 3), (1, 64)),
    ]


def test_the_papers_classifier() -> None:
    model = MODELS["vanilla"]((3, 32, 32), 100)
    filters = [(16, 3, 3, 3), (32, 16, 3, 3), (64, 32, 3, 3), (128, 64, 3, 3)]
    assert matrices(model) == [*filters, (256, 128 * 8 * 8), (100, 256)]
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in model.modules()) == 4


def test_resnet18_is_the_one_of_its_paper() -> None:
    # 11,173,962 is the count of ResNet18 with a 3×3 first convolution and ten classes.
    model = MODELS["resnet18"]((3, 32, 32), 10)
    assert sum(p.numel() for p in model.parameters()) == 11_173_962
    assert sum(isinstance(layer, nn.Conv2d) for layer in model.modules()) == 17 + 3


def test_a_residual_block_without_residual_is_its_shortcut() -> None:
    block = ResidualBlock(4, 4, 1)
    last = block.residual[-1]
    assert isinstance(last, nn.BatchNorm2d)
    nn.init.zeros_(last.weight)
    x = torch.randn(2, 4, 5, 5)
    assert torch.equal(block(x), x.relu())
    assert ResidualBlock(4, 8, 2)(x).shape == (2, 8, 3, 3)


def test_an_image_too_small_to_pool_is_refused() -> None:
    with pytest.raises(ExperimentError, match="pools 4 times needs images of at least 16×16, got 8×32"):
        MODELS["svhn"]((1, 8, 32), 1)
