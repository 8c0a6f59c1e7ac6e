"""Networks with and without the activation replacement trick: the paper's ablation."""

from __future__ import annotations

from experiments import data as sources
from experiments import methods
from experiments.tables.mnist import PAPER_BATCH, PAPER_STEPS, protocol
from experiments.tables.plan import (
    Planned,
    PlannedPanel,
    Settings,
    Table,
    Temperatures,
    nothing_tuned,
    ranking_run,
)
from experiments.writing.records import Axis, Column, Row

METHODS = ("odd_even", "bitonic")
SIZES = (4, 32)
STRENGTHS = (0.0, 0.25)


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    is_cropped = sources.find(settings.data[0]).kind == "numbers"
    runs = tuple(
        Planned(
            row=Row(methods.find(name).title),
            column=Column(f"n = {n}, λ = {strength:g}"),
            run=ranking_run(
                settings,
                f"{name}+art={strength:g}",
                n,
                seed,
                batch=PAPER_BATCH,
                steps=PAPER_STEPS,
                model="svhn" if is_cropped else None,
            ),
            paper=("ablation", f"{name} {'svhn' if is_cropped else 'mnist'}", f"{n} {strength:g}"),
        )
        for name in settings.methods or METHODS
        for n in settings.sizes or SIZES
        for strength in STRENGTHS
        for seed in range(settings.seeds)
    )
    return (PlannedPanel("", Axis("n and λ", "names"), runs),)


ABLATION = Table(
    name="ablation",
    title="With and without the activation replacement trick",
    source="table 5",
    kinds=("digits", "numbers"),
    data=lambda profile: (profile.digits,),
    metrics=("ew", "em5", "em"),
    plan=_plan,
    tuning=nothing_tuned,
    differences=protocol,
)
