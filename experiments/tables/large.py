"""Bitonic networks on many wires: EM5 as n grows from 32 to 1,024."""

from __future__ import annotations

from dataclasses import dataclass

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
from experiments.tables.protocol import data_and_seeds, training_differences
from experiments.writing.records import Axis, Column, Row

METHOD = "bitonic+art=0.4"
WEAKER = "bitonic"  # λ = 0.25: the paper's first column, n = 32 alone
SIZES = (32, 64, 128, 256, 512, 1024)
FIXED_BATCH = 4
PAPER_SEEDS = 10


@dataclass(frozen=True)
class Length:
    """What a profile asks of this table.

    Attributes:
        steepnesses: of the rows.
        images_a_step: images of a step, the same for all n.
        steps: of a run.
    """

    steepnesses: tuple[float, ...]
    images_a_step: int
    steps: int


LENGTHS = {
    "quick": Length((35.0,), 1024, 300),
    "standard": Length((35.0,), 4096, 300),
    "paper": Length((30.0, 32.5, 35.0, 37.5, 40.0), 4096, 10_000),
}


def _cells(settings: Settings, method: str, n: int, steepness: float, batch: int | None) -> list[PlannedRun]:
    """Return the runs of a cell with `batch` samples a step; None: as many as make the profile's images."""
    length = LENGTHS[settings.profile.name]
    samples = max(1, length.images_a_step // n) if batch is None else batch
    temperature = steepness / methods.depth(method, n)
    key = ("large" if batch is None else "large batch 4", f"{_paper_name(method)} {steepness:g}", str(n))
    return [
        PlannedRun(
            Row(f"{methods.find(method).title}, s = {steepness:g}"),
            Column(f"n = {n}", n),
            ranking_run(settings, method, n, seed, temperature, (samples, length.steps)),
            key,
        )
        for seed in range(settings.seeds)
    ]


def _paper_name(method: str) -> str:
    return "bitonic+art=0.25" if method == WEAKER else method


def _panel(settings: Settings, title: str, batch: int | None) -> PlannedPanel:
    sizes = settings.sizes or SIZES
    rows = [(method, sizes) for method in settings.methods or (METHOD,)]
    if not settings.methods and batch is None:
        rows.append((WEAKER, tuple(n for n in sizes if n == SIZES[0])))
    runs = [
        planned
        for method, columns in rows
        for steepness in LENGTHS[settings.profile.name].steepnesses
        for n in columns
        for planned in _cells(settings, method, n, steepness, batch)
    ]
    return PlannedPanel(title, Axis("n", "log"), tuple(runs))


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    images = LENGTHS[settings.profile.name].images_a_step
    equal = _panel(settings, f"As many images a step, {images:,}", None)
    if settings.profile.name == "quick":
        return (equal,)
    return equal, _panel(settings, f"As many samples a step, {FIXED_BATCH}", FIXED_BATCH)


def _differences(settings: Settings) -> tuple[str, ...]:
    length = LENGTHS[settings.profile.name]
    sentences = data_and_seeds(settings, seeds=PAPER_SEEDS)
    if settings.profile.name != "paper":
        sentences.append(
            f"Steps: {length.steps:,} of {length.images_a_step:,} images; the paper's, 10,000 of 4,096."
        )
        shown = ", ".join(f"{steepness:g}" for steepness in length.steepnesses)
        sentences.append(f"The steepness is {shown}; the paper has five.")
    sentences.append(
        "The paper's two columns of n = 1,024 are one run, and it adds the mean, the best and the worst "
        "steepness of each column."
    )
    return (*sentences, *training_differences(settings))


LARGE = Table(
    name="large",
    title="Large sorting networks",
    source="table 3",
    kinds=("digits",),
    data=lambda profile: (profile.digits,),
    metrics=("em5", "ew"),
    plan=_plan,
    tuning=nothing_tuned,
    differences=_differences,
)
