"""Train with clients of whom some attack: the coordinate-wise median of their gradients.

    python -m examples.clients

Fifteen clients each hold a share of scikit-learn's handwritten digits. In each step a client sends the
gradient of a linear model on its own images, and four of them send ten times its negative. The server takes
a step by the mean, or by the median of each coordinate. The smallest known network for the median of 15
values gives the medians of all coordinates at once.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits
from torch import Tensor

import nsc
from examples.showing import BLUE, INKS, RED

CLIENTS, ATTACKERS, RATE = 15, 4, 0.5
GREEN = "#009e73"

Combine = Callable[[Tensor], Tensor]


def shares(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the clients' images (CLIENTS, m, 64) and labels, and those that are held out."""
    digits = load_digits()
    images, labels = torch.tensor(digits.data).float() / 16, torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    images, labels = images[order], labels[order]
    m = 1500 // CLIENTS
    learned = slice(0, CLIENTS * m)
    return (
        images[learned].view(CLIENTS, m, -1),
        labels[learned].view(CLIENTS, m),
        images[1500:],
        labels[1500:],
    )


def gradients(weights: Tensor, images: Tensor, labels: Tensor, attackers: int) -> Tensor:
    """Return the gradient that each client sends, (CLIENTS, 10, 65)."""
    ones = images.new_ones(*images.shape[:-1], 1)
    inputs = torch.cat([images, ones], -1)
    errors = (inputs @ weights.T).softmax(-1) - torch.nn.functional.one_hot(labels, 10)
    sent = errors.transpose(-1, -2) @ inputs / images.shape[1]
    sent[:attackers] *= -10
    return sent


def train(combine: Combine, attackers: int, steps: int, seed: int) -> list[float]:
    """Return the share of held-out digits that are read right, after each step."""
    images, labels, unseen, truth = shares(seed)
    weights = torch.zeros(10, 65)
    inputs = torch.cat([unseen, unseen.new_ones(len(unseen), 1)], -1)
    found = []
    for _ in range(steps):
        weights -= RATE * combine(gradients(weights, images, labels, attackers))
        found.append(((inputs @ weights.T).argmax(-1) == truth).float().mean().item())
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=200, help="Steps of each training.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the shares.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/clients.png"),
    help="The picture.",
)
def main(steps: int, seed: int, out: Path) -> None:
    """Train a reader of digits with honest and hostile clients."""
    out.parent.mkdir(parents=True, exist_ok=True)
    median = nsc.compile("best", CLIENTS, select=nsc.median())

    def by_median(sent: Tensor) -> Tensor:
        return median.hard_select(sent, dim=0, values_only=True)[0]

    runs = {
        "mean, all honest": train(lambda sent: sent.mean(0), 0, steps, seed),
        f"mean, {ATTACKERS} of {CLIENTS} attack": train(lambda sent: sent.mean(0), ATTACKERS, steps, seed),
        f"median, {ATTACKERS} of {CLIENTS} attack": train(by_median, ATTACKERS, steps, seed),
    }
    table = Table("the server takes", "held-out digits read right")
    for name, found in runs.items():
        table.add_row(name, f"{found[-1]:.1%}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, runs)
    console.print(f"picture: {out}")


def draw(out: Path, runs: dict[str, list[float]]) -> None:
    """Write a PNG of the trainings."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(7, 2.6), layout="constrained")
        axes = figure.subplots()
        for (name, found), color in zip(runs.items(), (GREEN, RED, BLUE), strict=True):
            axes.plot(range(1, len(found) + 1), found, color=color, label=name)
        axes.set_xlabel("steps")
        axes.set_ylabel("held-out digits read right")
        axes.set_ylim(0, 1)
        axes.legend()
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
