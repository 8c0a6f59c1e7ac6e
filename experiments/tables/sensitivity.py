"""Networks at other steepnesses and strengths λ: the paper's two figures of sensitivity."""

from __future__ import annotations

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

STEEPNESSES = (8, 16, 24, 32, 48, 64)
STEEPNESS_SIZE = 16
STRENGTHS = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75)
STRENGTH_METHODS = ("odd_even", "bitonic")
STRENGTH_SIZES = (8, 16)


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    sizes = settings.sizes or STRENGTH_SIZES
    by_steepness = tuple(
        Planned(
            row=Row(f"{methods.find(name).title}, n = {n}"),
            column=Column(f"s = {steepness}", steepness),
            run=ranking_run(
                settings,
                name,
                n,
                seed,
                steepness / methods.depth(name, n),
                batch=PAPER_BATCH,
                steps=PAPER_STEPS,
            ),
        )
        for name in settings.methods or ("odd_even",)
        for n in settings.sizes or (STEEPNESS_SIZE,)
        for steepness in STEEPNESSES
        for seed in range(settings.seeds)
    )
    by_strength = tuple(
        Planned(
            row=Row(f"{methods.find(name).title}, n = {n}"),
            column=Column(f"λ = {strength:g}", strength),
            run=ranking_run(
                settings, f"{name}+art={strength:g}", n, seed, batch=PAPER_BATCH, steps=PAPER_STEPS
            ),
        )
        for name in settings.methods or STRENGTH_METHODS
        for n in sizes
        for strength in STRENGTHS
        for seed in range(settings.seeds)
    )
    return (
        PlannedPanel("Steepness", Axis("steepness s", "log"), by_steepness),
        PlannedPanel("Strength of the activation replacement trick", Axis("λ", "linear"), by_strength),
    )


def _differences(settings: Settings) -> tuple[str, ...]:
    return (*protocol(settings), "The paper draws these figures and prints no numbers of them.")


SENSITIVITY = Table(
    name="sensitivity",
    title="Other steepnesses and strengths",
    source="figures 4 and 5",
    kinds=("digits",),
    data=lambda profile: (profile.digits,),
    metrics=("em5", "ew", "em"),
    plan=_plan,
    tuning=nothing_tuned,
    differences=_differences,
)
