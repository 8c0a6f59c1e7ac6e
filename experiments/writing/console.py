"""A finished table on the terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from experiments.writing import comparing, figures
from experiments.writing.explaining import BY_THE_SAMPLE, has_sampling_errors
from experiments.writing.quantities import METRICS
from experiments.writing.records import Column, Finished, Panel, Row


def show(finished: Finished) -> Group:
    """Return every metric of a table, and which row is first, to print on a rich console."""
    parts: list[Table | Text] = []
    for panel in finished.panels:
        parts += [metric_table(finished, panel, metric) for metric in panel.metrics]
        if any(has_sampling_errors(panel, metric) for metric in panel.metrics):
            parts.append(Text(BY_THE_SAMPLE))
        parts += [Text(f"- {sentence}") for sentence in comparing.who_is_first(panel)]
    return Group(*parts)


def metric_table(finished: Finished, panel: Panel, metric: str) -> Table:
    """Return a metric by rows and columns; the best of a column is bold, the paper's numbers are dim."""
    names = (finished.title, panel.title, f"{METRICS[metric].title}: {METRICS[metric].text}")
    table = Table(title=". ".join(filter(None, names)), title_justify="left")
    table.add_column("")
    for column in panel.columns:
        table.add_column(column.title, justify="right", no_wrap=True)
    best = {column.title: comparing.best(panel, metric, column.title) for column in panel.columns}
    for row in panel.rows:
        cells = [_cell(panel, metric, row, column, best[column.title]) for column in panel.columns]
        table.add_row(row.title, *cells)
    return table


def _cell(panel: Panel, metric: str, row: Row, column: Column, best: list[str]) -> Text:
    cell = panel.cell(row.title, column.title)
    if cell is None:
        return Text("")
    figure, number = figures.figure_of(cell, metric), cell.paper.get(metric)
    ours = figures.shown_figure(METRICS[metric], figure) if figure else "–"
    text = Text(ours, style="bold" if row.title in best else "")
    if number:
        text.append(f"\npaper {figures.shown_paper(METRICS[metric], number)}", style="dim not bold")
    return text
