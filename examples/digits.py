"""Learn to read four-digit numbers from nothing but their order.

    nsc compile --net bitonic --n 1024
    python examples/digits.py

One small CNN scores every image of a sample of n numbers. The only supervision is the rank of each
number in its sample, through the cross entropy of a compiled sorting network. Images are real
handwritten digits, scikit-learn's `load_digits` or MNIST. No test digit is used in training.

Source: Petersen et al., ICML 2021, section 5.1, at the size of its largest experiment.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import matplotlib
import numpy as np
import numpy.typing as npt
import torch
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from torch import Tensor, nn

import nsc
from nsc.compiler.families import FAMILIES
from nsc.compiler.relaxations import SIGMOIDS
from nsc.errors import NscError
from nsc.operators.sorter import Sorter

DIGITS = 4
LEARNING_RATE = 2e-3  # at the peak of its cycle
ART_LAMBDA = 0.25
# Standard deviation of the noise on training images. Without it the CNN learns the 1,438 training
# digits by heart.
NOISE = 0.1
# The exact comparator has no gradient.
RELAXATIONS = [name for name in SIGMOIDS if name != "hard"]
IDX_DTYPE = 0x08  # unsigned bytes, the only type in MNIST
BAD_INPUT = 2


class DataError(click.ClickException):
    """Digits that cannot be read; shown as one line."""

    exit_code = BAD_INPUT


@dataclass(frozen=True)
class Digits:
    """Images of single digits, (m, h, w) in [0, 1], and the digit of each, (m,) integers."""

    images: Tensor
    labels: Tensor

    def numbers(self, count: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
        """Return images of random four-digit numbers, (count, 1, h, 4w), and the numbers, (count,).

        Every digit is drawn independently, uniformly and with replacement.
        """
        picks = torch.from_numpy(rng.integers(len(self.labels), size=(count, DIGITS)))
        height, width = self.images.shape[1:]
        images = self.images[picks].transpose(1, 2).reshape(count, 1, height, DIGITS * width)
        return images, self.labels[picks] @ torch.tensor([1000, 100, 10, 1])


def load_sklearn(rng: np.random.Generator) -> tuple[Digits, Digits]:
    """Return scikit-learn's 1,797 digits, 8×8, split at random: 80 % to train, 20 % to test."""
    from sklearn.datasets import load_digits

    bunch = load_digits()
    images = torch.from_numpy(bunch.images / 16).float()
    labels = torch.from_numpy(bunch.target).long()
    shuffled = torch.from_numpy(rng.permutation(len(labels)))
    test, train = shuffled[: len(labels) // 5], shuffled[len(labels) // 5 :]
    return Digits(images[train], labels[train]), Digits(images[test], labels[test])


def load_mnist(root: Path) -> tuple[Digits, Digits]:
    """Return MNIST's training and test digits, 28×28, from the IDX files in a folder.

    The files have their standard names, plain or .gz, in root or in MNIST/raw under it, as torchvision
    puts them.
    """
    return _mnist_part(root, "train"), _mnist_part(root, "t10k")


def _mnist_part(root: Path, part: str) -> Digits:
    file = _idx_file(root, f"{part}-images-idx3-ubyte")
    images = read_idx(file, 3)
    labels = read_idx(_idx_file(root, f"{part}-labels-idx1-ubyte"), 1)
    if images.shape[1:] != (28, 28):
        raise DataError(f"{file}: images of 28×28 expected, found {images.shape[1]}×{images.shape[2]}")
    if len(images) != len(labels) or not len(images):
        raise DataError(f"{file}: {len(images)} images and {len(labels)} labels; need as many, at least one")
    if labels.max() > 9:
        raise DataError(f"{file}: label {labels.max()} in the labels' file is no digit")
    return Digits(torch.from_numpy(images).float() / 255, torch.from_numpy(labels).long())


def _idx_file(root: Path, name: str) -> Path:
    for folder in (root, root / "MNIST" / "raw"):
        for file in (folder / name, folder / f"{name}.gz"):
            if file.is_file():
                return file
    raise DataError(f"{root}: no {name} and no {name}.gz there, nor in MNIST/raw under it")


def read_idx(file: Path, axes: int) -> npt.NDArray[np.uint8]:
    """Return the array in an IDX file of unsigned bytes, plain or gzip by its name.

    Raises:
        DataError: the file cannot be read, or its magic number or length does not fit `axes` axes.
    """
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    start = 4 * (1 + axes)
    magic, *shape = struct.unpack(f">{1 + axes}I", data[:start].ljust(start, b"\0"))
    if magic != IDX_DTYPE << 8 | axes:
        raise DataError(
            f"{file}: no IDX file of {axes} axes of bytes: it begins with {data[:4].hex() or 'nothing'}"
        )
    if len(data) - start != math.prod(shape):
        length = max(0, len(data) - start)
        raise DataError(f"{file}: the header says {math.prod(shape)} bytes of data, found {length}")
    array: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()
    return array


class Scorer(nn.Sequential):
    """The paper's CNN, from images of four digits, (m, 1, h, 4w), to scores, (m,)."""

    def __init__(self, height: int, width: int) -> None:
        # Pooling before ReLU gives the same values on a quarter of the elements.
        super().__init__(
            *(nn.Conv2d(1, 32, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(32, 64, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(64 * (height // 4) * (DIGITS * width // 4), 64), nn.ReLU()),
            *(nn.Linear(64, 1), nn.Flatten(0)),
        )
        # On CPUs this layout makes a step faster by about a quarter.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Metrics:
    """Shares in [0, 1]: samples with all ranks right (em), right ranks (ew), samples of 5 all right (em5)."""

    em: float
    ew: float
    em5: float


def right_ranks(scores: Tensor, numbers: Tensor) -> Tensor:
    """Return whether the scores put the right number at each rank, (…, n) booleans.

    Equal numbers may come in any order.
    """
    return numbers.gather(-1, scores.argsort(dim=-1)) == numbers.sort(dim=-1).values


def measure(scores: Tensor, numbers: Tensor, n: int) -> Metrics:
    """Return the metrics of m scores and their numbers, (m,), cut into samples of n and of 5."""
    samples = len(scores) // n
    right = right_ranks(*(x[: samples * n].reshape(samples, n) for x in (scores, numbers)))
    fives = len(scores) // 5
    right5 = right_ranks(*(x[: fives * 5].reshape(fives, 5) for x in (scores, numbers)))
    em, ew, em5 = (share.double().mean().item() for share in (right.all(-1), right, right5.all(-1)))
    return Metrics(em, ew, em5)


def evaluate(model: nn.Module, digits: Digits, n: int, count: int, seed: int) -> Metrics:
    """Return the metrics on max(count, n) numbers of held-out digits; the seed decides which."""
    rng = np.random.default_rng([seed, 2])
    total = max(count, n)
    scores, numbers = torch.empty(total), torch.empty(total, dtype=torch.long)
    with torch.inference_mode():
        for start in range(0, total, 1000):
            chunk = slice(start, min(start + 1000, total))
            images, numbers[chunk] = digits.numbers(chunk.stop - start, rng)
            scores[chunk] = model(images)
    return measure(scores, numbers, n)


def permutation(model: nn.Module, op: Sorter, digits: Digits, steepness: float, seed: int) -> Tensor:
    """Return P of one held-out sample, (n, n), columns in the true order: a diagonal, if all is learned."""
    images, numbers = digits.numbers(op.n, np.random.default_rng([seed, 3]))
    with torch.inference_mode():
        _, P = op.sort_with_permutation(model(images), steepness)
    return P[:, numbers.argsort(stable=True)]


def train(
    model: nn.Module, op: Sorter, digits: Digits, steps: int, steepness: float, seed: int
) -> Iterator[float]:
    """Train on one sample of op.n numbers a step, and yield the loss of each step."""
    rng = np.random.default_rng([seed, 1])
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    # A rate that starts at its peak can leave every ReLU dead: all scores equal, no gradient.
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        images, numbers = digits.numbers(op.n, rng)
        images += NOISE * torch.randn_like(images)
        ranks = numbers.argsort(stable=True).argsort()
        loss = op.cross_entropy(model(images), ranks, steepness)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        yield loss.item()


def show_progress(losses: Iterator[float], steps: int, console: Console) -> list[float]:
    """Run the training behind a progress bar with the mean loss of the last 20 steps."""
    history: list[float] = []
    columns = ("training", BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, TextColumn("loss {task.fields[loss]}"), console=console) as progress:
        task = progress.add_task("", total=steps, loss="–")
        for loss in losses:
            history.append(loss)
            progress.update(task, advance=1, loss=f"{np.mean(history[-20:]):.3f}")
    return history


def find_operator(net: str, n: int | None, relaxation: str) -> tuple[Sorter, str]:
    """Return the op and its origin: generated/NET_N if its options fit, else a new compilation."""
    folder = Path("generated") / f"{net}_{n}"
    if net in FAMILIES and folder.is_dir():
        op = nsc.load(folder)
        kernel = op.kernel
        options = (kernel.n, kernel.sigmoid, kernel.art_lambda, kernel.error_free)
        if isinstance(op, Sorter) and options == (n, relaxation, ART_LAMBDA, False):
            return op, f"loaded from {folder}, as nsc compile wrote it"
    op = nsc.compile(net, n, relaxation=relaxation, art_lambda=ART_LAMBDA)
    return op, f"compiled here, {relaxation} relaxation"


def draw(file: Path, title: str, losses: list[float], before: Tensor, after: Tensor) -> None:
    """Write the picture: the loss curve, and P of one held-out sample before and after."""
    matplotlib.rcParams.update({"font.size": 10, "axes.titlesize": 11})
    figure = Figure(figsize=(13, 4.4), layout="constrained")
    curve, left, right = figure.subplots(1, 3, width_ratios=[1.15, 1, 1])
    figure.suptitle(title, fontsize=13)
    curve.plot(range(1, len(losses) + 1), losses, color="tab:blue", alpha=0.3, linewidth=1, label="each step")
    window = min(20, len(losses))
    smooth = np.convolve(losses, np.ones(window) / window, "valid")
    curve.plot(range(window, len(losses) + 1), smooth, color="tab:blue", label=f"mean of {window} steps")
    curve.axhline(math.log(len(before)), color="gray", linestyle=":", label="uniform P: ln n")
    curve.set(title="Loss", xlabel="step", ylabel="cross entropy of P, nats")
    curve.legend(frameon=False)
    curve.spines[["top", "right"]].set_visible(False)
    # The square root shows weights of a few per mille beside the largest.
    scale = PowerNorm(0.5, vmin=0.0, vmax=float(torch.quantile(after.max(0).values, 0.9)))
    for axes, P, when in ((left, before, "untrained"), (right, after, "trained")):
        image = axes.imshow(P.numpy(), cmap="magma", norm=scale, interpolation="antialiased")
        axes.set(title=f"Relaxed permutation matrix P, {when}", xlabel="true rank of the number")
        axes.locator_params(integer=True, min_n_ticks=1)
    left.set_ylabel("rank in the network's output")
    figure.colorbar(image, ax=[left, right], label="weight", extend="max", shrink=0.9)
    figure.savefig(file, format="png", dpi=130)


def table(before: Metrics, after: Metrics, n: int) -> Table:
    """Return the metrics of the untrained and the trained model side by side."""
    result = Table(title="Held-out digits", title_justify="left")
    result.add_column("")
    result.add_column("untrained", justify="right")
    result.add_column("trained", justify="right")
    rows = {
        f"EM   all {n} ranks right": (before.em, after.em),
        f"EW   share of right ranks among {n}": (before.ew, after.ew),
        "EM5  all ranks right among 5": (before.em5, after.em5),
    }
    for name, shares in rows.items():
        result.add_row(name, *(f"{share:.2%}" for share in shares))
    return result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--net", default="bitonic", show_default=True, metavar="FAMILY|FILE", help="Sorting network.")
@click.option("--n", type=click.IntRange(2), help="Numbers per sample.  [default: 1024, or the file's]")
@click.option("--relaxation", type=click.Choice(RELAXATIONS), default="logistic", show_default=True)
@click.option(
    "--steepness",
    type=click.FloatRange(0, min_open=True),
    help="Sharpness of the comparators.  [default: 2 × depth]",
)
@click.option("--steps", type=click.IntRange(1), default=400, show_default=True, help="Training steps.")
@click.option("--test-numbers", type=click.IntRange(5), default=50_000, show_default=True, help="To test on.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same run.")
@click.option("--data", type=click.Choice(["digits", "mnist"]), default="digits", show_default=True)
@click.option("--root", type=click.Path(path_type=Path), help="Folder of MNIST's IDX files.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/digits.png"),
    show_default=True,
    help="The picture.",
)
def main(
    net: str,
    n: int | None,
    relaxation: str,
    steepness: float | None,
    steps: int,
    test_numbers: int,
    seed: int,
    data: str,
    root: Path | None,
    out: Path,
) -> None:
    """Train a CNN to score handwritten four-digit numbers by their order alone."""
    if (data == "mnist") != (root is not None):
        raise click.UsageError("--data mnist and --root DIR go together")
    if n is None and net in FAMILIES:
        n = 1024
    console = Console(highlight=False, soft_wrap=True)
    torch.manual_seed(seed)
    try:
        # First: a folder that cannot be created should fail before the training, not after it.
        out.parent.mkdir(parents=True, exist_ok=True)
        learned, held_out = load_sklearn(np.random.default_rng(seed)) if root is None else load_mnist(root)
        op, origin = find_operator(net, n, relaxation)
        steepness = op.default_steepness if steepness is None else steepness
        console.print(f"op: {op}, {origin}")
        console.print(f"{len(learned.labels):,} digits to train on, {len(held_out.labels):,} to test on")
        model = Scorer(*learned.images.shape[1:])
        before = permutation(model, op, held_out, steepness, seed)
        untrained = evaluate(model, held_out, op.n, test_numbers, seed)
        losses = show_progress(train(model, op, learned, steps, steepness, seed), steps, console)
        trained = evaluate(model, held_out, op.n, test_numbers, seed)
        after = permutation(model, op, held_out, steepness, seed)
        console.print(table(untrained, trained, op.n))
        title = f"{op.name}, {relaxation}: EM5 on held-out digits {untrained.em5:.1%} → {trained.em5:.1%}"
        draw(out, title, losses, before, after)
    except (NscError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        console.print("stopped before the end; no picture written")
        raise click.exceptions.Exit(130) from None
    console.print(f"picture: {out}")


if __name__ == "__main__":
    main()
