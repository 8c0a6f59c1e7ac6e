"""Find the best eight of 64 candidates: a mask in closed form against permutation matrices.

    python -m examples.recall

Zhu et al. 2025 (Differentiable Fast Top-K Selection, arXiv 2510.11472) hold that losses of permutation
matrices bring conflicts: the weights of a rank sum to one, so an item that gains a place pushes another out,
which may belong there too. Their mask in closed form, sigmoid((x - θ) / τ) with θ midway between the k-th and
the next score, has no such sum. Here the same small model learns by each loss which candidates are the best
eight. The table has the recall of unseen lists, over five seeds, and how much of the gradient pushes a
candidate the wrong way while the model learns: one of the best down, or another up. The steepness of each
loss is chosen from one grid, by the recall of other lists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

import click
import matplotlib.style
import torch
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn import functional

import nsc
from examples.showing import BLUE, INKS, RED

CANDIDATES, CHOSEN, FEATURES = 64, 8, 12
LISTS, BATCH, TESTED = 1500, 64, 1000
GRID = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
EVERY = 10  # steps between two looks at the gradient


@dataclass(frozen=True)
class Lists:
    """Lists of candidates.

    Attributes:
        features: (lists, CANDIDATES, FEATURES).
        utilities: (lists, CANDIDATES); the largest eight are to be found.
    """

    features: Tensor
    utilities: Tensor

    @property
    def is_best(self) -> Tensor:
        return best(self.utilities)

    def __getitem__(self, chosen: Tensor) -> Lists:
        return Lists(self.features[chosen], self.utilities[chosen])


def best(scores: Tensor) -> Tensor:
    """Return 1 for the largest eight of each list, and 0 for the others."""
    return torch.zeros_like(scores).scatter(-1, scores.topk(CHOSEN).indices, 1)


def draw_lists(count: int, generator: torch.Generator) -> Lists:
    features = torch.randn(count, CANDIDATES, FEATURES, generator=generator)
    first, second, third = features[..., :3].unbind(-1)
    utilities = first + second * third + torch.sin(2 * first) + 0.5 * features[..., 3:].sum(-1) / 3
    return Lists(features, utilities + 0.7 * torch.randn(count, CANDIDATES, generator=generator))


# The loss of scores, given what is to be found and a steepness.
Loss = Callable[[Tensor, Lists, float], Tensor]


def threshold_of(scores: Tensor) -> Tensor:
    """Return what lies midway between the eighth and the ninth largest score."""
    return scores.topk(CHOSEN + 1).values[..., -2:].mean(-1, keepdim=True)


def closed_form(scores: Tensor, lists: Lists, steepness: float) -> Tensor:
    """Return the binary cross entropy of the mask of Zhu et al."""
    mask = steepness * (scores - threshold_of(scores))
    return functional.binary_cross_entropy_with_logits(mask, lists.is_best)


def fixed_threshold(scores: Tensor, lists: Lists, steepness: float) -> Tensor:
    """Return the same with a threshold that has no gradient, so that no candidate moves another."""
    mask = steepness * (scores - threshold_of(scores).detach())
    return functional.binary_cross_entropy_with_logits(mask, lists.is_best)


def soft_sort(scores: Tensor, lists: Lists, steepness: float) -> Tensor:
    """Return the binary cross entropy of the first rows of SoftSort (Prillo and Eisenschlos 2020)."""
    ordered = scores.sort(-1, descending=True).values
    gaps = (ordered.unsqueeze(-1) - scores.unsqueeze(-2)).abs()
    rows = (-steepness * gaps).softmax(-1)
    mask = rows[..., :CHOSEN, :].sum(-2) / rows.sum(-2)
    return functional.binary_cross_entropy(mask.clamp(1e-6, 1 - 1e-6), lists.is_best)


def by_mask(op: nsc.Sorter) -> Loss:
    """Return the cross entropy of the weights that the last eight ranks have, and the others."""
    return lambda scores, lists, steepness: op.cross_entropy(
        scores, relevance=lists.is_best, steepness=steepness
    )


def by_ranks(op: nsc.Sorter) -> Loss:
    """Return the cross entropy of all ranks of the utilities."""
    return lambda scores, lists, steepness: op.cross_entropy(
        scores, lists.utilities.argsort(-1).argsort(-1), steepness=steepness
    )


def softmax(scores: Tensor, lists: Lists, steepness: float) -> Tensor:
    """Return the cross entropy of a softmax with equal shares of the best."""
    return -(lists.is_best * (steepness * scores).log_softmax(-1)).sum(-1).mean() / CHOSEN


@dataclass(frozen=True)
class Training:
    """What a training reached.

    Attributes:
        recall: the share of the best that is found, of unseen lists.
        conflict: the share of the gradient that pushes a candidate the wrong way, over the training.
    """

    recall: float
    conflict: float


def conflict_of(gradient: Tensor, is_best: Tensor) -> float:
    """Return the share of a gradient that lowers the best or raises another."""
    is_wrong = torch.where(is_best > 0, gradient > 0, gradient < 0)
    return ((gradient * is_wrong).abs().sum() / gradient.abs().sum().clamp_min(1e-30)).item()


def train(loss: Loss, steepness: float, steps: int, seed: int, data: tuple[Lists, Lists]) -> Training:
    learned, tested = data
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    conflicts = []
    for step in range(steps):
        batch = learned[torch.randint(len(learned.utilities), (BATCH,))]
        scores = model(batch.features).squeeze(-1)
        scores.retain_grad()
        optimizer.zero_grad()
        loss(scores, batch, steepness).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if step % EVERY == 0:
            conflicts.append(conflict_of(scores.grad, batch.is_best))
    with torch.inference_mode():
        found = best(model(tested.features).squeeze(-1))
    return Training((found * tested.is_best).sum().item() / tested.is_best.sum().item(), mean(conflicts))


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=150, help="Steps of each training.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Trainings of each loss.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/recall.png"),
    help="The picture.",
)
def main(steps: int, seeds: int, out: Path) -> None:
    """Train a model to find the best of a list by several losses, and look at their gradients."""
    out.parent.mkdir(parents=True, exist_ok=True)
    bitonic = nsc.compile("bitonic", CANDIDATES)
    losses: dict[str, Loss] = {
        "bitonic, all ranks": by_ranks(bitonic),
        "bitonic, mask": by_mask(bitonic),
        "SoftSort, mask": soft_sort,
        "closed form": closed_form,
        "closed form, fixed threshold": fixed_threshold,
        "softmax": softmax,
    }
    results: dict[str, list[Training]] = {}
    table = Table("loss", "steepness", f"recall of the best {CHOSEN}", "gradient the wrong way")
    for name, loss in losses.items():
        generator = torch.Generator().manual_seed(seeds)
        data = draw_lists(LISTS, generator), draw_lists(TESTED, generator)
        steepness = max(GRID, key=lambda each, loss=loss: train(loss, each, steps, seeds, data).recall)  # type: ignore[misc]
        trainings = []
        for seed in range(seeds):
            generator = torch.Generator().manual_seed(seed)
            data = draw_lists(LISTS, generator), draw_lists(TESTED, generator)
            trainings.append(train(loss, steepness, steps, seed, data))
        results[name] = trainings
        recalls = [100 * training.recall for training in trainings]
        spread = stdev(recalls) if seeds > 1 else 0
        conflict = 100 * mean(training.conflict for training in trainings)
        table.add_row(name, f"{steepness:g}", f"{mean(recalls):.1f} ± {spread:.1f} %", f"{conflict:.0f} %")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, results)
    console.print(f"picture: {out}")


def draw(out: Path, results: dict[str, list[Training]]) -> None:
    """Write a PNG with the recall of each training beside the conflict of its gradients."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(7, 2.4), layout="constrained")
        axes = figure.subplots(1, 2, sharey=True)
        for place, trainings in enumerate(reversed(results.values())):
            for panel, color, found in (
                (axes[0], BLUE, [100 * training.recall for training in trainings]),
                (axes[1], RED, [100 * training.conflict for training in trainings]),
            ):
                panel.plot(found, [place] * len(found), "o", color=color, alpha=0.7)
        axes[0].set_yticks(range(len(results)), list(reversed(results)))
        axes[0].set_xlabel(f"recall of the best {CHOSEN}, %")
        axes[1].set_xlabel("gradient the wrong way, %")
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
