"""Learn a monotone score by Spearman's correlation, where the target's scale is of no use.

    python -m examples.correlation

The target is a strange increasing function of a score that features have, with gross errors in a tenth of
the samples. A least-squares fit follows the scale and the errors. Spearman's loss sees the order alone. The
table has the correlation of ranks on unseen data, over five seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from scipy.stats import spearmanr
from torch import Tensor

from examples.showing import BLUE, INKS, RED
from nsc.nn import SpearmanLoss

FEATURES, BATCH = 8, 64

Loss = Callable[[Tensor, Tensor], Tensor]


def draw_data(count: int, weights: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return features (count, FEATURES) and targets (count,), some of them grossly wrong."""
    x = torch.randn(count, FEATURES, generator=generator)
    target = (2 * (x @ weights + 0.3 * torch.randn(count, generator=generator))).exp()
    is_wrong = torch.rand(count, generator=generator) < 0.1
    return x, torch.where(is_wrong, 300 * torch.rand(count, generator=generator), target)


def train(loss: Loss, x: Tensor, target: Tensor, steps: int, seed: int) -> Tensor:
    """Return the weights of a linear score, trained by a loss of batches."""
    torch.manual_seed(seed)
    weights = (0.1 * torch.randn(FEATURES)).requires_grad_()
    optimizer = torch.optim.Adam([weights], lr=0.02)
    for _ in range(steps):
        batch = torch.randint(len(x), (BATCH,))
        optimizer.zero_grad()
        loss(x[batch] @ weights, target[batch]).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return weights.detach()


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=500, help="Steps of each training.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Trainings of each loss.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/correlation.png"),
    help="The picture.",
)
def main(steps: int, seeds: int, out: Path) -> None:
    """Train a score by Spearman's correlation and by least squares, and compare them on unseen data."""
    out.parent.mkdir(parents=True, exist_ok=True)
    by_order = SpearmanLoss("bitonic", BATCH, steepness=5.0)
    losses: dict[str, Loss] = {
        "Spearman's correlation": lambda score, target: by_order(score, target),
        "least squares": lambda score, target: (score - target).square().mean(),
        "least squares of logarithms": lambda score, target: (score - target.log()).square().mean(),
    }
    found: dict[str, list[float]] = {name: [] for name in losses}
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        truth = torch.randn(FEATURES, generator=generator) / FEATURES**0.5
        x, target = draw_data(2000, truth, generator)
        unseen = torch.randn(2000, FEATURES, generator=generator)
        for name, loss in losses.items():
            weights = train(loss, x, target, steps, seed)
            found[name].append(spearmanr(unseen @ weights, unseen @ truth).statistic)
    table = Table("trained by", "correlation of ranks", "standard deviation")
    for name, each in found.items():
        table.add_row(name, f"{mean(each):.4f}", f"{stdev(each) if seeds > 1 else 0:.4f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, found)
    console.print(f"picture: {out}")


def draw(out: Path, found: dict[str, list[float]]) -> None:
    """Write a PNG with a point for each training."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(7, 1.8), layout="constrained")
        axes = figure.subplots()
        for place, (each, color) in enumerate(zip(found.values(), (BLUE, RED, RED), strict=True)):
            axes.plot(each, [place] * len(each), "o", color=color, alpha=0.7)
        axes.set_yticks(range(len(found)), list(found))
        axes.set_ylim(-0.6, len(found) - 0.4)
        axes.set_xlabel("correlation of ranks on unseen data; a point is a seed")
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
