"""Sorting networks and other methods on four-digit numbers: the paper's first table."""

from __future__ import annotations

from dataclasses import replace

from experiments import methods
from experiments.run import Run
from experiments.tables.plan import (
    TUNING_SEED,
    PlannedPanel,
    Settings,
    Table,
    Temperatures,
    Tuning,
    methods_by_size,
    ranking_run,
    tuning_runs,
)
from experiments.tables.protocol import is_paper, ranking_differences

Axes = tuple[tuple[str, ...], tuple[int, ...]]
"""The methods of the rows and the n of the columns."""

PAPER_METHODS = ("odd_even", "neural_sort", "stochastic_neural_sort", "optimal_transport", "fast_rank")
RECIPE = "odd_even+cauchy+art=0+orders=16"
METHODS = (
    *("odd_even", "bitonic", "odd_even+art=0", "bitonic+art=0"),
    *("odd_even+cauchy", "odd_even+cauchy+art=0", RECIPE, "odd_even+reciprocal+art=0"),
    *("odd_even+gaussian+art=0", "odd_even+optimal+art=0"),
    *("neural_sort", "stochastic_neural_sort", "soft_sort", "optimal_transport", "fast_rank", "lap_sum"),
    *("rank_net", "list_mle", "regression"),
)
PAPER_SIZES = (3, 5, 7, 9, 15)
SIZES = (5, 15, 32)
# The quick profile has only networks at these n, to stay within minutes.
SIZES_OF_NETWORKS = (32,)
# Where methods differ most while all of them learn.
TUNED_SIZE = 15


def tuned(settings: Settings, names: tuple[str, ...], sizes: tuple[int, ...]) -> Tuning:
    """Return the runs that tune the methods of a table, at one n.

    In the paper's profile networks keep the paper's steepness, 2 × depth.
    """
    wanted = [methods.find(name) for name in names]
    if is_paper(settings.profile):
        wanted = [method for method in wanted if not method.is_network]
    n = TUNED_SIZE if TUNED_SIZE in sizes else sizes[len(sizes) // 2]

    def run_of(name: str, temperature: float) -> Run:
        return ranking_run(settings, name, n, TUNING_SEED, temperature)

    return tuning_runs(wanted, settings.profile, run_of)


def _chosen(settings: Settings) -> Axes:
    """Return the rows and columns that the user asked for, or the paper's in its profile, or ours."""
    names, sizes = (PAPER_METHODS, PAPER_SIZES) if is_paper(settings.profile) else (METHODS, SIZES)
    return settings.methods or names, settings.sizes or sizes


def _is_short(settings: Settings) -> bool:
    """Return whether only networks have the columns of SIZES_OF_NETWORKS."""
    return settings.profile.name == "quick" and not settings.sizes


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    panel = methods_by_size(settings, temperatures, *_chosen(settings), ("mnist", "networks"))
    if not _is_short(settings):
        return (panel,)
    runs = [p for p in panel.runs if p.run.n not in SIZES_OF_NETWORKS or methods.is_network(p.run.method)]
    return (replace(panel, runs=tuple(runs)),)


def _differences(settings: Settings) -> tuple[str, ...]:
    sentences = list(ranking_differences(settings))
    if is_paper(settings.profile):
        sentences += [
            "The paper copies NeuralSort's and optimal transport's rows from Cuturi et al.; here they "
            "are trained.",
            "Temperatures of other methods than networks are tuned by short runs, see below.",
        ]
    if _is_short(settings):
        sentences.append("To stay within minutes, only networks are trained at n = 32.")
    return tuple(sentences)


MNIST = Table(
    name="mnist",
    title="Four-digit numbers: sorting networks and other methods",
    source="table 1",
    kinds=("digits",),
    data=lambda profile: (profile.digits,),
    metrics=("em5", "ew", "em"),
    plan=_plan,
    tuning=lambda settings: tuned(settings, *_chosen(settings)),
    differences=_differences,
)
