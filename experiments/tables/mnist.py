"""Sorting networks and other methods on four-digit numbers: the paper's first table."""

from __future__ import annotations

from dataclasses import replace

from experiments import methods
from experiments.profiles import Profile
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

PAPER_METHODS = ("odd_even", "neural_sort", "stochastic_neural_sort", "optimal_transport", "fast_rank")
METHODS = (
    *("odd_even", "bitonic", "odd_even+art=0", "bitonic+art=0"),
    *("odd_even+cauchy", "odd_even+cauchy+art=0", "odd_even+reciprocal+art=0"),
    *("neural_sort", "stochastic_neural_sort", "soft_sort", "optimal_transport", "fast_rank", "lap_sum"),
    *("rank_net", "list_mle", "regression"),
)
PAPER_SIZES = (3, 5, 7, 9, 15)
SIZES = (5, 15, 32)
# The quick profile has only networks at these n, so that it stays one.
SIZES_OF_NETWORKS = (32,)
PAPER_BATCH = 100
PAPER_STEPS = 1_000_000
# Where methods differ most while all of them learn.
TUNED_SIZE = 15


def is_paper(profile: Profile) -> bool:
    """Return whether a table follows the paper to the letter."""
    return profile.name == "paper"


def chosen(
    settings: Settings,
    papers: tuple[tuple[str, ...], tuple[int, ...]],
    ours: tuple[tuple[str, ...], tuple[int, ...]],
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the methods and sizes that the user asked for, or the paper's in its profile, or ours."""
    names, sizes = papers if is_paper(settings.profile) else ours
    return settings.methods or names, settings.sizes or sizes


def tuned(
    settings: Settings, names: tuple[str, ...], sizes: tuple[int, ...], model: str | None = None
) -> Tuning:
    """Return the runs that tune the methods of a table, at one n.

    In the paper's profile networks keep the paper's steepness, 2 × depth.
    """
    wanted = [methods.find(name) for name in names]
    if is_paper(settings.profile):
        wanted = [method for method in wanted if not methods.is_network(method.name)]
    n = TUNED_SIZE if TUNED_SIZE in sizes else sizes[len(sizes) // 2]

    def run_of(name: str, temperature: float) -> Run:
        return ranking_run(
            settings, name, n, TUNING_SEED, temperature, batch=PAPER_BATCH, steps=PAPER_STEPS, model=model
        )

    return tuning_runs(wanted, settings.profile, run_of)


def _chosen(settings: Settings) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return chosen(settings, (PAPER_METHODS, PAPER_SIZES), (METHODS, SIZES))


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    names, sizes = _chosen(settings)
    panel = methods_by_size(
        settings, temperatures, names, sizes, ("mnist", "networks"), batch=PAPER_BATCH, steps=PAPER_STEPS
    )
    if settings.sizes or settings.profile.name != "quick":
        return (panel,)
    runs = [p for p in panel.runs if p.run.n not in SIZES_OF_NETWORKS or methods.is_network(p.run.method)]
    return (replace(panel, runs=tuple(runs)),)


def protocol(settings: Settings) -> tuple[str, ...]:
    """Return where runs on four-digit numbers differ from the paper's, one sentence each."""
    profile = settings.profile
    if not is_paper(profile):
        return (
            f"Data, model, length, rate and noise are those of the profile {profile.name}: {profile.about}.",
        )
    return (
        "The paper trains for up to 10^6 steps; here the model of the best of "
        f"{profile.validations} validations in so many steps is measured.",
        f"The paper does not say on how many numbers it measures; here it is {profile.test:,}.",
    )


def _differences(settings: Settings) -> tuple[str, ...]:
    copied = (
        "The paper copies NeuralSort's and optimal transport's rows from Cuturi et al.; here all are trained."
    )
    return (*protocol(settings), copied) if is_paper(settings.profile) else protocol(settings)


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
