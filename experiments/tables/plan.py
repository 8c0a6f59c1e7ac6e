"""What a table is: rows, columns, and the runs of its cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from experiments import data as sources
from experiments import methods, paper
from experiments.profiles import Profile
from experiments.run import Run
from experiments.writing.records import Axis, Column, Row

PAPER_BATCH = 100
PAPER_STEPS = 1_000_000
# Tuning has a seed that no table uses, so a temperature is not chosen by a run that is shown.
TUNING_SEED = 1_000_000


@dataclass(frozen=True)
class Settings:
    """What the user asked of a table.

    Attributes:
        profile: the size of its runs.
        data: the data sets and their fingerprints; all tables but the table of classes take one.
        seeds: runs of each cell, with the seeds 0, 1, …
        methods: the methods of its rows; () are the table's own.
        sizes: the n of its columns; () are the table's own.
        most_seeds: runs of the cells that cannot be told from the best of their column, where this is more.
    """

    profile: Profile
    data: tuple[tuple[str, str], ...]
    seeds: int
    methods: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    most_seeds: int = 0

    @property
    def with_most_seeds(self) -> Settings:
        """The same with the most seeds in every cell."""
        return replace(self, seeds=max(self.seeds, self.most_seeds))


@dataclass(frozen=True)
class PlannedRun:
    """A run and its place in a panel.

    Attributes:
        row, column: in a panel they come in the order in which they appear first.
        run: the record.
        paper: the key of the paper's numbers for this cell, (table, row, column); None if it has none.
    """

    row: Row
    column: Column
    run: Run
    paper: tuple[str, str, str] | None = None


@dataclass(frozen=True)
class PlannedPanel:
    """Runs by rows and columns.

    Attributes:
        title: a heading; "" if the table has one panel.
        axis: what the columns vary.
        runs: all runs of all cells.
    """

    title: str
    axis: Axis
    runs: tuple[PlannedRun, ...]


Temperatures = Mapping[str, float]
"""From a method's name to the temperature that was chosen for it."""


Tuning = Mapping[tuple["Tempered", float], Run]
"""From a method and a temperature to the run that tries it."""


class Tempered(Protocol):
    """A method of any task, as far as tables know it."""

    @property
    def name(self) -> str:
        """For the command line and files."""

    @property
    def title(self) -> str:
        """For tables."""

    @property
    def grid(self) -> tuple[float, ...]:
        """The temperatures to choose from; () if the method has none."""

    @property
    def temperature(self) -> str:
        """What the temperature is called."""


@dataclass(frozen=True)
class Table:
    """A table of results.

    Attributes:
        name: for the command line and files.
        title: one line.
        source: the table or figure of the paper.
        kinds: of the data that it takes: "digits", "numbers", "classes".
        data: takes a profile; returns the data sets that are used unless another is asked for.
        metrics: keys of METRICS, the most telling first.
        plan: takes settings and temperatures; returns all runs.
        tuning: takes settings; returns the runs that choose temperatures, by method and temperature.
        differences: takes settings; returns where the runs differ from the paper's, one sentence each.
        ranks: whether its runs learn from samples of n, so that n may be asked for.
    """

    name: str
    title: str
    source: str
    kinds: tuple[str, ...]
    data: Callable[[Profile], tuple[str, ...]]
    metrics: tuple[str, ...]
    plan: Callable[[Settings, Temperatures], tuple[PlannedPanel, ...]]
    tuning: Callable[[Settings], Tuning]
    differences: Callable[[Settings], tuple[str, ...]]
    ranks: bool = True


def nothing_tuned(settings: Settings) -> Tuning:
    """Return no runs, for tables whose temperatures are the paper's."""
    return {}


def tuning_runs(methods: Iterable[Tempered], profile: Profile, run_of: Callable[[str, float], Run]) -> Tuning:
    """Return shorter runs of a table, one for each method and each value of its grid.

    The temperature with the best validation wins; of equal ones the first.

    Args:
        methods: those to tune.
        profile: how much shorter, see Profile.tuning.
        run_of: takes a method's name and a temperature; returns a run of the table with TUNING_SEED.
    """
    runs = {}
    for method in methods:
        for temperature in method.grid:
            run = run_of(method.name, temperature)
            steps = max(1, round(run.steps * profile.tuning))
            runs[method, temperature] = replace(run, steps=steps, validations=1, test=run.validation)
    return runs


def ranking_run(
    settings: Settings,
    method: str,
    n: int,
    seed: int,
    temperature: float | None = None,
    length: tuple[int, int] | None = None,
) -> Run:
    """Return a run that learns from samples of n.

    Args:
        settings: of the table.
        method: a name that `methods.find` takes.
        n: items of a sample.
        seed: of the run.
        temperature: of the method; None is its usual one.
        length: batch and steps; None: see `batch_and_steps`.
    """
    profile, (name, digest) = settings.profile, settings.data[0]
    batch, steps = length or batch_and_steps(profile, n)
    source = sources.find(name)
    is_pooled = source.kind == "digits" and profile.side is not None and source.side > profile.side
    if temperature is None:
        temperature = methods.usual_temperature(methods.find(method))
    return Run(
        task="ranking",
        data=name,
        data_digest=digest,
        side=profile.side if is_pooled else None,
        model=model_of(settings),
        method=methods.record_name(method),
        temperature=temperature,
        n=n,
        batch=batch,
        steps=steps,
        learning_rate=profile.learning_rate,
        one_cycle=profile.one_cycle,
        noise=profile.noise,
        validations=min(profile.validations, steps),
        validation=profile.validation,
        test=profile.test,
        seed=seed,
    )


def model_of(settings: Settings) -> str:
    """Return the model of ranking tables: the paper's for house numbers, else the profile's."""
    is_cropped = sources.find(settings.data[0][0]).kind == "numbers"
    return "svhn" if is_cropped else settings.profile.model


def batch_and_steps(profile: Profile, n: int) -> tuple[int, int]:
    """Return batch and steps of a run at n.

    They are the profile's, which make the same number of images for all n, or else the paper's.
    """
    if profile.images is None or profile.images_a_step is None:
        return PAPER_BATCH, PAPER_STEPS
    batch = max(1, round(profile.images_a_step / n))
    return batch, max(1, round(profile.images / (batch * n)))


def methods_by_size(
    settings: Settings,
    temperatures: Temperatures,
    names: tuple[str, ...],
    sizes: tuple[int, ...],
    tables: tuple[str, ...],
) -> PlannedPanel:
    """Return a panel with a row for each method and a column for each n.

    Args:
        settings: of the table.
        temperatures: of methods that were tuned.
        names: the methods.
        sizes: of the columns.
        tables: of the paper's numbers; the first that has a cell counts.
    """
    runs = []
    for name in names:
        row = Row(methods.find(name).title, reference=name == "regression")
        for n in sizes:
            for seed in range(settings.seeds):
                run = ranking_run(settings, name, n, seed, temperatures.get(name))
                runs.append(PlannedRun(row, Column(f"n = {n}", n), run, _first(tables, name, n)))
    return PlannedPanel("", Axis("n"), tuple(runs))


def _first(tables: tuple[str, ...], name: str, n: int) -> tuple[str, str, str] | None:
    """Return the key of the first of the paper's tables that has a method at n."""
    keys = ((table, name, str(n)) for table in tables)
    return next((key for key in keys if paper.number(*key, "ew") is not None), None)
