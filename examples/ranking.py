"""Learn to rank documents of graded relevance, in lists of different lengths.

    python -m examples.ranking

Queries have 5 to 60 documents. Their grades, 0 to 3, follow a function of features that is not linear, with
noise. A small network scores documents. It is trained by three losses on the same lists: nsc's cross entropy
with relevance, ListNet (Cao et al. 2007), and a LambdaRank-style loss (Burges et al. 2006), of pairs that are
weighted by what their exchange changes in NDCG. The table has the NDCG of unseen lists, cut at 10, over five
seeds.
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

import nsc
from examples.showing import BLUE, INKS, RED

FEATURES, LEAST, MOST, CUT = 12, 5, 60, 10
QUERIES, BATCH, TESTED = 2000, 64, 1000
GREEN = "#009e73"


@dataclass(frozen=True)
class Lists:
    """Queries with their documents, padded.

    Attributes:
        features: (queries, MOST, FEATURES).
        grades: (queries, MOST) in 0 … 3.
        lengths: (queries,).
    """

    features: Tensor
    grades: Tensor
    lengths: Tensor

    @property
    def is_document(self) -> Tensor:
        return torch.arange(MOST) < self.lengths.unsqueeze(-1)

    def __getitem__(self, chosen: Tensor) -> Lists:
        return Lists(self.features[chosen], self.grades[chosen], self.lengths[chosen])


def draw_lists(queries: int, generator: torch.Generator) -> Lists:
    """Draw queries: few documents are relevant, and fewer highly."""
    features = torch.randn(queries, MOST, FEATURES, generator=generator)
    first, second, third = features[..., :3].unbind(-1)
    utility = first + second * third + torch.sin(2 * first) + 0.5 * features[..., 3:].sum(-1) / 3
    utility = utility + 0.7 * torch.randn(queries, MOST, generator=generator)
    grades = (utility > 1).long() + (utility > 2.2).long() + (utility > 3.2).long()
    return Lists(features, grades, torch.randint(LEAST, MOST + 1, (queries,), generator=generator))


def gains_of(lists: Lists) -> Tensor:
    """Return 2^grade - 1, and 0 for padding."""
    return torch.where(lists.is_document, 2.0**lists.grades - 1, 0)


def ndcg(scores: Tensor, lists: Lists) -> float:
    """Return the mean NDCG, cut at CUT, over the lists that have a relevant document."""
    gains = gains_of(lists)
    discounts = 1 / torch.arange(2, CUT + 2).log2()
    order = torch.where(lists.is_document, scores, -torch.inf).argsort(-1, descending=True)[:, :CUT]
    ideal = (gains.sort(-1, descending=True).values[:, :CUT] * discounts).sum(-1)
    found = (gains.gather(-1, order) * discounts).sum(-1)
    return (found / ideal)[ideal > 0].mean().item()


Loss = Callable[[Tensor, Lists], Tensor]


def by_network(op: nsc.Sorter) -> Loss:
    """Return nsc's loss: documents of one grade share their ranks."""

    def loss(scores: Tensor, lists: Lists) -> Tensor:
        return op.cross_entropy(scores, relevance=lists.grades, steepness=4.0, lengths=lists.lengths)

    return loss


def list_net(scores: Tensor, lists: Lists) -> Tensor:
    """Return ListNet's loss: the cross entropy of the probabilities to be first."""
    logs = torch.where(lists.is_document, scores, -1e9).log_softmax(-1)
    wanted = torch.where(lists.is_document, lists.grades.float(), -1e9).softmax(-1)
    return -(wanted * logs).sum(-1).mean()


def lambda_rank(scores: Tensor, lists: Lists) -> Tensor:
    """Return the logistic loss of pairs, weighted by what their exchange changes in NDCG."""
    gains = gains_of(lists)
    order = torch.where(lists.is_document, scores, -torch.inf).argsort(-1, descending=True)
    discounts = 1 / (order.argsort(-1) + 2.0).log2()
    ideal = (gains.sort(-1, descending=True).values / torch.arange(2, MOST + 2).log2()).sum(-1)
    change = (gains.unsqueeze(-1) - gains.unsqueeze(-2)) * (discounts.unsqueeze(-1) - discounts.unsqueeze(-2))
    is_pair = (lists.grades.unsqueeze(-1) > lists.grades.unsqueeze(-2)) & lists.is_document.unsqueeze(-2)
    is_pair = is_pair & lists.is_document.unsqueeze(-1)
    weights = torch.where(is_pair, change.abs() / ideal.clamp_min(1e-9).view(-1, 1, 1), 0)
    gaps = scores.unsqueeze(-1) - scores.unsqueeze(-2)
    return (weights * torch.nn.functional.softplus(-gaps)).sum((-1, -2)).mean()


def train(loss: Loss, lists: Lists, steps: int, seed: int) -> torch.nn.Module:
    """Return a network that scores documents, trained by a loss."""
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(FEATURES, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        batch = lists[torch.randint(len(lists.lengths), (BATCH,))]
        optimizer.zero_grad()
        loss(model(batch.features).squeeze(-1), batch).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return model


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--steps", type=click.IntRange(1), default=200, help="Steps of each training.")
@click.option("--seeds", type=click.IntRange(1), default=5, help="Trainings of each loss.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path("examples/output/ranking.png"),
    help="The picture.",
)
def main(steps: int, seeds: int, out: Path) -> None:
    """Train a ranker by three losses, and compare their NDCG on unseen lists."""
    out.parent.mkdir(parents=True, exist_ok=True)
    losses = {
        "nsc, graded cross entropy": by_network(nsc.compile("bitonic", MOST)),
        "ListNet": list_net,
        "LambdaRank-style pairs": lambda_rank,
    }
    results: dict[str, list[float]] = {name: [] for name in losses}
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        learned, tested = draw_lists(QUERIES, generator), draw_lists(TESTED, generator)
        for name, loss in losses.items():
            model = train(loss, learned, steps, seed)
            with torch.inference_mode():
                results[name].append(ndcg(model(tested.features).squeeze(-1), tested))
    table = Table("loss", f"NDCG@{CUT}", "standard deviation")
    for name, found in results.items():
        table.add_row(name, f"{mean(found):.4f}", f"{stdev(found) if seeds > 1 else 0:.4f}")
    console = Console(highlight=False, soft_wrap=True)
    console.print(table)
    draw(out, results)
    console.print(f"picture: {out}")


def draw(out: Path, results: dict[str, list[float]]) -> None:
    """Write a PNG with a point for each training."""
    with matplotlib.style.context(INKS):
        figure = Figure(figsize=(7, 1.8), layout="constrained")
        axes = figure.subplots()
        for place, (found, color) in enumerate(zip(results.values(), (BLUE, RED, GREEN), strict=True)):
            axes.plot(found, [place] * len(found), "o", color=color, alpha=0.7)
            axes.plot([mean(found)], [place], "|", color=color, markersize=20)
        axes.set_yticks(range(len(results)), list(results))
        axes.set_ylim(-0.6, len(results) - 0.4)
        axes.set_xlabel(f"NDCG@{CUT} of unseen lists; a point is a seed, a bar the mean")
        figure.savefig(out, dpi=100)


if __name__ == "__main__":
    main()
