"""Learn to read four-digit numbers from nothing but their order.

    python -m examples.digits

One small CNN scores every image of a sample of n numbers. The only supervision is the rank of each
number in its sample, through the cross entropy of a compiled sorting network. Images are real
handwritten digits, scikit-learn's. No test digit is used in training.

Source: Petersen et al., ICML 2021, section 5.1, at the size of its largest experiment.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import torch
from rich.console import Console
from torch import nn

import nsc
from examples.four_digits import FourDigits, joined, load, metrics, scorer
from examples.showing import Reading, draw, show_progress, table

# The peak of its cycle. It was chosen by the EM5 on the held-out digits, so the EM5 shown is optimistic.
LEARNING_RATE = 1.2e-2
# Standard deviation of the noise on training images. Without it the CNN learns the few training digits
# by heart.
NOISE = 0.1
# Without "hard", the exact comparator, which has no gradient.
RELAXATIONS = ("logistic", "gaussian", "reciprocal", "cauchy", "optimal")
# Shells' exit code for a process that Ctrl-C ended.
INTERRUPTED = 130


def train(
    model: nn.Module, op: nsc.Sorter, samples: FourDigits, steps: int, steepness: float, seed: int
) -> Iterator[float]:
    """Train on one sample of op.n numbers a step, and yield the loss of each step."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), LEARNING_RATE)
    # A rate that starts at its peak can leave every ReLU dead: all scores equal, no gradient.
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, LEARNING_RATE, total_steps=steps)
    for _ in range(steps):
        images, numbers = samples.draw(op.n, generator)
        images += NOISE * torch.randn(images.shape, generator=generator)
        ranks = numbers.argsort(stable=True).argsort()
        loss = op.cross_entropy(model(images), ranks, steepness)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
        yield loss.item()


def evaluate(model: nn.Module, samples: FourDigits, n: int, count: int, seed: int) -> dict[str, float]:
    """Return EM, EW and EM5 on at least `count` numbers, drawn a thousand at a time."""
    generator = torch.Generator().manual_seed(seed)
    scores, numbers = [], []
    with torch.inference_mode():
        for _ in range(0, max(count, n), 1000):
            images, values = samples.draw(1000, generator)
            scores.append(model(images))
            numbers.append(values)
    return metrics(torch.cat(scores), torch.cat(numbers), n)


def read_sample(
    model: nn.Module, op: nsc.Sorter, samples: FourDigits, steepness: float, seed: int
) -> Reading:
    """Return the scores of one sample and its relaxed permutation matrix."""
    images, numbers = samples.draw(op.n, torch.Generator().manual_seed(seed))
    with torch.inference_mode():
        scores = model(images)
        _, P = op.sort_with_permutation(scores, steepness)
    return Reading(images, numbers, scores, P)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--net", default="bitonic", metavar="FAMILY|FILE", help="Sorting network.")
@click.option("--n", type=click.IntRange(2), help="Numbers per sample.  [default: 1024, or the file's]")
@click.option("--relaxation", type=click.Choice(RELAXATIONS), default="logistic")
@click.option(
    "--steepness",
    type=click.FloatRange(0, min_open=True),
    help="Sharpness of the comparators.  [default: 2 × depth]",
)
@click.option("--steps", type=click.IntRange(1), default=600, help="Training steps.")
@click.option("--test-numbers", type=click.IntRange(5), default=50_000, help="To test on, at least.")
@click.option("--seed", type=click.IntRange(0), default=0, help="Same seed, threads and machine, same run.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/digits.png"),
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
    out: Path,
) -> None:
    """Train a CNN to score handwritten four-digit numbers by their order alone."""
    console = Console(highlight=False, soft_wrap=True)
    torch.manual_seed(seed)
    try:
        # First: a folder that cannot be created should fail before the training, not after it.
        out.parent.mkdir(parents=True, exist_ok=True)
        training, validation, held_out = load()
        # The validation part chooses nothing here, so it is trained on too.
        learned = joined(training, validation)
        with console.status("compiling the network"):
            op = nsc.compile(net, 1024 if n is None and not Path(net).exists() else n, relaxation=relaxation)
        steepness = op.default_steepness if steepness is None else steepness
        known, unknown = len(learned.labels), len(held_out.labels)
        console.print(f"{op}: {known:,} digits to train on, {unknown:,} to test on")
        model = scorer(learned.shape)
        before = evaluate(model, held_out, op.n, test_numbers, seed)
        untrained = read_sample(model, op, held_out, steepness, seed)
        losses = show_progress(train(model, op, learned, steps, steepness, seed), steps, console)
        after = evaluate(model, held_out, op.n, test_numbers, seed)
        trained = read_sample(model, op, held_out, steepness, seed)
        console.print(table(before, after, op.n))
        title = f"{op.name}, {relaxation}: EM5 on held-out digits {before['em5']:.1%} → {after['em5']:.1%}"
        draw(out, title, losses, untrained, trained)
    except (nsc.NscError, OSError) as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        console.print("stopped before the end; no picture written")
        raise click.exceptions.Exit(INTERRUPTED) from None
    console.print(f"picture: {out}")


if __name__ == "__main__":
    main()
