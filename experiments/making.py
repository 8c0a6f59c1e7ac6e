"""A table, from what the user asks to its figures: tune, train, collect."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal

from experiments import paper
from experiments.checking import check_begun, check_starts, check_titles
from experiments.choosing import MOST_WIDER, choose, possible
from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.scheduling import execute, message_of
from experiments.scheduling.outcomes import Failure
from experiments.store import Store
from experiments.tables.plan import PlannedPanel, PlannedRun, Settings, Table, Tuning
from experiments.training import Progress, train
from experiments.writing.comparing import best
from experiments.writing.records import Cell, Finished, Outcome, Panel, PaperNumber
from nsc.wording import count

Reporter = Callable[[str, int, int], None]
"""Called with what is done, how much of it is finished, and how much there is."""

Begun = Literal["resume", "restart", "refuse"]


@dataclass(frozen=True)
class Place:
    """Where runs are done and kept.

    Attributes:
        out: the folder of results.
        root: the folder of the data, if it needs one.
        device: of torch.
        jobs: processes on this machine.
        scheduler: the address of a Dask scheduler; then jobs is not used.
        begun: what becomes of runs that were interrupted: "resume" goes on from their checkpoints, "restart"
            begins them anew, "refuse" raises an error. A cluster keeps no checkpoints and uses none.
    """

    out: Path
    root: Path | None
    device: str
    jobs: int
    scheduler: str | None
    begun: Begun


@dataclass(frozen=True)
class Made:
    """A table, and the runs of it that have no result.

    Attributes:
        finished: the table, in which these runs are failures.
        failures: runs that raised an error or whose process died. The next command does them again.
        runs: how many runs the table needs, with those that choose temperatures.
    """

    finished: Finished
    failures: tuple[Failure, ...]
    runs: int


def make(table: Table, settings: Settings, place: Place, command: str, report: Reporter) -> Made:
    """Do the runs of a table that are not finished yet, and return the table.

    The runs of a cell are of one machine: where a kept one is of another machine than the new ones, it is
    done again.

    Raises:
        ExperimentError: two rows have one title, a method cannot start, interrupted runs are to be refused,
            no run of the table can be done, or workers of several machines did the runs of a cell.
    """
    begin = time.monotonic()
    first, tuning = table.plan(settings, {}), table.tuning(settings)
    check_titles(first)
    if place.begun == "refuse" and place.scheduler is None:
        check_begun(_possible(table, settings, tuning), Store(place.out))
    check_starts([*tuning.values(), *(planned.run for panel in first for planned in panel.runs)], place.root)
    rounds: list[Results] = []

    def tried(some: Iterable[Run]) -> dict[Run, Result]:
        rounds.append(results_of(some, place, "tuning", report))
        return rounds[-1].of

    choices = choose(tuning, tried)
    temperatures = {name: choice.chosen for name, choice in choices.items()}
    panels = table.plan(settings, temperatures)
    done = _with_results(panels, Results({}, frozenset(), ()), place, "training", report)
    most = table.plan(settings.with_most_seeds, temperatures)
    panels = tuple(map(partial(_with_more_seeds, done.of, table.metrics), panels, most))
    done = _with_results(panels, done, place, "more seeds", report)
    rounds.append(done)
    failures = tuple(failure for each in rounds for failure in each.failures)
    needed = sum(len(each.of) for each in rounds)
    if len(done.failures) == len(done.of):
        raise ExperimentError(message_of(failures, needed))
    finished = Finished(
        name=table.name,
        title=table.title,
        source=table.source,
        profile=settings.profile.name,
        command=command,
        panels=tuple(_panel(panel, table.metrics, done.of) for panel in panels),
        tuned=tuple(choices.values()),
        deviations=table.differences(settings),
        notes=(*_notes(tuning, settings), *_on_seeds(settings, panels)),
        seconds=None if any(each.kept for each in rounds) else time.monotonic() - begin,
    )
    return Made(finished, failures, needed)


@dataclass(frozen=True)
class Results:
    """What came of runs.

    Attributes:
        of: the result of each run. The result of a run that failed says why, and is not stored.
        kept: the runs whose results were stored before.
        failures: the runs that failed.
    """

    of: dict[Run, Result]
    kept: frozenset[Run]
    failures: tuple[Failure, ...]

    def then(self, later: Results) -> Results:
        """Return these results with later ones in their place."""
        return Results(
            self.of | later.of, self.kept - {*later.of} | later.kept, (*self.failures, *later.failures)
        )


def _with_results(
    panels: Sequence[PlannedPanel], done: Results, place: Place, what: str, report: Reporter
) -> Results:
    """Return results of all runs of panels, so that the results of a cell come from one machine.

    Args:
        panels: of a table.
        done: what is known of their runs.
        place, what, report: see `results_of`.
    """
    missing = [planned.run for panel in panels for planned in panel.runs if planned.run not in done.of]
    if missing:
        done = done.then(results_of(missing, place, what, report))
    while stale := _of_other_machines(panels, done):
        done = done.then(results_of(stale, place, f"{what} on one machine", report, anew=True))
    return done


def _of_other_machines(panels: Iterable[PlannedPanel], done: Results) -> list[Run]:
    """Return the kept runs to do again, so that the runs of each cell are of one machine.

    Raises:
        ExperimentError: the new runs of a cell are of several machines.
    """
    stale: dict[Run, None] = {}
    for (row, column), cell in [entry for panel in panels for entry in _cells(panel).items()]:
        machines = {each.run: done.of[each.run].machine for each in cell if done.of[each.run].machine}
        new = {machine for run, machine in machines.items() if run not in done.kept}
        if len(new) > 1:
            raise ExperimentError(
                f"workers of different machines did the runs of {row}, {column}: {'; '.join(sorted(new))}; "
                "start workers on machines of one kind and give the command again"
            )
        if len({*machines.values()}) > 1:
            stale |= dict.fromkeys(run for run in done.kept & {*machines} if {machines[run]} != new)
    return list(stale)


def _with_more_seeds(
    results: dict[Run, Result], metrics: tuple[str, ...], panel: PlannedPanel, most: PlannedPanel
) -> PlannedPanel:
    """Return a panel with the most seeds in the cells that cannot be told from the best of their column.

    Args:
        results: of the runs of the panel.
        metrics: of the table; the first one tells.
        panel: with the seeds that every cell has.
        most: the same panel with the most seeds in every cell.
    """
    found = _panel(panel, metrics, results)
    leaders = {column.title: best(found, metrics[0], column.title) for column in found.columns}
    # A row that is first alone has been told apart.
    tied = {(row, column) for column, rows in leaders.items() if len(rows) > 1 for row in rows}
    have = {planned.run for planned in panel.runs}
    runs = tuple(p for p in most.runs if p.run in have or (p.row.title, p.column.title) in tied)
    return replace(panel, runs=runs)


def _cells(panel: PlannedPanel) -> dict[tuple[str, str], list[PlannedRun]]:
    """Return the runs of each cell, by the titles of its row and its column."""
    cells: dict[tuple[str, str], list[PlannedRun]] = {}
    for planned in panel.runs:
        cells.setdefault((planned.row.title, planned.column.title), []).append(planned)
    return cells


def results_of(runs: Iterable[Run], place: Place, what: str, report: Reporter, anew: bool = False) -> Results:
    """Do the runs that have no result yet, and return the results of all.

    Args:
        runs: what to do.
        place: where.
        what: the word for these runs in the report, such as "training".
        report: is told of each result, and of each step if the runs are done in this process.
        anew: whether stored results are put aside, and all runs done.
    """
    store = Store(place.out)
    store.prepare()
    wanted = list(dict.fromkeys(runs))
    results = {run: result for run in wanted if not anew and (result := store.read(run)) is not None}
    kept = frozenset(results)
    missing = [run for run in wanted if run not in results]
    report(what, len(results), len(wanted))
    if place.begun == "restart":
        for run in missing:
            store.checkpoint(run).unlink(missing_ok=True)

    def done(result: Result) -> None:
        store.write(result)
        results[result.run] = result
        report(what, len(results), len(wanted))

    failures: list[Failure] = []

    def failed(failure: Failure) -> None:
        failures.append(failure)
        # It may be done another time, so it is not stored.
        why = " ".join(failure.why.split())
        results[failure.run] = Result(failure.run, why, {}, {}, (), (), 0.0, "")
        report(what, len(results), len(wanted))

    if missing:
        # The machines of a cluster need not share a folder for checkpoints.
        work = partial(do, root=place.root, device=place.device, out=None if place.scheduler else place.out)
        if place.jobs == 1 and not place.scheduler:
            work = partial(work, report=report)
        execute(work, missing, jobs=place.jobs, scheduler=place.scheduler, done=done, failed=failed)
    return Results(results, kept, tuple(failures))


def do(run: Run, root: Path | None, device: str, out: Path | None, report: Reporter | None = None) -> Result:
    """Do one run, from its checkpoint if there is one.

    Args:
        run: what to do.
        root: the folder of the data, if it needs one.
        device: of torch.
        out: the folder of results, which has the checkpoint; None: no checkpoint is kept.
        report: is told of each step.
    """
    progress: Progress | None = None
    if report is not None:

        def progress(step: int, loss: float) -> None:
            report("steps of this run", step, run.steps)

    checkpoint = Store(out).checkpoint(run) if out is not None else None
    return train(run, root, device, checkpoint, progress)


def _possible(table: Table, settings: Settings, tuning: Tuning) -> list[Run]:
    """Return all runs that a table may need, whatever temperatures are chosen and cells get more seeds."""
    settings = settings.with_most_seeds
    grids = {method.name: possible(method.grid) for method, _ in tuning}
    runs = list(tuning.values())
    runs += [replace(run, temperature=t) for (method, _), run in tuning.items() for t in grids[method.name]]
    for place in range(max(map(len, grids.values()), default=1)):
        temperatures = {name: grid[min(place, len(grid) - 1)] for name, grid in grids.items()}
        runs += [planned.run for panel in table.plan(settings, temperatures) for planned in panel.runs]
    return runs


def _panel(panel: PlannedPanel, metrics: tuple[str, ...], results: dict[Run, Result]) -> Panel:
    """Return a panel with the results of its runs."""
    return Panel(
        title=panel.title,
        axis=panel.axis,
        metrics=metrics,
        rows=tuple(dict.fromkeys(planned.row for planned in panel.runs)),
        columns=tuple(dict.fromkeys(planned.column for planned in panel.runs)),
        cells=tuple(
            Cell(
                row=row,
                column=column,
                outcomes=tuple(Outcome.of(results[planned.run]) for planned in several),
                paper=_paper(several[0], metrics),
            )
            for (row, column), several in _cells(panel).items()
        ),
    )


def _paper(planned: PlannedRun, metrics: Sequence[str]) -> dict[str, PaperNumber]:
    if planned.paper is None:
        return {}
    numbers = {metric: paper.number(*planned.paper, metric) for metric in metrics}
    return {metric: number for metric, number in numbers.items() if number is not None}


def _notes(tuning: Tuning, settings: Settings) -> tuple[str, ...]:
    """Return how temperatures were chosen, if any were, and what was not."""
    if not tuning:
        return ()
    run = next(iter(tuning.values()))
    where = f" at n = {run.n}" if run.n > 1 else f" on {run.data} with the model {run.model!r}"
    notes = [
        "Temperatures are chosen by one rule for all methods: for each value of the grid one run of "
        f"{run.steps:,} steps{where}, with a seed that the table does not use. The best on the validation "
        "part wins. Where that is the smallest or the largest of the grid, the next one beyond it is tried, "
        f"{count(MOST_WIDER, 'time')} at most."
    ]
    if settings.profile.rate_chosen:
        notes.append(settings.profile.rate_chosen)
    return tuple(notes)


def _on_seeds(settings: Settings, panels: Sequence[PlannedPanel]) -> tuple[str, ...]:
    """Return a sentence about the cells that have more seeds than others, if any have."""
    cells = {place: len(several) for panel in panels for place, several in _cells(panel).items()}
    more = [f"{row} at {column}" for (row, column), runs in cells.items() if runs > settings.seeds]
    if not more:
        return ()
    return (
        f"Cells that could not be told from the best of their column by {count(settings.seeds, 'seed')} have "
        f"{settings.most_seeds}: {'; '.join(more)}.",
    )
