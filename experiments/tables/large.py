"""Bitonic networks on many wires: EM5 as n grows from 32 to 1,024."""

from __future__ import annotations

from dataclasses import dataclass

from experiments import methods
from experiments.tables.mnist import protocol
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

METHOD = "bitonic+art=0.4"
WEAKER = "bitonic+art=0.25"  # the paper's first column, n = 32 alone
SIZES = (32, 64, 128, 256, 512, 1024)
FIXED_BATCH = 4
PAPER_STEPS = 10_000


@dataclass(frozen=True)
class _Length:
    """What a profile asks of this table: longer runs and larger steps than of the others.

    Attributes:
        steepnesses: of the rows.
        images_a_step: images of a step, where it is the same for all n.
        images: of a run; None: it has the paper's steps.
    """

    steepnesses: tuple[float, ...]
    images_a_step: int
    images: int | None


LENGTHS = {
    "quick": _Length((35.0,), 1024, 300 * 1024),
    "standard": _Length((30.0, 35.0, 40.0), 2048, 600 * 2048),
    "paper": _Length((30.0, 32.5, 35.0, 37.5, 40.0), 4096, None),
}


def _cell(settings: Settings, method: str, n: int, seed: int, steepness: float, batch: int | None) -> Planned:
    """Return a run of `batch` samples a step; None: of as many as make the profile's images."""
    length = LENGTHS[settings.profile.name]
    part = "large" if batch is None else "large batch 4"
    return Planned(
        row=Row(f"{methods.find(method).title}, s = {steepness:g}"),
        column=Column(f"n = {n}", n),
        run=ranking_run(
            settings,
            method,
            n,
            seed,
            steepness / methods.depth(method, n),
            images_a_step=length.images_a_step if batch is None else batch * n,
            images=length.images,
            steps=PAPER_STEPS,
        ),
        paper=(part, f"{method} {steepness:g}", str(n)) if method in (METHOD, WEAKER) else None,
    )


def _panel(settings: Settings, title: str, batch: int | None) -> PlannedPanel:
    sizes = settings.sizes or SIZES
    rows = [(method, sizes) for method in settings.methods or (METHOD,)]
    if not settings.methods and batch is None:
        rows.append((WEAKER, tuple(n for n in sizes if n == SIZES[0])))
    runs = tuple(
        _cell(settings, method, n, seed, steepness, batch)
        for method, columns in rows
        for steepness in LENGTHS[settings.profile.name].steepnesses
        for n in columns
        for seed in range(settings.seeds)
    )
    return PlannedPanel(title, Axis("n", "log"), runs)


def _plan(settings: Settings, temperatures: Temperatures) -> tuple[PlannedPanel, ...]:
    images = LENGTHS[settings.profile.name].images_a_step
    equal = _panel(settings, f"As many images a step, {images:,}", None)
    if settings.profile.name == "quick":
        return (equal,)
    return equal, _panel(settings, f"As many samples a step, {FIXED_BATCH}", FIXED_BATCH)


def _differences(settings: Settings) -> tuple[str, ...]:
    length = LENGTHS[settings.profile.name]
    same = "The paper's two columns of n = 1,024 are one run."
    if length.images is None:
        return ("The paper averages over 10 runs, which --seeds 10 does.", *protocol(settings)[1:], same)
    shorter = (
        f"A run learns from {length.images:,} images; a step has {length.images_a_step:,}, the paper's 4,096."
    )
    return (*protocol(settings), shorter, same)


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
