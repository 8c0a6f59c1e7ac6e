"""`python -m experiments.candidates`: what was tried to learn an order, one change to the recipe each.

Every candidate gets one run with the same seed, and the best of them get more. They are measured on the
validation part, as the test part must not say which to take.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from itertools import count, product, repeat
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean

import click
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

import nsc
from benchmarks.machine import machine
from experiments.data import Data, fingerprint, load
from experiments.methods import Loss, Truth, find
from experiments.metrics import error_of_mean
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
# No table has these seeds. All candidates have the first.
SEEDS = (100, 101, 102, 103)
# Candidates that have all seeds, besides those of ALWAYS.
BEST = 8
ORDERS, STEEPNESS = 16, 2.0
# The factor from the first to the last steepness, over a run or over the layers.
GROWTH = 4.0

Start = Callable[[int, torch.Generator], Loss]
"""Takes n and a generator; returns the loss of a run."""
OperatorLoss = Callable[[nsc.Sorter, Tensor, Tensor, "float | Tensor"], Tensor]
"""The loss of an operator, scores (batch, n), ranks (batch, n) and a steepness: the mean over the batch."""
Orders = Callable[[Tensor, Tensor, torch.Generator], Tensor]
"""Takes scores, ranks and a generator; returns orders of the items, (orders · batch, n)."""
Factors = Iterator["float | Tensor"]
"""The steepness of each step over the recipe's."""


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


def odd_even(n: int, generator: torch.Generator) -> nsc.Network:
    """Return the network of the recipe."""
    return nsc.network("odd_even", n)


def random_neighbours(n: int, generator: torch.Generator) -> nsc.Network:
    """Return random layers, each of as many neighbours as came free, until they sort.

    A network of neighbours sorts if it sorts the reversed input (de Bruijn 1974).
    """
    layers: list[list[tuple[int, int]]] = []
    values: NDArray[np.generic] = np.arange(n)[::-1]
    while list(values) != list(range(n)):
        free: set[int] = set(range(n))
        layer: list[tuple[int, int]] = []
        for low in torch.randperm(n - 1, generator=generator).tolist():
            if {low, low + 1} <= free:
                free -= {low, low + 1}
                layer.append((low, low + 1))
        layers.append(layer)
        values = nsc.Network.from_layers(n, [layer]).apply(values)
    return nsc.Network.from_layers(n, layers)


def random_in_front(n: int, generator: torch.Generator) -> nsc.Network:
    """Return an odd-even merge sort behind log₂ n random layers, each of n / 2 comparators."""
    layers = [
        torch.randperm(n, generator=generator)[: n - n % 2].view(-1, 2).sort(-1).values.tolist()
        for _ in range(math.ceil(math.log2(n)))
    ]
    return nsc.Network.from_layers(n, layers) + nsc.network("odd_even_merge", n)


def constant(n: int) -> Factors:
    """Yield no change."""
    return repeat(1.0)


def growing(n: int) -> Factors:
    """Yield factors that grow over the run."""
    steps = batch_and_steps(PROFILE, n)[1]
    return (GROWTH ** (step / steps - 0.5) for step in count())


def learned(n: int) -> Factors:
    """Yield a factor that is learned."""
    logarithm = _parameter(())
    return (logarithm.exp() for _ in count())


def _parameter(shape: tuple[int, ...]) -> Tensor:
    """Return zeros that take a step of Adam, at the models' rate, whenever they have got a gradient."""
    values = torch.zeros(shape, requires_grad=True)
    optimizer = torch.optim.Adam([values], PROFILE.learning_rate)

    def step(_: Tensor) -> None:
        optimizer.step()
        optimizer.zero_grad()

    values.register_post_accumulate_grad_hook(step)  # type: ignore[no-untyped-call]
    return values


def through(
    loss: OperatorLoss,
    orders: Orders = at_random,
    network: Callable[[int, torch.Generator], nsc.Network] = odd_even,
    factors: Callable[[int], Factors] = constant,
    dtype: str = "float32",
    error_free: bool = False,
) -> Start:
    """Return the mean of a loss over orders of the items, through a network with the recipe's relaxation."""

    def start(n: int, generator: torch.Generator) -> Loss:
        operator = nsc.compile(
            network(n, generator), relaxation="cauchy", art_lambda=0.0, dtypes=dtype, error_free=error_free
        )
        taken, factor = ordered(orders, generator), factors(n)

        def mean(scores: Tensor, truth: Truth) -> Tensor:
            x, ranks = taken(scores.to(getattr(torch, dtype)), truth)
            return loss(operator, x, ranks, STEEPNESS * operator.depth * next(factor)).to(scores.dtype)

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


def cross_entropy(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the loss of the recipe."""
    return op.cross_entropy(x, ranks, steepness)


def binary(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the binary cross entropy of all entries of P."""
    return op.n * op.binary_cross_entropy(x, ranks, steepness)


def spearman(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return Spearman's loss."""
    return spearman_loss(op, x, ranks, steepness)


def both(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy and Spearman's loss."""
    return op.cross_entropy(x, ranks, steepness) + spearman_loss(op, x, ranks, steepness)


def blurred(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy with half of an item's share at its rank, a quarter at each rank beside it."""
    distance = (torch.arange(op.n).unsqueeze(-1) - ranks.unsqueeze(1)).abs()
    shares = 0.5 * (distance == 0) + 0.25 * (distance == 1)
    _, P = op.sort_with_permutation(x, steepness)
    return -(shares / shares.sum(1, keepdim=True) * _log(P)).sum(1).mean()


def interval(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy where each item may have its rank or one beside it."""
    distance = (torch.arange(op.n).unsqueeze(-1) - ranks.unsqueeze(1)).abs()
    _, P = op.sort_with_permutation(x, steepness)
    return -_log((P * (distance <= 1)).sum(1)).mean()


def cumulative(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the binary cross entropy of "the item has at most rank r", over all r but the last."""
    _, P = op.sort_with_permutation(x, steepness)
    at_most, above = P.cumsum(1)[:, :-1], P.flip(1).cumsum(1).flip(1)[:, 1:]
    is_at_most = ranks.unsqueeze(1) <= torch.arange(op.n - 1).unsqueeze(-1)
    return -_log(torch.where(is_at_most, at_most, above)).mean()


def by_spread(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy at a steepness over the scores' spread, without a gradient of it."""
    return op.cross_entropy(x, ranks, steepness / max(x.detach().std(-1).mean().item(), 1e-3))


def standardised(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy of scores over their spread, with its gradient."""
    return op.cross_entropy(x / x.std().clamp_min(1e-3), ranks, steepness)


def of_mean(op: nsc.Sorter, x: Tensor, ranks: Tensor, steepness: float | Tensor) -> Tensor:
    """Return the cross entropy of the mean of P over the orders."""
    _, P = op.sort_with_permutation(x, steepness)
    # By ranks an item has the same place in all orders.
    shares = P.gather(1, ranks.unsqueeze(1)).squeeze(1).gather(-1, ranks.argsort(-1))
    return -_log(shares.view(ORDERS, -1, op.n).mean(0)).mean()


def by_layer(growth: float = 1.0, logistic: bool = False, is_learned: bool = False) -> Start:
    """Return the cross entropy of an odd-even network whose steepness grows over its layers.

    Args:
        growth: the last steepness over the first.
        logistic: whether the first half of the layers is logistic.
        is_learned: whether the steepness of each layer is learned.
    """

    def start(n: int, generator: torch.Generator) -> Loss:
        taken = ordered(at_random, generator)
        logarithms = _parameter((n,)) if is_learned else torch.zeros(n)

        def loss(scores: Tensor, truth: Truth) -> Tensor:
            x, ranks = taken(scores, truth)
            P = torch.eye(n).expand(len(x), n, n)
            for layer in range(n):
                low = torch.arange(layer % 2, n - 1, 2)
                steepness = STEEPNESS * n * growth ** (layer / (n - 1) - 0.5) * logarithms[layer].exp()
                difference = steepness * (x[:, low + 1] - x[:, low])
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
    "steepness that grows fourfold over the run": through(cross_entropy, factors=growing),
    "steepness that grows fourfold over the layers": by_layer(GROWTH),
    "steepness that falls fourfold over the layers": by_layer(1 / GROWTH),
    "steepness that is learned": through(cross_entropy, factors=learned),
    "steepness that is learned for each layer": by_layer(is_learned=True),
    "steepness over the scores' spread": through(by_spread),
    "scores over their spread": through(standardised),
    "logistic, λ = 0.25, 1 × depth": method("odd_even+orders=16", 1.0),
    "logistic, λ = 0, 1 × depth": method("odd_even+art=0+orders=16", 1.0),
    "reciprocal, 1 × depth": method("odd_even+reciprocal+art=0+orders=16", 1.0),
    "optimal, 1/2 × depth": method("odd_even+optimal+art=0+orders=16", 0.5),
    "the first half of the layers logistic": by_layer(logistic=True),
    "bitonic": method("bitonic+cauchy+art=0+orders=16", STEEPNESS),
    "odd-even merge": method("odd_even_merge+cauchy+art=0+orders=16", STEEPNESS),
    "the best network that is known": method("best+cauchy+art=0+orders=16", STEEPNESS),
    "pairwise": method("pairwise+cauchy+art=0+orders=16", STEEPNESS),
    "random neighbours until they sort": through(cross_entropy, network=random_neighbours),
    "random layers, then odd-even merge": through(cross_entropy, network=random_in_front),
    "binary cross entropy of all entries of P": through(binary),
    "shares of the neighbouring ranks": through(blurred),
    "intervals: the rank and those beside it": through(interval),
    "binary cross entropy of “at most rank r”": through(cumulative),
    "Spearman's loss beside the cross entropy": through(both),
    "Spearman's loss alone": through(spearman),
    "Spearman's loss, straight-through": through(spearman, error_free=True),
    "float64": through(cross_entropy, dtype="float64"),
}
# Candidates that have all seeds, whatever their first runs say.
ALWAYS = (
    "the recipe, fixed orders",
    "new random orders in each step",
    "LapSum, α = 0.09",
    "LapSum, α = 0.3",
    "LapSum, α = 1",
)


class Tried(Ranking):
    """The task of the tables, with the loss of a candidate."""

    def __init__(self, run: Run, data: Data, generator: torch.Generator, start: Start) -> None:
        super().__init__(run, data, torch.device("cpu"), generator)
        self._loss = start(run.n, generator)


Found = Mapping[tuple[str, int, int], float]
"""The EM5 of runs, in %: candidate, n and seed."""


def run_of(settings: Settings, n: int, seed: int) -> Run:
    """Return the run that all candidates have at n."""
    run = ranking_run(settings, RECIPE, n, seed, STEEPNESS)
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


def best(found: Found) -> list[str]:
    """Return the candidates that get all seeds: those of ALWAYS, and the best by the mean of all n."""

    def mean(name: str) -> float:
        value = fmean(found[name, n, SEEDS[0]] for n in SIZES)
        return -math.inf if math.isnan(value) else value

    leaders = sorted(CANDIDATES, key=mean, reverse=True)[:BEST]
    return [name for name in CANDIDATES if name in (*ALWAYS, *leaders)]


def page(found: Found, data: str) -> str:
    """Return the page: a line for each candidate, with its first runs and the means of its others."""
    first, *others = SEEDS

    def further(name: str, n: int) -> str:
        values = [found[name, n, seed] for seed in others if (name, n, seed) in found]
        return f"{fmean(values):.1f} ({error_of_mean(values):.1f})" if values else ""

    lines = [
        [name, *(f"{found[name, n, first]:.1f}" for n in SIZES), *(further(name, n) for n in SIZES)]
        for name in CANDIDATES
    ]
    heads = (f"n = {n}, {runs}" for runs in ("one run", f"{len(others)} more") for n in SIZES)
    parts = (
        "# What was tried to learn an order",
        paragraph(
            f"EM5 in % on {ITEMS:,} items of the validation part of {data}, after one run of the standard "
            f"profile. The recipe, LapSum and the {BEST} best have {len(others)} more runs: means with "
            "standard errors, without the run by which they were chosen. The recipe is an odd-even network "
            "with the Cauchy relaxation, λ = 0, a steepness of 2 × depth and 16 orders. Each other line but "
            "LapSum's is one change to it, with new random orders in each step where it needs a loss of its "
            f"own. `python -m experiments.candidates` makes this page. Machine: {machine()}."
        ),
        table(["", *heads], lines),
    )
    return "\n\n".join(parts) + "\n"


@click.command()
@click.option("--data", default="fashion", show_default=True, help="Data set of digits.")
@click.option("--root", type=click.Path(path_type=Path), help="Folder of the data, if it needs one.")
@click.option("--jobs", type=click.IntRange(min=1), default=cores, help="Processes; by default one a core.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), default="results", show_default=True)
def main(data: str, root: Path | None, jobs: int, out: Path) -> None:
    """Train with each candidate, and write candidates.md."""
    settings = Settings(PROFILE, ((data, fingerprint(load(data, root))),), 1)
    found: dict[tuple[str, int, int], float] = {}
    with ProcessPoolExecutor(jobs, get_context("spawn"), torch.set_num_threads, (1,)) as pool:

        def find_all(names: Iterable[str], seeds: Sequence[int]) -> None:
            waiting = {
                pool.submit(em5, name, run_of(settings, n, seed), root): (name, n, seed)
                for seed, n, name in product(seeds, SIZES, names)
            }
            for done in as_completed(waiting):
                name, n, seed = waiting[done]
                found[name, n, seed] = done.result()
                click.echo(f"n = {n}, seed {seed}, {name}: {found[name, n, seed]:.1f}")

        find_all(CANDIDATES, SEEDS[:1])
        find_all(best(found), SEEDS[1:])
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "candidates.md", page(found, data))
    click.echo(f"wrote {out / 'candidates.md'}")


if __name__ == "__main__":
    main()
