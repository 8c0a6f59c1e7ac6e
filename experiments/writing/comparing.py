"""Conclusions from the figures alone: which row is first, and which orders of the paper are found again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from experiments.writing import figures
from experiments.writing.figures import Figure
from experiments.writing.quantities import METRICS, Metric
from experiments.writing.records import Cell, Panel

VERDICTS = ("agree", "cannot be told", "disagree")


@dataclass(frozen=True)
class Claim:
    """Two rows, or two columns, that the paper has in an order, and where our figures have them so.

    Attributes:
        text: "A before B": in the paper A is better.
        metric: a key of METRICS.
        places: for every verdict of VERDICTS the columns of two rows, or the rows of two columns.
    """

    text: str
    metric: str
    places: tuple[tuple[str, ...], ...]


def figures_at(panel: Panel, metric: str, column: str) -> dict[str, Figure]:
    """Return the figures of a column by row, best first; references are left out."""
    found = {}
    for row in panel.rows:
        cell = panel.cell(row.title, column)
        figure = figures.figure_of(cell, metric) if cell and not row.reference else None
        if figure:
            found[row.title] = figure
    is_share = METRICS[metric].unit == "share"
    return dict(sorted(found.items(), key=lambda item: item[1].mean, reverse=is_share))


def best(panel: Panel, metric: str, column: str) -> list[str]:
    """Return the first row of a column and the rows that cannot be told apart from it; never a reference.

    A column with fewer than two rows, or with shares of one seed alone, has no best row.
    """
    found = figures_at(panel, metric, column)
    has_errors = METRICS[metric].unit != "share" or any(f.error is not None for f in found.values())
    if len(found) < 2 or not has_errors:
        return []
    first, *others = found
    return [first, *(row for row in others if not figures.order(METRICS[metric], found[first], found[row]))]


def who_is_first(panel: Panel) -> list[str]:
    """Return a sentence for every column: its first row by the first metric, and the paper's first row."""
    metric = panel.metrics[0]
    sentences = []
    for column in panel.columns:
        found = figures_at(panel, metric, column.title)
        if len(found) < 2:
            continue
        sentence = f"{column.title}: {_first(METRICS[metric], best(panel, metric, column.title), found)}"
        sentences.append(sentence + _first_in_paper(panel, metric, column.title))
    return sentences


def _first(metric: Metric, leaders: list[str], found: dict[str, Figure]) -> str:
    first, second = list(found)[:2]
    one, other = found[first], found[second]
    if not leaders:
        return f"{first} has the highest {metric.title}; with one seed the rows cannot be told apart."
    if len(leaders) > 1:
        return f"{listed(leaders)} cannot be told apart."
    if metric.unit != "share":
        return f"{first} is first; {second} takes {other.mean / max(one.mean, 1e-300):.2g} times as much."
    ahead = f"{first} is first, {figures.signed(one.mean - other.mean).lstrip('+')} points ahead of {second}"
    return f"{ahead}, {figures.errors_apart(one, other) or 0:.1f} standard errors."


def _first_in_paper(panel: Panel, metric: str, column: str) -> str:
    numbers = {
        row.title: cell.paper[metric]
        for row in panel.rows
        if not row.reference and (cell := panel.cell(row.title, column)) and metric in cell.paper
    }
    if len(numbers) < 2:
        return ""
    leaders = [
        row
        for row, number in numbers.items()
        if all(figures.paper_order(METRICS[metric], number, other) >= 0 for other in numbers.values())
    ]
    are = "is first" if len(leaders) == 1 else "are equal and first"
    return f" In the paper {listed(leaders)} {are} of {len(numbers)} rows."


def claims(panel: Panel) -> list[Claim]:
    """Return which orders of the paper are found again: of rows in one column, and of columns in one row.

    Columns are compared only where they vary n, by metrics of samples of five. EM and EW fall as n grows, for
    any method. Data sets differ in difficulty, for any method. Such orders would say nothing of the methods.
    """
    found: dict[tuple[str, str], list[tuple[str, ...]]] = {}
    for metric in panel.metrics:
        pairs = list(_pairs_in_columns(panel))
        if panel.axis.is_size and METRICS[metric].sample == "five":
            pairs += _pairs_in_rows(panel)
        for place, one, other in pairs:
            if judged := _judged(metric, one, other):
                text, verdict = judged
                places = found.setdefault((text, metric), [()] * len(VERDICTS))
                places[verdict] = (*places[verdict], place)
    return [Claim(text, metric, tuple(places)) for (text, metric), places in found.items()]


# The title that two cells share, and each cell with the title that it does not share.
Pair = tuple[str, tuple[Cell, str], tuple[Cell, str]]


def _pairs_in_columns(panel: Panel) -> Iterator[Pair]:
    for column in panel.columns:
        cells = [cell for cell in _compared(panel) if cell.column == column.title]
        for one, other in combinations(cells, 2):
            yield column.title, (one, one.row), (other, other.row)


def _pairs_in_rows(panel: Panel) -> Iterator[Pair]:
    for row in panel.rows:
        cells = [cell for cell in _compared(panel) if cell.row == row.title]
        for one, other in combinations(cells, 2):
            yield row.title, (one, one.column), (other, other.column)


def _compared(panel: Panel) -> list[Cell]:
    references = {row.title for row in panel.rows if row.reference}
    return [cell for cell in panel.cells if cell.row not in references]


def _judged(metric: str, one: tuple[Cell, str], other: tuple[Cell, str]) -> tuple[str, int] | None:
    """Return the paper's order of two cells in words, and which of VERDICTS our figures give.

    None: a figure is missing, or the cells are equal in the paper.
    """
    (cell, name), (other_cell, other_name) = one, other
    ours = figures.figure_of(cell, metric), figures.figure_of(other_cell, metric)
    numbers = cell.paper.get(metric), other_cell.paper.get(metric)
    if not (ours[0] and ours[1] and numbers[0] and numbers[1]):
        return None
    in_paper = figures.paper_order(METRICS[metric], numbers[0], numbers[1])
    if not in_paper:
        return None
    ahead, behind = (name, other_name) if in_paper > 0 else (other_name, name)
    return f"{ahead} before {behind}", 1 - in_paper * figures.order(METRICS[metric], ours[0], ours[1])


def listed(names: list[str]) -> str:
    """Return "a", "a and b", or "a, b and c"; names with commas are separated by semicolons.

    >>> listed(["Bitonic", "Odd-Even, λ = 0", "LapSum"])
    'Bitonic; Odd-Even, λ = 0; and LapSum'
    """
    has_commas = len(names) > 1 and any("," in name for name in names)
    comma, conjunction = ("; ", "; and ") if has_commas else (", ", " and ")
    return conjunction.join(filter(None, (comma.join(names[:-1]), names[-1])))
