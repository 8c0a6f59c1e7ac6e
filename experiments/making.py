"""A table, from what the user asks to its figures: tune, train, collect."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from experiments import paper
from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.scheduling import execute
from experiments.store import Store
from experiments.tables.plan import Planned, PlannedPanel, Settings, Table, Tempered, Tuning
from experiments.training import WATCHED, train
from experiments.writing.records import Finished, Measured, Outcome, Panel, PaperNumber, Tuned

Reporter = Callable[[str, int, int], None]
"""Called with what is done ("tuning" or "training"), how many of its runs are finished, and their number."""


@dataclass(frozen=True)
class Place:
    """Where runs are done and kept.

    Attributes:
        out: the folder of results.
        root: the folder of the data, if it needs one.
        device: of torch.
        jobs: processes on this machine.
        scheduler: the address of a Dask scheduler; then jobs is not used.
        resume: whether runs that were interrupted go on from their checkpoints.
    """

    out: Path
    root: Path | None
    device: str
    jobs: int
    scheduler: str | None
    resume: bool


def make(table: Table, settings: Settings, place: Place, command: str, report: Reporter) -> Finished:
    """Do the runs of a table that are not finished yet, and return the table.

    Raises:
        ExperimentError: the runs cannot be done; those that are finished are kept.
    """
    start = time.monotonic()
    tuning = table.tuning(settings)
    tried, is_fresh = results_of(tuning.values(), place, partial(report, "tuning"))
    choices = {
        method.name: _chosen(method, {t: tried[run] for (other, t), run in tuning.items() if other == method})
        for method, _ in tuning
    }
    temperatures = {name: choice.chosen for name, choice in choices.items()}
    panels = table.plan(settings, temperatures)
    runs = [planned.run for panel in panels for planned in panel.runs]
    results, are_fresh = results_of(runs, place, partial(report, "training"))
    return Finished(
        name=table.name,
        title=table.title,
        source=table.source,
        profile=settings.profile.name,
        command=command,
        panels=tuple(_panel(panel, table.metrics, results) for panel in panels),
        tuned=tuple(choices.values()),
        deviations=table.differences(settings),
        notes=_notes(tuning),
        seconds=time.monotonic() - start if is_fresh and are_fresh else None,
    )


def results_of(
    runs: Iterable[Run], place: Place, report: Callable[[int, int], None]
) -> tuple[dict[Run, Result], bool]:
    """Do the runs that have no result yet; return all results, and whether none of them was there before."""
    store = Store(place.out)
    store.prepare()
    wanted = list(dict.fromkeys(runs))
    results = {run: result for run in wanted if (result := store.read(run)) is not None}
    is_fresh = not results
    missing = [run for run in wanted if run not in results]
    report(len(results), len(wanted))

    def done(result: Result) -> None:
        store.write(result)
        results[result.run] = result
        report(len(results), len(wanted))

    if missing:
        # The machines of a cluster need not share a folder for checkpoints.
        checkpoints = None if place.scheduler else place.out
        work = partial(do, root=place.root, device=place.device, out=checkpoints, resume=place.resume)
        execute(work, missing, jobs=place.jobs, scheduler=place.scheduler, done=done)
    return results, is_fresh


def do(run: Run, root: Path | None, device: str, out: Path | None, resume: bool) -> Result:
    """Do one run, in the process that is called."""
    checkpoint = Store(out).checkpoint(run) if out is not None else None
    return train(run, root, device, checkpoint, resume)


def _chosen(method: Tempered, results: dict[float, Result]) -> Tuned:
    """Return the choice of a temperature: the best validation, of equal ones the first."""
    scores = {t: None if r.failure else max(score for _, score in r.validations) for t, r in results.items()}
    known = {t: score for t, score in scores.items() if score is not None}
    if not known:
        raise ExperimentError(
            f"{method.name}: no temperature of {', '.join(f'{t:g}' for t in scores)} could be trained with: "
            f"{next(iter(results.values())).failure}"
        )
    return Tuned(
        row=method.title,
        column="",
        temperature=method.temperature,
        metric=WATCHED[next(iter(results.values())).run.task],
        grid=tuple(scores),
        scores=tuple(scores.values()),
        chosen=max(known, key=lambda t: known[t]),
    )


def _panel(panel: PlannedPanel, metrics: tuple[str, ...], results: dict[Run, Result]) -> Panel:
    """Return a panel with the results of its runs."""

    def place(planned: Planned) -> tuple[str, str]:
        return planned.row.title, planned.column.title

    cells = []
    for (row, column), group in itertools.groupby(panel.runs, key=place):
        several = list(group)
        cells.append(
            Measured(
                row=row,
                column=column,
                outcomes=tuple(Outcome.of(results[planned.run]) for planned in several),
                paper=_paper(several[0], metrics),
            )
        )
    return Panel(
        title=panel.title,
        axis=panel.axis,
        metrics=metrics,
        rows=tuple(dict.fromkeys(planned.row for planned in panel.runs)),
        columns=tuple(dict.fromkeys(planned.column for planned in panel.runs)),
        cells=tuple(cells),
    )


def _paper(planned: Planned, metrics: Sequence[str]) -> dict[str, PaperNumber]:
    if planned.paper is None:
        return {}
    numbers = {metric: paper.number(*planned.paper, metric) for metric in metrics}
    return {metric: number for metric, number in numbers.items() if number is not None}


def _notes(tuning: Tuning) -> tuple[str, ...]:
    """Return how temperatures were chosen, if any were."""
    if not tuning:
        return ()
    run = next(iter(tuning.values()))
    where = f" at n = {run.n}" if run.n > 1 else ""
    return (
        "Temperatures are chosen by one rule for all methods: for each value of the grid one run of "
        f"{run.steps:,} steps{where}, with a seed that the table does not use. The best on the "
        "validation part wins.",
    )
