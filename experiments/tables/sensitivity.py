"""Networks at other steepnesses and strengths λ: the paper's two figures of sensitivity.

And networks whose scores are multiplied by a number, as the scores of a model that was not scaled for them:
most comparators are then in the tails of their relaxation.
"""

from __future__ import annotations

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

STEEPNESSES = (8, 16, 24, 32, 48, 64)
STEEPNESS_METHODS = ("odd_even",)
STEEPNESS_SIZES = (16,)
STRENGTHS = (0.0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75)
STRENGTH_METHODS = ("odd_even", "bitonic")
STRENGTH_SIZES = (8, 16)
FACTORS = (1, 30, 1000)
FACTOR_METHODS = (
    *("odd_even", "odd_even+art=0"),
    *(f"odd_even+{tail}+art=0" for tail in ("gaussian", "reciprocal", "cauchy", "optimal")),
)
FACTOR_SIZES = (16,)


def _by_steepness(settings: Settings, name: str, n: int) -> list[PlannedRun]:
    depth = methods.depth(name, n)
    row = Row(f"{methods.find(name).title}, n = {n}")
    return [
        PlannedRun(
            row,
            Column(f"s = {steepness}", steepness),
            ranking_run(settings, name, n, seed, steepness / depth),
        )
        for steepness in STEEPNESSES
        for seed in range(settings.seeds)
    ]


def _by_strength(settings: Settings, name: str, n: int) -> list[PlannedRun]:
    row = Row(f"{methods.find(name).title}, n = {n}")
    return [
        PlannedRun(
            row,
            Column(f"λ = {strength:g}", strength),
            ranking_run(settings, methods.with_strength(name, strength), n, seed),
        )
        for strength in STRENGTHS
        for seed in range(settings.seeds)
    ]


def _by_factor(settings: Settings, name: str, n: int) -> list[PlannedRun]:
    """Return runs with scores times a factor, which to a network is a steepness times the factor."""
    method = methods.find(name)
    usual = methods.usual_temperature(method)
    assert usual is not None  # networks have one
    return [
        PlannedRun(
            Row(f"{method.title}, n = {n}"),
            Column(f"scores × {factor:,}", factor),
            ranking_run(settings, name, n, seed, usual * factor),
        )
        for factor in FACTORS
        for seed in range(settings.seeds)
    ]


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    by_steepness = [
        planned
        for name in settings.methods or STEEPNESS_METHODS
        for n in settings.sizes or STEEPNESS_SIZES
        for planned in _by_steepness(settings, name, n)
    ]
    by_strength = [
        planned
        for name in settings.methods or STRENGTH_METHODS
        for n in settings.sizes or STRENGTH_SIZES
        for planned in _by_strength(settings, name, n)
    ]
    by_factor = [
        planned
        for name in settings.methods or FACTOR_METHODS
        for n in settings.sizes or FACTOR_SIZES
        for planned in _by_factor(settings, name, n)
    ]
    return (
        PlannedPanel("Steepness", Axis("steepness s", "log"), tuple(by_steepness)),
        PlannedPanel("Strength λ of the trick", Axis("λ", "linear"), tuple(by_strength)),
        PlannedPanel("Scores multiplied", Axis("factor", "log"), tuple(by_factor)),
    )


def _differences(settings: Settings) -> tuple[str, ...]:
    return (
        *ranking_differences(settings),
        "The paper draws these figures and prints no numbers of them. It does not multiply scores.",
    )


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
