"""Sorting networks and other methods on house numbers: the paper's table of SVHN."""

from __future__ import annotations

from experiments.tables.mnist import PAPER_BATCH, PAPER_STEPS, chosen, protocol, tuned
from experiments.tables.plan import PlannedPanel, Settings, Table, Temperatures, methods_by_size

METHODS = ("odd_even", "bitonic", "neural_sort", "optimal_transport", "fast_rank")
SIZES = (2, 4, 8, 16, 32)


def _chosen(settings: Settings) -> tuple[tuple[str, ...], tuple[int, ...]]:
    return chosen(settings, (METHODS, SIZES), (METHODS, SIZES))


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    names, sizes = _chosen(settings)
    panel = methods_by_size(
        settings, temperatures, names, sizes, ("svhn",), batch=PAPER_BATCH, steps=PAPER_STEPS, model="svhn"
    )
    return (panel,)


def _differences(settings: Settings) -> tuple[str, ...]:
    return (*protocol(settings), "House numbers of the extra part of SVHN are not used.")


SVHN = Table(
    name="svhn",
    title="House numbers: sorting networks and other methods",
    source="table 2",
    kinds=("numbers",),
    data=lambda profile: ("svhn",),
    metrics=("em5", "ew", "em"),
    plan=_plan,
    tuning=lambda settings: tuned(settings, *_chosen(settings), model="svhn"),
    differences=_differences,
)
