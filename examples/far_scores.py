"""Learn from scores that begin far apart, where the tails of the loss decide.

    python -m examples.far_scores

The model of digits.py starts with its scores a thousand times as large. Nearly every entry of P in the loss
is then below 1e-12. A loss that cuts probabilities there has no gradient where the prediction is most wrong.
The fused cross entropy has the derivative of its value down to e^-80. Both losses train on the same images
and seeds. The picture shows how many held-out samples of five come into the right order, and how many of a
batch's probabilities are below the cut, both after each step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import nsc
from examples.digits import NOISE, evaluate
from examples.four_digits import FourDigits, load, scorer
from examples.showing import INKS

LEARNING_RATE = (
    2e-3  # at the peak of its cycle; scores that begin far apart bear less than the scores of digits.py
)
# A loss on a stored P usually cuts probabilities here, before it takes logarithms.
FLOOR = 1e-12
COLOURS = "#c1392b", "#1f5fa8"
# While it trains, a model is tested every so many steps, on so many numbers.
EVERY, TESTED = 20, 5_000

Loss = Callable[[nsc.Sorter, Tensor, Tensor], Tensor]


def floored(op: nsc.Sorter, scores: Tensor, ranks: Tensor) -> Tensor:
    """Return the cross entropy of a stored P, cut at FLOOR."""
    P = op.sort_with_permutation(scores)[1]
    return -P.gather(-2, ranks.unsqueeze(-2)).clamp_min(FLOOR).log().mean()


def fused(op: nsc.Sorter, scores: Tensor, ranks: Tensor) -> Tensor:
    """Return nsc's cross entropy."""
    return op.cross_entropy(scores, ranks)


@dataclass(frozen=True)
class Step:
    """What is known of a model after some steps of training.

    Attributes:
        step: how many.
        em5: share of held-out samples of five that come into the right order.
        cut: share of the probabilities in the batch's loss that are below FLOOR.
    """

    step: int
    em5: float
    cut: float


def train(
    model: nn.Module,
    op: nsc.Sorter,
    loss: Loss,
    samples: tuple[FourDigits, FourDigits],
    gain: float,
    steps: int,
    batch: int,
    seed: int,
) -> Iterator[Step]:
    """Train on `batch` samples of op.n numbers a step, and yield what is known now and then.

    Args:
        samples: to learn from, and to test on.
    """
    learned, held_out = samples
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for step in range(steps + 1):
        scores, ranks = sample(model, learned, batch, op.n, generator)
        if step % EVERY == 0 or step == steps:
            P = op.sort_with_permutation(gain * scores.detach())[1]
            cut = (P.gather(-2, ranks.unsqueeze(-2)) < FLOOR).float().mean().item()
            yield Step(step, evaluate(model, held_out, op.n, TESTED, seed)["em5"], cut)
        if step == steps:
            return
        optimizer.zero_grad()
        torch.autograd.backward(loss(op, gain * scores, ranks))
        optimizer.step()
        schedule.step()


def sample(
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
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/far_scores.png"),
    show_default=True,
    help="The picture.",
)
def main(n: int, gain: float, steps: int, batch: int, seeds: int, test_numbers: int, out: Path) -> None:
    """Train from far-apart scores with a floored and with the fused loss."""
    out.parent.mkdir(parents=True, exist_ok=True)
    op = nsc.compile("bitonic", n)
    training, _, held_out = load()
    samples = training, held_out
    title = f"{op.name}, scores × {gain:g}, {steps} steps"
    table = Table(title=title, title_justify="left")
    table.add_column("loss")
    table.add_column("seed", justify="right")
    table.add_column("EM5, all ranks right among 5", justify="right")
    runs: dict[str, list[list[Step]]] = {}
    with Console(stderr=True).status("training"):
        for name, loss in ((f"log of a stored P, cut at {FLOOR:g}", floored), ("nsc's cross_entropy", fused)):
            for seed in range(seeds):
                torch.manual_seed(seed)
                model = scorer(training.shape)
                history = [*train(model, op, loss, samples, gain, steps, batch, seed)]
                runs.setdefault(name, []).append(history)
                metrics = evaluate(model, samples[1], n, test_numbers, seed)
                table.add_row(name, str(seed), f"{metrics['em5']:.1%}")
    draw(out, title, runs)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    console.print(f"picture: {out}")


def draw(out: Path, title: str, runs: dict[str, list[list[Step]]]) -> None:
    """Write a PNG: both shares of each loss, a line for each seed."""
    with matplotlib.style.context(INKS):
        _drawn(title, runs).savefig(out, dpi=100)


def _drawn(title: str, runs: dict[str, list[list[Step]]]) -> Figure:
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    figure.suptitle(title, fontsize=11)
    left, right = figure.subplots(1, 2)
    for (name, seeds), colour in zip(runs.items(), COLOURS, strict=True):
        for seed, history in enumerate(seeds):
            steps = [found.step for found in history]
            label = "" if seed else name
            left.plot(steps, [found.em5 for found in history], color=colour, label=label)
            right.plot(steps, [found.cut for found in history], color=colour)
    left.set(title="held-out samples of five in the right order", xlabel="step")
    right.set(title=f"probabilities in the loss below {FLOOR:g}", xlabel="step")
    left.legend(frameon=False)
    for axes in (left, right):
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        axes.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
