"""Sorting networks and other methods on house numbers: the paper's second table."""

from __future__ import annotations

from experiments.tables.mnist import Axes, tuned
from experiments.tables.plan import PlannedPanel, Settings, Table, Temperatures, methods_by_size
from experiments.tables.protocol import ranking_differences

METHODS = ("odd_even", "bitonic", "neural_sort", "optimal_transport", "fast_rank")
SIZES = (2, 4, 8, 16, 32)


def _chosen(settings: Settings) -> Axes:
    return settings.methods or METHODS, settings.sizes or SIZES


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    return (methods_by_size(settings, temperatures, *_chosen(settings), ("svhn",)),)


def _differences(settings: Settings) -> tuple[str, ...]:
    return (
        *ranking_differences(settings, "svhn"),
        "The paper does not say whether it trains on SVHN's extra part. The data set svhn does not have it.",
        "Images are measured by their centre crop; the paper crops at random and says no more.",
    )


SVHN = Table(
    name="svhn",
    title="House numbers: sorting networks and other methods",
    source="table 2",
    kinds=("numbers",),
    data=lambda profile: ("svhn",),
    metrics=("em5", "ew", "em"),
    plan=_plan,
    tuning=lambda settings: tuned(settings, *_chosen(settings)),
    differences=_differences,
)
