"""A finished table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from experiments.writing import comparing, figures
from experiments.writing.explaining import BY_THE_SAMPLE, has_sampling_errors
from experiments.writing.markdown import failures
from experiments.writing.quantities import METRICS
from experiments.writing.records import Column, Finished, Panel, Row


def show(finished: Finished) -> Group:
    """Return every metric of a table, and which row is first, to print on a rich console.

    Below stands why cells have no figures. Titles are shown as they are: rich markup in them means nothing.
    """
    parts: list[RenderableType] = []
    for panel in finished.panels:
        for metric in panel.metrics:
            names = (finished.title, panel.title, f"{METRICS[metric].title}: {METRICS[metric].text}")
            parts += [Text(". ".join(filter(None, names)), style="italic"), _Figures(panel, metric)]
        if any(has_sampling_errors(panel, metric) for metric in panel.metrics):
            parts.append(Text(BY_THE_SAMPLE))
        parts += [Text(f"- {sentence}") for sentence in comparing.who_is_first(panel)]
    if reasons := failures(finished):
        parts += [Text("Without figures:"), *(Text(f"- {reason}") for reason in reasons)]
    return Group(*parts)


@dataclass(frozen=True)
class _Figures:
    """A metric of a panel, laid out for the console's width.

    Attributes:
        panel: whose figures.
        metric: a key of METRICS.
    """

    panel: Panel
    metric: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        columns = self.panel.columns
        table = self._table(columns, options, narrow=False)
        yield from [table] if _fits(table, console, options) else self._narrow(columns, console, options)

    def _narrow(
        self, columns: Sequence[Column], console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Yield a narrow table, or two of half the columns if it is too wide."""
        table = self._table(columns, options, narrow=True)
        if len(columns) == 1 or _fits(table, console, options):
            yield table
            return
        middle = (len(columns) + 1) // 2
        yield from self._narrow(columns[:middle], console, options)
        yield Text("")
        yield from self._narrow(columns[middle:], console, options)

    def _table(self, columns: Sequence[Column], options: ConsoleOptions, narrow: bool) -> Table:
        # Longer titles of rows are folded: no part of a name is lost.
        return metric_table(self.panel, self.metric, columns, options.max_width // 2, narrow)


def _fits(table: Table, console: Console, options: ConsoleOptions) -> bool:
    wide = options.update(width=10**4)
    return console.measure(table, options=wide).maximum <= options.max_width


def metric_table(panel: Panel, metric: str, columns: Sequence[Column], most: int, narrow: bool) -> Table:
    """Return a metric by rows and columns; the best of a column is bold, the paper's numbers are dim.

    Args:
        panel: the figures.
        metric: a key of METRICS.
        columns: those to show.
        most: the width of the longest title of a row, longer ones are folded.
        narrow: no lines between columns, and no errors in brackets.
    """
    table = Table(box=box.SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False) if narrow else Table()
    width = max(cell_len(row.title) for row in panel.rows)
    table.add_column("", width=min(width, most), overflow="fold")
    for column in columns:
        table.add_column(Text(column.title), justify="right", no_wrap=True)
    best = {column.title: comparing.best(panel, metric, column.title) for column in columns}
    for row in panel.rows:
        cells = [_cell(panel, metric, row, column, best[column.title], narrow) for column in columns]
        table.add_row(Text(row.title), *cells)
    return table


def _cell(panel: Panel, metric: str, row: Row, column: Column, best: list[str], narrow: bool) -> Text:
    cell = panel.cell(row.title, column.title)
    if cell is None:
        return Text("")
    figure, number = figures.figure_of(cell, metric), cell.paper.get(metric)
    ours = figures.shown_figure(METRICS[metric], figure) if figure else "–"
    if narrow:
        ours = ours.partition(" (")[0]
    text = Text(ours, style="bold" if row.title in best else "")
    if number:
        start = "\npaper\n" if narrow else "\npaper "
        text.append(f"{start}{figures.shown_paper(METRICS[metric], number)}", style="dim not bold")
    return text
