"""Route samples to two of sixteen experts, by the soft weights of the top k.

    python -m examples.experts

A mixture of experts computes what the router's k largest scores choose. Softmax over the chosen scores gives
no gradient to the others. nsc's weights of the top k are 1 for the chosen and 0 for the others, with the
gradient of the soft ones, which all scores have. The task has sixteen clusters, each with a linear map of its
own; the table has the error on unseen samples, over five seeds.
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
from torch import Tensor

from examples.showing import BLUE, INKS, RED
from nsc.nn import SoftTopK

EXPERTS, CHOSEN, FEATURES, BATCH = 16, 2, 8, 256


class Task:
    """Clusters of samples, each with a linear map."""

    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)
        self._centres = 3 * torch.randn(EXPERTS, FEATURES, generator=self._generator)
        self._maps = torch.randn(EXPERTS, FEATURES, FEATURES, generator=self._generator) / FEATURES**0.5

    def draw(self, count: int) -> tuple[Tensor, Tensor]:
        """Return samples (count, FEATURES) and their images."""
        cluster = torch.randint(EXPERTS, (count,), generator=self._generator)
        x = self._centres[cluster] + torch.randn(count, FEATURES, generator=self._generator)
        return x, (self._maps[cluster] @ x.unsqueeze(-1)).squeeze(-1)


class Mixture(torch.nn.Module):
    """Experts and a router.

    Args:
        weights: makes weights (…, EXPERTS) of the router's scores; CHOSEN of them are not 0.
    """

    def __init__(self, by_network: bool) -> None:
        super().__init__()
        self.router = torch.nn.Linear(FEATURES, EXPERTS)
        self.experts = torch.nn.Parameter(0.1 * torch.randn(EXPERTS, FEATURES, FEATURES))
        self.top = SoftTopK("best", EXPERTS, k=CHOSEN, steepness=2.0, straight_through=True)
        self.by_network = by_network

    def forward(self, x: Tensor) -> Tensor:
        """Return the images of samples."""
        scores = self.router(x)
        if self.by_network:
            weights = self.top(scores) * scores.softmax(-1)
            weights = weights / weights.sum(-1, keepdim=True)
        else:
            best = scores.topk(CHOSEN, -1)
            weights = torch.zeros_like(scores).scatter(-1, best.indices, best.values.softmax(-1))
        return torch.einsum("be,efg,bg->bf", weights, self.experts, x)


def train(by_network: bool, steps: int, seed: int) -> list[float]:
    """Return the errors on unseen samples, after every tenth step."""
    torch.manual_seed(seed)
    task, model = Task(seed), Mixture(by_network)
    unseen, wanted = Task(seed).draw(2000)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    found = []
    for step in range(steps):
        x, y = task.draw(BATCH)
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()
        if step % 10 == 9 or step == steps - 1:
            with torch.inference_mode():
                found.append((model(unseen) - wanted).square().mean().item())
    return found


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=600, help="Steps of each training.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Trainings of each kind.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/experts.png"),
    help="The picture.",
)
def main(steps: int, seeds: int, out: Path) -> None:
    """Train mixtures of experts by two kinds of routing, and compare their errors."""
    out.parent.mkdir(parents=True, exist_ok=True)
    kinds = {"softmax of the chosen": False, "weights of the top k": True}
    runs = {name: [train(kind, steps, seed) for seed in range(seeds)] for name, kind in kinds.items()}
    table = Table("router", "error on unseen samples", "standard deviation")
    for name, found in runs.items():
        last = [each[-1] for each in found]
        table.add_row(name, f"{mean(last):.3f}", f"{stdev(last) if seeds > 1 else 0:.3f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, runs)
    console.print(f"picture: {out}")


def draw(out: Path, runs: dict[str, list[list[float]]]) -> None:
    """Write a PNG of the trainings."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(7, 2.6), layout="constrained")
        axes = figure.subplots()
        for (name, found), color in zip(runs.items(), (RED, BLUE), strict=True):
            for seed, each in enumerate(found):
                places = range(10, 10 * len(each) + 1, 10)
                axes.plot(places, each, color=color, alpha=0.6, label=None if seed else name)
        axes.set_xlabel("steps; a line is a seed")
        axes.set_ylabel("error on unseen samples")
        axes.set_yscale("log")
        axes.legend()
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
