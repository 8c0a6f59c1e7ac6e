"""Clean a noisy photograph with median filters, and learn how soft one should be.

    python -m examples.denoise

Some pixels are white or black, and all are a little wrong. An exact median removes the first kind of
noise, and hardly averages the second. A relaxed one does some of both: its steepness is learned on one
photograph by gradient descent, and tried on another. The picture and the table show the peak
signal-to-noise ratio, in dB.
"""

from __future__ import annotations

from pathlib import Path

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_sample_image
from torch import Tensor

from examples.showing import INKS
from nsc.nn import MedianFilter2d

# Of the pixels, how many are white or black; and the standard deviation of the others' noise. Pixels are in
# [0, 1].
IMPULSES, SIGMA = 0.1, 0.05
# The photographs that scikit-learn brings: by danielbuechele and vultilion on Flickr, CC BY 2.0.
LEARNED, TRIED = "china.jpg", "flower.jpg"
# What the picture shows of the second one.
ROWS, COLUMNS = slice(110, 310), slice(230, 480)


def photograph(name: str) -> Tensor:
    """Return a photograph in shades of grey, (rows, columns) in [0, 1]."""
    return torch.tensor(load_sample_image(name)).float().mean(dim=-1) / 255


def noisy(x: Tensor, seed: int) -> Tensor:
    """Return an image with noise of both kinds."""
    generator = torch.Generator().manual_seed(seed)
    grey = x + SIGMA * torch.randn(x.shape, generator=generator)
    chance = torch.rand(x.shape, generator=generator)
    return torch.where(chance < IMPULSES / 2, 0.0, torch.where(chance < IMPULSES, 1.0, grey)).clamp(0, 1)


def ratio(x: Tensor, clean: Tensor) -> float:
    """Return the peak signal-to-noise ratio, in dB."""
    return -10 * (x - clean).square().mean().log10().item()


def learn(layer: MedianFilter2d, x: Tensor, clean: Tensor, steps: int) -> None:
    """Learn a layer's steepness on pieces of an image."""
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        row, column = (int(torch.randint(length - 96, (), generator=generator)) for length in x.shape)
        piece = slice(row, row + 96), slice(column, column + 96)
        optimizer.zero_grad()
        (layer(x[piece]) - clean[piece]).square().mean().backward()
        optimizer.step()


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(0), default=150, help="Steps of learning.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Of the noise.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/denoise.png"),
    help="The picture.",
)
def main(steps: int, seed: int, out: Path) -> None:
    """Clean a photograph by exact and relaxed median filters."""
    out.parent.mkdir(parents=True, exist_ok=True)
    clean = photograph(TRIED)
    x = noisy(clean, seed)
    relaxed = MedianFilter2d(3, relaxed=True, learnable=True)
    learned = photograph(LEARNED)
    learn(relaxed, noisy(learned, seed + 1), learned, steps)
    steepness = relaxed.steepness
    assert steepness is not None  # it is relaxed
    with torch.inference_mode():
        images = {
            "noisy": x,
            "median 3 × 3": MedianFilter2d(3)(x),
            "median 5 × 5": MedianFilter2d(5)(x),
            f"relaxed 3 × 3, steepness {steepness.item():.1f}": relaxed(x),
        }
    table = Table("image", "signal-to-noise ratio, dB")
    for name, image in images.items():
        table.add_row(name, f"{ratio(image, clean):.1f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, images, clean)
    console.print(f"picture: {out}")


def draw(out: Path, images: dict[str, Tensor], clean: Tensor) -> None:
    """Write a PNG of a part of each image."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(11, 2.4), layout="constrained")
        for axes, (name, image) in zip(figure.subplots(1, len(images)), images.items(), strict=True):
            axes.imshow(image[ROWS, COLUMNS], cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set_title(f"{name}: {ratio(image, clean):.1f} dB", fontsize=9)
            axes.axis("off")
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
