"""How the examples show what they found: progress, a table, and pictures."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from matplotlib.offsetbox import AnnotationBbox, OffsetImage
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor

# Plots without a ground of their own, in an ink that is read on white and on black: at least 4 : 1 on either.
INKS = {
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), "none"),
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.edgecolor", "axes.titlecolor"), "747b85"),
    **dict.fromkeys(("xtick.color", "ytick.color"), "747b85"),
    "legend.frameon": False,
}
BLUE, RED = "#0072b2", "#d9363e"
SMOOTHED = 20
SHOWN = 10
TILE = 82  # points, the width of an image
BOTTOM = 0.37  # of an image of four digits, between its score at 0 and its centre at 0.5


@dataclass(frozen=True)
class Reading:
    """What a model makes of one sample of n numbers.

    Attributes:
        images: (n, 1, h, w), pixels in [0, 1].
        numbers: (n,), the numbers on them.
        scores: (n,).
        P: (n, n), the relaxed permutation matrix of the scores.
    """

    images: Tensor
    numbers: Tensor
    scores: Tensor
    P: Tensor


def show_progress(losses: Iterator[float], steps: int, console: Console) -> list[float]:
    """Run the training behind a progress bar with the mean loss of the last 20 steps."""
    history: list[float] = []
    columns = ("training", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("loss {task.fields[loss]:.3f}"), console=console) as progress:
        task = progress.add_task("", total=steps, loss=float("nan"))
        for loss in losses:
            history.append(loss)
            last = history[-SMOOTHED:]
            progress.update(task, advance=1, loss=sum(last) / len(last))
    return history


def table(before: dict[str, float], after: dict[str, float], n: int) -> Table:
    """Return the metrics of the untrained and the trained model side by side."""
    result = Table("Held-out digits", "untrained", "trained")
    for key, title in (
        ("em", f"EM   all {n} ranks right"),
        ("ew", f"EW   share of right ranks among {n}"),
        ("em5", "EM5  all ranks right among 5"),
    ):
        result.add_row(title, f"{before[key]:.2%}", f"{after[key]:.2%}")
    return result


def draw(file: Path, title: str, losses: list[float], before: Reading, after: Reading) -> None:
    """Write a PNG: the loss of each step, P before and after, and images in the order of their scores."""
    with matplotlib.style.context({**INKS, "font.size": 10, "axes.titlesize": 11}):
        figure = _drawn(title, losses, before, after)
        figure.savefig(file, format="png", dpi=130)


def _drawn(title: str, losses: list[float], before: Reading, after: Reading) -> Figure:
    figure = Figure(figsize=(13, 6.6), layout="constrained")
    figure.suptitle(title, fontsize=13)
    upper, lower = figure.subfigures(2, 1, squeeze=False, height_ratios=[4.3, 2]).flat
    curve, left, right = upper.subplots(1, 3, width_ratios=[1.15, 1, 1])
    draw_losses(curve, losses, len(before.P))
    # The square root shows weights of a few per mille beside the largest.
    scale = PowerNorm(0.5, vmin=0.0, vmax=float(after.P.max(0).values.quantile(0.9)))
    for axes, reading, when in ((left, before, "untrained"), (right, after, "trained")):
        # With the columns in the true order P is a diagonal, if all is learned.
        P = reading.P[:, reading.numbers.argsort(stable=True)]
        image = axes.imshow(P.numpy(), cmap="magma", norm=scale, interpolation="antialiased")
        axes.set(title=f"Relaxed permutation matrix P, {when}", xlabel="true rank of the number")
        axes.locator_params(integer=True, min_n_ticks=1)
    left.set_ylabel("rank in the network's output")
    upper.colorbar(image, ax=[left, right], label="weight", extend="max", shrink=0.9)
    draw_scored(lower.subplots(), after)
    return figure


def draw_losses(axes: Axes, losses: list[float], n: int) -> None:
    """Draw the loss of each step, its moving mean, and the loss of a P that knows nothing."""
    steps = np.arange(1, len(losses) + 1)
    window = min(SMOOTHED, len(losses))
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    axes.plot(steps, losses, color=BLUE, alpha=0.3, linewidth=1, label="each step")
    centres = steps[: len(smooth)] + (window - 1) / 2
    axes.plot(centres, smooth, color=BLUE, label=f"mean of {window} steps")
    axes.axhline(math.log(n), color="gray", linestyle=":", label="uniform P: ln n")
    axes.set(title="Loss", xlabel="step", ylabel="cross entropy of P, nats")
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)


def draw_scored(axes: Axes, reading: Reading) -> None:
    """Draw the first images in the order of their scores, each tied to its score on an axis.

    A number is red if another one of these belongs at its place.
    """
    order = reading.scores[:SHOWN].argsort(stable=True)
    scores, numbers = reading.scores[order].numpy(), reading.numbers[order].tolist()
    places = np.linspace(scores[0], scores[-1], len(scores))
    span = (scores[-1] - scores[0]) or 1.0
    decimals = max(0, 2 - math.floor(math.log10(span)))
    for image, score, number, expected, place in zip(
        reading.images[order, 0], scores, numbers, sorted(numbers), places, strict=True
    ):
        colour = matplotlib.rcParams["text.color"] if number == expected else RED
        pixels = OffsetImage(
            image.numpy(), zoom=TILE / image.shape[1], cmap="gray_r", interpolation="nearest"
        )
        axes.plot([score, place], [0, BOTTOM], color="gray", linewidth=0.8)
        axes.plot(score, 0, "o", color=BLUE, markersize=5, clip_on=False, zorder=3)
        axes.add_artist(AnnotationBbox(pixels, (place, 0.5), pad=0.2, bboxprops={"edgecolor": colour}))
        axes.text(place, 0.9, f"{number:04}", fontweight="bold", ha="center", color=colour)
        axes.text(place, 0.73, f"{score:.{decimals}f}", fontsize=9, ha="center", color=colour)
    axes.set(
        xlim=(scores[0] - 0.05 * span, scores[-1] + 0.05 * span), ylim=(0, 1.1), yticks=[], xlabel="score"
    )
    axes.set_title(f"{len(scores)} unseen images in the order of their learned scores; red: out of place")
    axes.spines[["top", "left", "right"]].set_visible(False)
