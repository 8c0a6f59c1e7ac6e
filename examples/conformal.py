"""Train a classifier for small prediction sets, through the quantile that calibrates them.

    python -m examples.conformal

Conformal prediction returns the classes whose probability is above a threshold, a quantile of the true
class's probabilities on calibration data. So the sets hold the true class as often as is asked for, whatever
the model. A batch's second half has the sizes of its sets under the threshold of its first half. The model
learns to make them small: the gradient goes through the quantile. The data are scikit-learn's digits, with
noise.

Source: Stutz et al., Learning optimal conformal classifiers, 2022.
"""

from __future__ import annotations

from pathlib import Path
from statistics import mean, stdev

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor

from examples.showing import BLUE, INKS, RED
from nsc.nn import Quantile

MISSED, HALF, NOISE, SOFTNESS = 0.1, 64, 0.6, 0.05


def digits(seed: int) -> tuple[Tensor, Tensor]:
    """Return noisy digits (count, 64) and their classes, in random order."""
    data = load_digits()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(data.target), generator=generator)
    images = torch.tensor(data.data).float()[order] / 16
    return images + NOISE * torch.randn(images.shape, generator=generator), torch.tensor(data.target)[order]


def of_truth(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logarithms of the true classes' probabilities."""
    return logits.log_softmax(-1).gather(-1, labels.unsqueeze(-1)).squeeze(-1)


def train(images: Tensor, labels: Tensor, weight: float, steps: int, seed: int) -> torch.nn.Module:
    """Return a classifier, trained by cross entropy and, by a weight, by the sizes of its sets."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-4)
    threshold = Quantile("bitonic", HALF, q=MISSED, steepness=10.0)
    for _ in range(steps):
        batch = torch.randint(len(images), (2 * HALF,))
        logits = model(images[batch])
        loss = -of_truth(logits, labels[batch]).mean()
        if weight:
            least = threshold(of_truth(logits[:HALF], labels[batch][:HALF]))
            is_in = torch.sigmoid((logits[HALF:].log_softmax(-1) - least) / SOFTNESS)
            loss = loss + weight * (is_in.sum(-1) - 1).relu().mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


def sets_of(model: torch.nn.Module, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return the share of sets with the true class, and their mean size, calibrated on the first half."""
    half = len(images) // 2
    with torch.inference_mode():
        logits = model(images)
        level = int(MISSED * (half + 1)) - 1
        least = of_truth(logits[:half], labels[:half]).sort().values[level]
        is_in = logits[half:].log_softmax(-1) >= least
        hit = is_in.gather(-1, labels[half:].unsqueeze(-1))
    return hit.float().mean().item(), is_in.sum(-1).float().mean().item()


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=600, help="Steps of each training.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Trainings of each kind.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/conformal.png"),
    help="The picture.",
)
def main(steps: int, seeds: int, out: Path) -> None:
    """Train a classifier with and without the sizes of its sets, and compare these."""
    out.parent.mkdir(parents=True, exist_ok=True)
    kinds = {"cross entropy alone": 0.0, "and the sizes of the sets": 0.3}
    sizes: dict[str, list[float]] = {name: [] for name in kinds}
    hits: dict[str, list[float]] = {name: [] for name in kinds}
    for seed in range(seeds):
        images, labels = digits(seed)
        for name, weight in kinds.items():
            model = train(images[:900], labels[:900], weight, steps, seed)
            hit, size = sets_of(model, images[900:], labels[900:])
            hits[name].append(hit)
            sizes[name].append(size)
    table = Table("trained by", "right sets", "classes in a set", "deviation")
    for name, each in sizes.items():
        spread = stdev(each) if seeds > 1 else 0
        table.add_row(name, f"{mean(hits[name]):.1%}", f"{mean(each):.2f}", f"{spread:.2f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, sizes)
    console.print(f"picture: {out}")


def draw(out: Path, sizes: dict[str, list[float]]) -> None:
    """Write a PNG with a line for each seed."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(6, 2.6), layout="constrained")
        axes = figure.subplots()
        before, after = sizes.values()
        for one, other in zip(before, after, strict=True):
            axes.plot([0, 1], [one, other], color=BLUE if other < one else RED, marker="o")
        axes.set_xticks([0, 1], list(sizes))
        axes.set_xlim(-0.3, 1.3)
        axes.set_ylabel("classes in a set; a line is a seed")
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
