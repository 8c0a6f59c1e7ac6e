"""Odd-even and bitonic networks on four-digit numbers: the second part of the paper's first table."""

from __future__ import annotations

from experiments.tables.plan import (
    PlannedPanel,
    Settings,
    Table,
    Temperatures,
    methods_by_size,
    nothing_tuned,
)
from experiments.tables.protocol import ranking_differences

METHODS = ("odd_even", "bitonic")
SIZES = (2, 4, 8, 16, 32)


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    names, sizes = settings.methods or METHODS, settings.sizes or SIZES
    return (methods_by_size(settings, temperatures, names, sizes, ("networks", "mnist")),)


NETWORKS = Table(
    name="networks",
    title="Four-digit numbers: odd-even and bitonic networks",
    source="table 1, second part",
    kinds=("digits",),
    data=lambda profile: (profile.digits,),
    metrics=("em5", "ew", "em"),
    plan=_plan,
    tuning=nothing_tuned,
    differences=ranking_differences,
)
