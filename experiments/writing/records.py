"""The records of a finished table: what it says, checked when it is built."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from experiments.run import Result, Run
from experiments.writing.quantities import METRICS

SCALES = ("ordinal", "linear", "log", "names")


@dataclass(frozen=True)
class PaperNumber:
    """A number that the paper prints.

    Attributes:
        value: in % for shares, in seconds, or in bytes.
        deviation: its standard deviation in the same unit; None if the paper has none.
    """

    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What one training, or one measurement without training, gave.

    Attributes:
        run: the training; None for a measurement without training.
        failure: why there are no figures; "" if there are.
        test: metrics on the test part: shares in [0, 1], seconds, or bytes.
        training: the same metrics on the training part.
        seconds: of training; 0 for a measurement.
        machine: what ran it: processor, threads, versions.
    """

    run: Run | None
    failure: str
    test: dict[str, float]
    training: dict[str, float]
    seconds: float
    machine: str

    def __post_init__(self) -> None:
        """Check that there are either figures or a failure."""
        _require(bool(self.failure) != bool(self.test), "an outcome has either metrics or a failure")
        for metrics in (self.test, self.training):
            _require_known("metric", metrics, METRICS)
            for key, value in metrics.items():
                _require(math.isfinite(value) and value >= 0, f"{key} must be finite and >= 0, got {value}")
                most = 1 if METRICS[key].unit == "share" else math.inf
                _require(value <= most, f"{key} is a share in [0, 1], got {value}")

    @classmethod
    def of(cls, result: Result) -> Outcome:
        """Return what a table needs of a result."""
        return cls(
            run=result.run,
            failure=result.failure,
            test=result.test,
            training=result.training,
            seconds=result.seconds,
            machine=result.machine,
        )


@dataclass(frozen=True)
class Row:
    """A row of a panel.

    Attributes:
        title: such as the title of a method.
        reference: shown, but never compared: it learns from more, or does less, than the other rows.
    """

    title: str
    reference: bool = False


@dataclass(frozen=True)
class Column:
    """A column of a panel.

    Attributes:
        title: such as "n = 5".
        at: its place on the axis, such as 5; None on an axis of names.
    """

    title: str
    at: float | None = None


@dataclass(frozen=True)
class Axis:
    """What the columns vary.

    Attributes:
        title: such as "n".
        scale: "linear" or "log"; "ordinal": numbers in even steps; "names": no order, so no lines are drawn.
    """

    title: str
    scale: str = "ordinal"

    @property
    def is_size(self) -> bool:
        """Whether the columns vary n, the items of a sample."""
        return self.title == "n"


@dataclass(frozen=True)
class Cell:
    """What a panel shows of a row in a column.

    Attributes:
        row: title of its row.
        column: title of its column.
        outcomes: of each seed.
        paper: metric to the paper's number, for those that the paper has.
    """

    row: str
    column: str
    outcomes: tuple[Outcome, ...]
    paper: dict[str, PaperNumber]

    def values(self, metric: str) -> tuple[float, ...]:
        """Return the metric on the test part, of each seed that has it."""
        return tuple(o.test[metric] for o in self.outcomes if metric in o.test)

    def gaps(self, metric: str) -> tuple[float, ...]:
        """Return, of each seed with both, the metric on the training part minus that on the test part."""
        both = [o for o in self.outcomes if metric in o.test and metric in o.training]
        return tuple(o.training[metric] - o.test[metric] for o in both)


@dataclass(frozen=True)
class Tuned:
    """A temperature that was chosen on the validation part.

    Attributes:
        row: title of the row.
        column: title of the column; "" if one choice is for all.
        temperature: what it is called, such as "τ".
        metric: what was compared.
        grid: the temperatures.
        scores: their metric on the validation part, of one run each; None where training failed. The number
            of samples is not recorded, so the standard errors are not known.
        chosen: one of the grid.
    """

    row: str
    column: str
    temperature: str
    metric: str
    grid: tuple[float, ...]
    scores: tuple[float | None, ...]
    chosen: float

    def __post_init__(self) -> None:
        """Check the choice."""
        _require_known("metric", [self.metric], METRICS)
        _require(
            len(self.grid) == len(self.scores), f"{len(self.grid)} temperatures, {len(self.scores)} scores"
        )
        _require(self.chosen in self.grid, f"the temperature {self.chosen} is not in the grid {self.grid}")

    @property
    def edge(self) -> str:
        """The edge of the grid at which the choice lies, "smallest" or "largest".

        "" if the choice lies inside, or has no score because training failed.
        """
        if self.scores[self.grid.index(self.chosen)] is None:
            return ""
        return {min(self.grid): "smallest", max(self.grid): "largest"}.get(self.chosen, "")


@dataclass(frozen=True)
class Panel:
    """Cells by rows and columns; most tables have one panel.

    Attributes:
        title: a heading; "" if the table has one panel.
        axis: what the columns vary.
        metrics: keys of METRICS, in the order shown; conclusions are drawn from the first.
        rows, columns: in the order shown.
        cells: at most one for each row and column.
    """

    title: str
    axis: Axis
    metrics: tuple[str, ...]
    rows: tuple[Row, ...]
    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]

    def __post_init__(self) -> None:
        """Check that every cell has its place."""
        rows, columns = [row.title for row in self.rows], [column.title for column in self.columns]
        _require(bool(rows and columns and self.metrics), "a panel needs rows, columns and metrics")
        _require_known("scale", [self.axis.scale], SCALES)
        _require_known("metric", self.metrics, METRICS)
        _require_known("row", (cell.row for cell in self.cells), rows)
        _require_known("column", (cell.column for cell in self.cells), columns)
        places = [(cell.row, cell.column) for cell in self.cells]
        for what, titles in (("row", rows), ("column", columns), ("cell", places)):
            _require(len({*titles}) == len(titles), f"a {what} is stated twice: {titles}")
        is_named = self.axis.scale == "names"
        _require(
            all((column.at is None) == is_named for column in self.columns),
            f"columns on an axis that is {self.axis.scale} {'have no' if is_named else 'need a'} place `at`",
        )

    def cell(self, row: str, column: str) -> Cell | None:
        """Return the cell of a row and a column."""
        return next((c for c in self.cells if (c.row, c.column) == (row, column)), None)


@dataclass(frozen=True)
class Finished:
    """A table with its figures.

    Its files and its heading name the data, so that tables of two data sets stand side by side.

    Attributes:
        name: of the table on the command line, such as "mnist".
        title: its heading.
        source: the table or figure of the paper, such as "table 1".
        profile: "quick", "standard" or "paper"; "cpu" for the table of times.
        command: the command that makes it.
        panels: the figures.
        tuned: the temperatures that were chosen.
        deviations: from the paper's protocol, sentences.
        notes: other sentences.
        seconds: from the command to its end; None if it took earlier runs from its folder.
    """

    name: str
    title: str
    source: str
    profile: str
    command: str
    panels: tuple[Panel, ...]
    tuned: tuple[Tuned, ...]
    deviations: tuple[str, ...]
    notes: tuple[str, ...]
    seconds: float | None

    def __post_init__(self) -> None:
        """Check the name, which becomes a file's name."""
        _require(bool(self.panels), "a table needs a panel")
        for part in (self.name, self.profile):
            _require(is_part(part), f"{part!r} must be letters, digits and underscores")

    @property
    def data(self) -> tuple[str, ...]:
        """The names of the data sets that it learned from; of a file of the user's, the file's name."""
        names = dict.fromkeys(Path(outcome.run.data).stem for outcome in self.outcomes if outcome.run)
        return tuple(names)

    @property
    def stem(self) -> str:
        """The name of its files without their suffix: NAME-DATA-PROFILE, or NAME-PROFILE without data."""
        parts = (self.name, *self.data, self.profile)
        return "-".join(re.sub(r"\W", "_", part) for part in parts)

    @property
    def heading(self) -> str:
        """The title, the data and the profile."""
        return ", ".join((self.title, *self.data, f"{self.profile} profile"))

    @property
    def outcomes(self) -> list[Outcome]:
        """All outcomes, a run that stands in two cells once."""
        outcomes = [o for panel in self.panels for cell in panel.cells for o in cell.outcomes]
        return list({(o.run or index): o for index, o in enumerate(outcomes)}.values())


def is_part(text: str) -> bool:
    """Return whether a text can be the name or the profile in the name of a table's files."""
    return text.replace("_", "").isalnum()


def _require(is_right: bool, message: str) -> None:
    """Raise ValueError with the message unless it is right."""
    if not is_right:
        raise ValueError(message)


def _require_known(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError if a name is not among those known."""
    known = list(known)
    for name in asked:
        _require(name in known, f"unknown {what} {name!r}; known are {', '.join(known)}")
