"""`python -m experiments.gradients`: what the gradients of scores depend on, of one method and another.

A model learns by LapSum. At some of its steps every method gets the same scores, in many orders of the items,
and five numbers are taken of its gradients. A part that changes with the order is chance: an item stands
nowhere by merit.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from torch import Tensor

from benchmarks.machine import machine
from experiments.data import fingerprint, load
from experiments.methods import Loss, Truth, find
from experiments.profiles import PROFILES
from experiments.ranking import Ranking
from experiments.tables.plan import Settings, ranking_run
from experiments.training import Training, data_of
from experiments.writing.markdown import paragraph, table
from experiments.writing.pictures import COLORS, INKS, MARKERS
from nsc.atomic import write_whole

N = 32
TEACHER, TEMPERATURE = "lap_sum", 0.3
# Methods at the temperatures that the table mnist chose on Fashion-MNIST; the last is `nsc.nn.OrderLoss`.
METHODS = {
    TEACHER: TEMPERATURE,
    "odd_even": 1.0,
    "bitonic": 1.0,
    "odd_even+cauchy+art=0": 2.0,
    "odd_even+cauchy+art=0+orders=16": 2.0,
}
PARTS = (1 / 20, 1 / 4, 1 / 2, 3 / 4, 1.0)
LISTS, ORDERS = 40, 64
# The factor of scores at which a gradient is compared with the one that training has.
FACTOR = 3.0


@dataclass(frozen=True)
class Measures:
    """Means over lists, of the gradient of a list's scores in ORDERS orders.

    Attributes:
        chance: the share of its squared length that changes with the order.
        direction: the cosine of its mean over orders with LapSum's.
        largest: the share of its squared length in the three largest of the items.
        flat: the share of items whose gradient is below a thousandth of the largest.
        scale: its length at scores times FACTOR, per unit of these scores, over its length.
    """

    chance: float
    direction: float
    largest: float
    flat: float
    scale: float


TITLES = {
    "chance": "changes with the order, % of the squared length",
    "direction": "cosine of the mean over orders with LapSum's",
    "largest": "in the three largest of 32 items, % of the squared length",
    "flat": "items below 1/1000 of the largest, %",
    "scale": "length at scores × 3, times 3, over the length",
}
PERCENT = ("chance", "largest", "flat")


def gradients(loss: Loss, scores: Tensor, truth: Truth, generator: torch.Generator) -> Tensor:
    """Return the gradients of lists (batch, n) in ORDERS random orders, (ORDERS, batch, n), by item."""
    found = []
    for _ in range(ORDERS):
        order = torch.rand(scores.shape, generator=generator).argsort(-1)
        x = scores.gather(-1, order).requires_grad_()
        value = loss(x, Truth(truth.ranks.gather(-1, order), truth.values.gather(-1, order)))
        (gradient,) = torch.autograd.grad(value * len(scores), x)
        found.append(torch.empty_like(gradient).scatter_(-1, order, gradient))
    return torch.stack(found).double()


def measures(
    loss: Loss, teacher: Tensor, scores: Tensor, truth: Truth, generator: torch.Generator
) -> Measures:
    """Return what is measured of a method; `teacher` has LapSum's gradients, (batch, n)."""
    found = gradients(loss, scores, truth, generator)
    far = gradients(loss, FACTOR * scores, truth, generator)
    mean, squares = found.mean(0), found.square()
    chance = (found - mean).square().sum((0, 2)) / squares.sum((0, 2)) * ORDERS / (ORDERS - 1)
    largest = squares.sort(-1).values[..., -3:].sum(-1) / squares.sum(-1)
    sizes = found.abs()
    lengths = [each.norm(dim=-1).mean(0) for each in (far, found)]
    return Measures(
        chance=chance.mean().item(),
        direction=torch.cosine_similarity(mean, teacher, dim=-1).mean().item(),
        largest=largest.mean().item(),
        flat=(sizes < sizes.amax(-1, keepdim=True) / 1000).double().mean().item(),
        scale=(FACTOR * lengths[0] / lengths[1]).mean().item(),
    )


def measured(data: str, root: Path | None, say: Callable[[str], None]) -> dict[int, dict[str, Measures]]:
    """Train a model, and return the measures by step and method."""
    settings = Settings(PROFILES["standard"], ((data, fingerprint(load(data, root))),), 1)
    run = ranking_run(settings, TEACHER, N, 0, TEMPERATURE)
    training = Training(run, data_of(run, root), torch.device("cpu"))
    assert isinstance(training.task, Ranking)
    generator = torch.Generator().manual_seed(1)
    losses = {name: find(name).start(N, temperature, generator) for name, temperature in METHODS.items()}
    found = {}
    for step in (math.ceil(part * run.steps) for part in PARTS):
        while training.step < step:
            training.advance()
        say(f"step {step}")
        # The lists are drawn beside the training's own.
        state = training.generator.get_state()
        drawn = [training.task.scored(training.model) for _ in range(-(-LISTS // run.batch))]
        training.generator.set_state(state)
        scores = torch.cat([each.detach() for each, _ in drawn])
        ranks, values = (
            torch.cat(each) for each in zip(*((of.ranks, of.values) for _, of in drawn), strict=True)
        )
        truth = Truth(ranks, values)
        teacher = gradients(losses[TEACHER], scores, truth, generator).mean(0)
        found[step] = {
            name: measures(loss, teacher, scores, truth, generator) for name, loss in losses.items()
        }
    return found


def page(found: dict[int, dict[str, Measures]], data: str) -> str:
    """Return the page: a table of each measure, a column for each step."""
    parts = [
        "# Gradients of scores",
        paragraph(
            f"A model learns by LapSum, lists of {N}, the standard profile's run on {data}. At some steps "
            f"each method gets the same scores of {LISTS} lists, in {ORDERS} orders. `python -m "
            "experiments.gradients` makes this page. Machine: " + machine() + "."
        ),
        "![The measures over the steps](gradients.png)",
    ]
    for measure, title in TITLES.items():
        factor, digits = (100, 1) if measure in PERCENT else (1, 2)
        lines = [
            [
                find(name).title,
                *(f"{factor * getattr(of[name], measure):.{digits}f}" for of in found.values()),
            ]
            for name in METHODS
        ]
        parts += [f"## {measure.capitalize()}: {title}", table(["", *(f"step {s}" for s in found)], lines)]
    return "\n\n".join(parts) + "\n"


def picture(found: dict[int, dict[str, Measures]], path: Path) -> None:
    """Draw the first three measures over the steps."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(13, 4.2), layout="constrained")
        for axes, measure in zip(figure.subplots(1, 3), TITLES, strict=False):
            for name, color, marker in zip(METHODS, COLORS, MARKERS, strict=False):
                factor = 100 if measure in PERCENT else 1
                values = [factor * getattr(of[name], measure) for of in found.values()]
                axes.plot(list(found), values, color=color, marker=marker, label=find(name).title)
            axes.set(xlabel="step", title=TITLES[measure], ylim=(0, None))
            axes.title.set_fontsize("medium")
        handles = figure.axes[0].get_legend_handles_labels()[0]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(METHODS), frameon=False)
        figure.savefig(path, dpi=130, metadata={"Software": None})


@click.command()
@click.option("--data", default="fashion", show_default=True, help="Data set of digits.")
@click.option("--root", type=click.Path(path_type=Path), help="Folder of the data, if it needs one.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="results", show_default=True)
def main(data: str, root: Path | None, out: Path) -> None:
    """Measure the gradients that methods give the same scores, and write gradients.md and gradients.png."""
    found = measured(data, root, click.echo)
    out.mkdir(parents=True, exist_ok=True)
    picture(found, out / "gradients.png")
    write_whole(out / "gradients.md", page(found, data))
    click.echo(f"wrote {out / 'gradients.md'}")


if __name__ == "__main__":
    main()
