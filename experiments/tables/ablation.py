"""Networks with and without the activation replacement trick: the paper's ablation."""

from __future__ import annotations

from experiments import data as sources
from experiments import methods
from experiments.tables.plan import (
    PlannedPanel,
    PlannedRun,
    Settings,
    Table,
    Temperatures,
    nothing_tuned,
    ranking_run,
)
from experiments.tables.protocol import ranking_differences
from experiments.writing.records import Axis, Column, Row

METHODS = ("odd_even", "bitonic")
SIZES = (4, 32)
STRENGTHS = (0.0, 0.25)


def _papers_data(settings: Settings) -> str:
    return "svhn" if sources.find(settings.data[0][0]).kind == "numbers" else "mnist"


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    runs = []
    for name in settings.methods or METHODS:
        title = methods.find(name).title
        for n in settings.sizes or SIZES:
            column = Column(f"n = {n}", n)
            for strength in STRENGTHS:
                method = methods.with_strength(name, strength)
                key = ("ablation", f"{name} {_papers_data(settings)}", f"{n} {strength:g}")
                for seed in range(settings.seeds):
                    run = ranking_run(settings, method, n, seed)
                    runs.append(PlannedRun(Row(f"{title}, λ = {strength:g}"), column, run, key))
    return (PlannedPanel("", Axis("n"), tuple(runs)),)


ABLATION = Table(
    name="ablation",
    title="With and without the activation replacement trick",
    source="table 5",
    kinds=("digits", "numbers"),
    data=lambda profile: (profile.digits,),
    metrics=("ew", "em5", "em"),
    plan=_plan,
    tuning=nothing_tuned,
    differences=lambda settings: ranking_differences(settings, _papers_data(settings)),
)
