"""`python -m experiments.candidates`: what was tried to learn an order, one change to the recipe each.

Every candidate gets one run with the same seed, and is measured on the validation part, as the test part must
not say which to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import click
import torch
from torch import Tensor

import nsc
from benchmarks.machine import machine
from experiments.data import Data, fingerprint, load
from experiments.methods import Loss, Truth, find
from experiments.profiles import PROFILES
from experiments.ranking import Ranking
from experiments.run import Run
from experiments.tables.mnist import RECIPE
from experiments.tables.plan import Settings, batch_and_steps, ranking_run
from experiments.training import Training, data_of
from experiments.writing.markdown import paragraph, table
from nsc.atomic import write_whole
from nsc.nn.functional import spearman_loss
from nsc.runtime.devices.threads import cores

PROFILE = PROFILES["standard"]
SIZES = (15, 32)
ITEMS = 30_000
# No table has this seed.
SEED = 100
ORDERS, STEEPNESS = 16, 2.0
# The factor from the first to the last steepness, over a run or over the layers.
GROWTH = 4.0

Start = Callable[[int, torch.Generator], Loss]
"""Takes n and a generator; returns the loss of a run."""
Network = Callable[[nsc.Sorter, Tensor, Tensor, float], Tensor]
"""The loss of an operator, scores (batch, n), ranks (batch, n) and a steepness: the mean over the batch."""
Orders = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Takes scores, ranks and a generator; returns orders of the items, (orders · batch, n)."""


def method(name: str, temperature: float) -> Start:
    """Return a method of the tables."""
    return lambda n, generator: find(name).start(n, temperature, generator)


def at_random(scores: Tensor, ranks: Tensor, generator: torch.Generator) -> Tensor:
    """Return ORDERS new random orders."""
    return torch.rand(ORDERS * len(scores), scores.shape[1], generator=generator).argsort(-1)


def by(of_ranks: bool, *directions: int) -> Orders:
    """Return the orders of the scores, or of the ranks, ascending (1) or descending (-1)."""

    def orders(scores: Tensor, ranks: Tensor, generator: torch.Generator) -> Tensor:
        keys = ranks if of_ranks else scores.detach()
        return torch.cat([(direction * keys).argsort(-1) for direction in directions])

    return orders


def through(
    loss: Network, orders: Orders = at_random, dtype: str = "float32", error_free: bool = False
) -> Start:
    """Return the mean of a loss over orders of the items, through the network of the recipe."""

    def start(n: int, generator: torch.Generator) -> Loss:
        operator = nsc.compile(
            "odd_even", n, relaxation="cauchy", art_lambda=0.0, dtypes=dtype, error_free=error_free
        )
        taken = ordered(orders, generator)

        def mean(scores: Tensor, truth: Truth) -> Tensor:
            x, ranks = taken(scores.to(getattr(torch, dtype)), truth)
            return loss(operator, x, ranks, STEEPNESS * operator.depth).to(scores.dtype)

        return mean

    return start


def ordered(orders: Orders, generator: torch.Generator) -> Callable[[Tensor, Truth], tuple[Tensor, Tensor]]:
    """Return what takes scores and their truth, and returns scores and ranks in all orders."""

    def taken(scores: Tensor, truth: Truth) -> tuple[Tensor, Tensor]:
        order = orders(scores, truth.ranks, generator)
        count = len(order) // len(scores)
        return (
            scores.repeat(count, 1).gather(-1, order),
            truth.ranks.repeat(count, 1).gather(-1, order),
        )

    return taken


def cross_entropy(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the loss of the recipe."""
    return op.cross_entropy(x, ranks, steepness)


def binary(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the binary cross entropy of all entries of P."""
    return op.n * op.binary_cross_entropy(x, ranks, steepness)


def spearman(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return Spearman's loss."""
    return spearman_loss(op, x, ranks, steepness)


def both(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy and Spearman's loss."""
    return op.cross_entropy(x, ranks, steepness) + spearman_loss(op, x, ranks, steepness)


def blurred(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy with half of an item's share at its rank, a quarter at each rank beside it."""
    distance = (torch.arange(op.n).unsqueeze(-1) - ranks.unsqueeze(1)).abs()
    shares = 0.5 * (distance == 0) + 0.25 * (distance == 1)
    _, P = op.sort_with_permutation(x, steepness)
    return -(shares / shares.sum(1, keepdim=True) * _log(P)).sum(1).mean()


def interval(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy where each item may have its rank or one beside it."""
    distance = (torch.arange(op.n).unsqueeze(-1) - ranks.unsqueeze(1)).abs()
    _, P = op.sort_with_permutation(x, steepness)
    return -_log((P * (distance <= 1)).sum(1)).mean()


def cumulative(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the binary cross entropy of "the item has at most rank r", over all r but the last."""
    _, P = op.sort_with_permutation(x, steepness)
    at_most, above = P.cumsum(1)[:, :-1], P.flip(1).cumsum(1).flip(1)[:, 1:]
    is_at_most = ranks.unsqueeze(1) <= torch.arange(op.n - 1).unsqueeze(-1)
    return -_log(torch.where(is_at_most, at_most, above)).mean()


def by_spread(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy at a steepness over the scores' spread, without a gradient of it."""
    return op.cross_entropy(x, ranks, steepness / max(x.detach().std(-1).mean().item(), 1e-3))


def standardised(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy of scores over their spread, with its gradient."""
    return op.cross_entropy(x / x.std().clamp_min(1e-3), ranks, steepness)


def of_mean(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float) -> Tensor:
    """Return the cross entropy of the mean of P over the orders."""
    _, P = op.sort_with_permutation(x, steepness)
    # By ranks an item has the same place in all orders.
    shares = P.gather(1, ranks.unsqueeze(1)).squeeze(1).gather(-1, ranks.argsort(-1))
    return -_log(shares.view(ORDERS, -1, op.n).mean(0)).mean()


def growing(n: int, generator: torch.Generator) -> Loss:
    """Return the cross entropy at a steepness that grows over the run."""
    operator = nsc.compile("odd_even", n, relaxation="cauchy", art_lambda=0.0)
    taken, steps = ordered(at_random, generator), batch_and_steps(PROFILE, n)[1]
    step = 0

    def loss(scores: Tensor, truth: Truth) -> Tensor:
        nonlocal step
        factor = GROWTH ** (step / steps - 0.5)
        step += 1
        return operator.cross_entropy(*taken(scores, truth), STEEPNESS * operator.depth * factor)

    return loss


def by_layer(growth: float, logistic: bool = False) -> Start:
    """Return the cross entropy of an odd-even network whose steepness grows over its layers.

    Args:
        growth: the last steepness over the first.
        logistic: whether the first half of the layers is logistic.
    """

    def start(n: int, generator: torch.Generator) -> Loss:
        taken = ordered(at_random, generator)

        def loss(scores: Tensor, truth: Truth) -> Tensor:
            x, ranks = taken(scores, truth)
            P = torch.eye(n).expand(len(x), n, n)
            for layer in range(n):
                low = torch.arange(layer % 2, n - 1, 2)
                difference = STEEPNESS * n * growth ** (layer / (n - 1) - 0.5) * (x[:, low + 1] - x[:, low])
                is_logistic = logistic and layer < n // 2
                keep = difference.sigmoid() if is_logistic else difference.atan() / math.pi + 0.5
                x, P = _mixed(x, low, keep), _mixed(P, low, keep.unsqueeze(-1))
            return -_log(P.gather(1, ranks.unsqueeze(1))).mean()

        return loss

    return start


def _mixed(values: Tensor, low: Tensor, keep: Tensor) -> Tensor:
    """Return values (batch, n, …) after a layer on the wires low and low + 1."""
    first, second = values[:, low], values[:, low + 1]
    mixed = values.index_copy(1, low, keep * first + (1 - keep) * second)
    return mixed.index_copy(1, low + 1, keep * second + (1 - keep) * first)


def _log(shares: Tensor) -> Tensor:
    return shares.clamp_min(1e-30).log()


CAUCHY = "odd_even+cauchy+art=0"
CANDIDATES: dict[str, Start] = {
    "the recipe, fixed orders": method(RECIPE, STEEPNESS),
    "new random orders in each step": through(cross_entropy),
    "LapSum, α = 0.09": method("lap_sum", 0.09),
    "LapSum, α = 0.3": method("lap_sum", 0.3),
    "LapSum, α = 1": method("lap_sum", 1.0),
    "1 order": method(f"{CAUCHY}+orders=1", STEEPNESS),
    "8 orders": method(f"{CAUCHY}+orders=8", STEEPNESS),
    "32 orders": method(f"{CAUCHY}+orders=32", STEEPNESS),
    "the cross entropy of the mean P": through(of_mean),
    "ascending scores": through(cross_entropy, by(False, 1)),
    "descending scores": through(cross_entropy, by(False, -1)),
    "ascending and descending scores": through(cross_entropy, by(False, 1, -1)),
    "the true order": through(cross_entropy, by(True, 1)),
    "the true order and its reverse": through(cross_entropy, by(True, 1, -1)),
    "steepness 1/2 × depth": method(RECIPE, 0.5),
    "steepness 1 × depth": method(RECIPE, 1.0),
    "steepness 4 × depth": method(RECIPE, 4.0),
    "steepness that grows fourfold over the run": growing,
    "steepness that grows fourfold over the layers": by_layer(GROWTH),
    "steepness that falls fourfold over the layers": by_layer(1 / GROWTH),
    "steepness over the scores' spread": through(by_spread),
    "scores over their spread": through(standardised),
    "logistic, λ = 0.25, 1 × depth": method("odd_even+orders=16", 1.0),
    "logistic, λ = 0, 1 × depth": method("odd_even+art=0+orders=16", 1.0),
    "reciprocal, 1 × depth": method("odd_even+reciprocal+art=0+orders=16", 1.0),
    "optimal, 1/2 × depth": method("odd_even+optimal+art=0+orders=16", 0.5),
    "the first half of the layers logistic": by_layer(1.0, logistic=True),
    "bitonic": method("bitonic+cauchy+art=0+orders=16", STEEPNESS),
    "odd-even merge": method("odd_even_merge+cauchy+art=0+orders=16", STEEPNESS),
    "the best network that is known": method("best+cauchy+art=0+orders=16", STEEPNESS),
    "pairwise": method("pairwise+cauchy+art=0+orders=16", STEEPNESS),
    "binary cross entropy of all entries of P": through(binary),
    "shares of the neighbouring ranks": through(blurred),
    "intervals: the rank and those beside it": through(interval),
    "binary cross entropy of “at most rank r”": through(cumulative),
    "Spearman's loss beside the cross entropy": through(both),
    "Spearman's loss alone": through(spearman),
    "Spearman's loss, straight-through": through(spearman, error_free=True),
    "float64": through(cross_entropy, dtype="float64"),
}


class Tried(Ranking):
    """The task of the tables, with the loss of a candidate."""

    def __init__(self, run: Run, data: Data, generator: torch.Generator, start: Start) -> None:
        super().__init__(run, data, torch.device("cpu"), generator)
        self._loss = start(run.n, generator)


def run_of(settings: Settings, n: int) -> Run:
    """Return the run that all candidates have at n."""
    run = ranking_run(settings, RECIPE, n, SEED, STEEPNESS)
    return replace(run, validations=1, validation=ITEMS)


def em5(candidate: str, run: Run, root: Path | None) -> float:
    """Return the EM5 on the validation part after a run, in %; NaN if the loss became infinite or NaN."""
    data = data_of(run, root)
    training = Training(run, data, torch.device("cpu"))
    training.task = Tried(run, data, training.generator, CANDIDATES[candidate])
    while training.step < run.steps:
        if not math.isfinite(training.advance()):
            return math.nan
    return 100 * training.measure("validation")["em5"]


def page(found: Mapping[tuple[str, int], float], data: str) -> str:
    """Return the page: a line for each candidate."""
    lines = [[name, *(f"{found[name, n]:.1f}" for n in SIZES)] for name in CANDIDATES]
    parts = (
        "# What was tried to learn an order",
        paragraph(
            f"EM5 in % on {ITEMS:,} items of the validation part of {data}, after one run of the standard "
            f"profile with the seed {SEED}. The recipe is an odd-even network with the Cauchy relaxation, "
            "λ = 0, a steepness of 2 × depth and 16 orders. Each other line but LapSum's is one change to "
            "it, with new random orders in each step where it needs a loss of its own. `python -m "
            f"experiments.candidates` makes this page. Machine: {machine()}."
        ),
        table(["", *(f"n = {n}" for n in SIZES)], lines),
    )
    return "\n\n".join(parts) + "\n"


@click.command()
@click.option("--data", default="fashion", show_default=True, help="Data set of digits.")
@click.option("--root", type=click.Path(path_type=Path), help="Folder of the data, if it needs one.")
@click.option("--jobs", type=click.IntRange(min=1), default=cores, help="Processes; by default one a core.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="results", show_default=True)
def main(data: str, root: Path | None, jobs: int, out: Path) -> None:
    """Train with each candidate, and write candidates.md."""
    settings, found = Settings(PROFILE, ((data, fingerprint(load(data, root))),), 1), {}
    runs = {n: run_of(settings, n) for n in SIZES}
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        waiting = {
            pool.submit(em5, name, run, root): (name, n)
            for (n, run), name in product(runs.items(), CANDIDATES)
        }
        for done in as_completed(waiting):
            name, n = waiting[done]
            found[name, n] = done.result()
            click.echo(f"n = {n}, {name}: {found[name, n]:.1f}")
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "candidates.md", page(found, data))
    click.echo(f"wrote {out / 'candidates.md'}")


if __name__ == "__main__":
    main()
