"""Learn from scores that begin far apart, where the tails of the loss decide.

    python -m examples.far_scores

The model of digits.py starts with its scores a thousand times as large. Nearly every entry of P in the loss
is then below 1e-12. A loss that cuts probabilities there has no gradient where the prediction is most wrong.
The fused cross entropy has the derivative of its value down to e^-80. Both losses train on the same images
and seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import nsc
from examples.digits import NOISE, evaluate
from experiments.data import load
from experiments.models import MODELS
from experiments.samples import FourDigits
from nsc.operators.sorter import Sorter

LEARNING_RATE = (
    2e-3  # at the peak of its cycle; scores that begin far apart bear less than those of digits.py
)
# A loss on a stored P usually cuts probabilities here, before it takes logarithms.
FLOOR = 1e-12

Loss = Callable[[Sorter, Tensor, Tensor], Tensor]


def floored(op: Sorter, scores: Tensor, ranks: Tensor) -> Tensor:
    """Return the cross entropy of a stored P, cut at FLOOR."""
    P = op.sort_with_permutation(scores)[1]
    return -P.gather(-2, ranks.unsqueeze(-2)).clamp_min(FLOOR).log().mean()


def fused(op: Sorter, scores: Tensor, ranks: Tensor) -> Tensor:
    """Return nsc's cross entropy."""
    return op.cross_entropy(scores, ranks)


def train(
    op: Sorter, loss: Loss, learned: FourDigits, gain: float, steps: int, batch: int, seed: int
) -> nn.Module:
    """Train a new model on `batch` samples of op.n numbers a step, and return it."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    model = MODELS["half"](learned.shape, 1)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        scores, ranks = draw(model, learned, batch, op.n, generator)
        optimizer.zero_grad()
        torch.autograd.backward(loss(op, gain * scores, ranks))
        optimizer.step()
        schedule.step()
    return model


def draw(
    model: nn.Module, samples: FourDigits, batch: int, n: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return the scores and true ranks of `batch` samples of n noisy numbers, (batch, n)."""
    images, numbers = samples.draw(batch * n, generator)
    images += NOISE * torch.randn(images.shape, generator=generator)
    ranks = numbers.view(batch, n).argsort(stable=True).argsort()
    return model(images).view(batch, n), ranks


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--n", type=click.IntRange(2), default=16, show_default=True, help="Numbers per sample.")
@click.option("--gain", type=float, default=1000.0, show_default=True, help="Factor of all scores.")
@click.option("--steps", type=click.IntRange(1), default=400, show_default=True, help="Training steps.")
@click.option("--batch", type=click.IntRange(1), default=64, show_default=True, help="Samples a step.")
@click.option("--seeds", type=click.IntRange(1), default=2, show_default=True, help="Runs of each loss.")
@click.option("--test-numbers", type=click.IntRange(5), default=20_000, show_default=True, help="To test on.")
def main(n: int, gain: float, steps: int, batch: int, seeds: int, test_numbers: int) -> None:
    """Train from far-apart scores with a floored and with the fused loss."""
    op = nsc.compile("bitonic", n)
    data = load("digits")
    table = Table(title=f"{op.name}, scores × {gain:g}, {steps} steps", title_justify="left")
    table.add_column("loss")
    table.add_column("seed", justify="right")
    table.add_column("EM5, all ranks right among 5", justify="right")
    with Console(stderr=True).status("training"):
        for name, loss in ((f"log of a stored P, cut at {FLOOR:g}", floored), ("nsc's cross_entropy", fused)):
            for seed in range(seeds):
                model = train(op, loss, FourDigits(data.training), gain, steps, batch, seed)
                metrics = evaluate(model, FourDigits(data.test), n, test_numbers, seed)
                table.add_row(name, str(seed), f"{metrics['em5']:.1%}")
    Console().print(table)


if __name__ == "__main__":
    main()
