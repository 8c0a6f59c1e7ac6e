"""Conclusions from the figures alone: who is first, and which orders of the paper hold here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from experiments.writing import figures
from experiments.writing.figures import Figure
from experiments.writing.quantities import METRICS, Metric
from experiments.writing.records import Measured, Panel


@dataclass(frozen=True)
class Orders:
    """How many pairs of cells stand in the paper's order here.

    Attributes:
        metric: a key of METRICS.
        what: which pairs, a phrase.
        same: pairs in the paper's order, told apart.
        unclear: pairs that cannot be told apart here.
        opposite: pairs in the opposite order, told apart: their place to what is before what here.
    """

    metric: str
    what: str
    same: int
    unclear: int
    opposite: dict[str, tuple[str, ...]]

    @property
    def pairs(self) -> int:
        """All pairs that have both numbers, different in the paper."""
        return self.same + self.unclear + self.reversed

    @property
    def reversed(self) -> int:
        """The pairs in the opposite order, told apart."""
        return sum(map(len, self.opposite.values()))


def figures_at(panel: Panel, metric: str, column: str) -> dict[str, Figure]:
    """Return the figures of a column by row, best first; references are left out."""
    found = {}
    for row in panel.rows:
        cell = panel.cell(row.title, column)
        figure = figures.figure(cell.values(metric)) if cell and not row.reference else None
        if figure:
            found[row.title] = figure
    is_share = METRICS[metric].unit == "share"
    return dict(sorted(found.items(), key=lambda item: item[1].mean, reverse=is_share))


def best(panel: Panel, metric: str, column: str) -> list[str]:
    """Return the first row of a column, and after it those that cannot be told from it.

    No row is best where there is nothing to compare with, or no error to compare by: then there are none.
    """
    found = figures_at(panel, metric, column)
    has_errors = METRICS[metric].unit != "share" or any(f.error is not None for f in found.values())
    if len(found) < 2 or not has_errors:
        return []
    first, *others = found
    return [first, *(row for row in others if not figures.order(METRICS[metric], found[first], found[row]))]


def who_is_first(panel: Panel) -> list[str]:
    """Return a sentence for every column: who is first in the first metric, here and in the paper."""
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
        return f"{first} has the highest {metric.title}; one seed gives no standard error."
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
    return f" In the paper {listed(leaders)} {are}, of {len(numbers)}."


def orders(panel: Panel) -> list[Orders]:
    """Return how the paper's orders hold: of rows in one column, and of columns in one row."""
    found = []
    for metric in panel.metrics:
        kinds = (
            ("two rows of one column", list(_pairs_in_columns(panel))),
            ("two columns of one row", list(_pairs_in_rows(panel))),
        )
        found += [_orders(metric, what, pairs) for what, pairs in kinds]
    return [each for each in found if each.pairs]


# A place that two cells share, the cells, and their names there.
Pair = tuple[str, tuple[Measured, str], tuple[Measured, str]]


def _pairs_in_columns(panel: Panel) -> Iterator[Pair]:
    compared = {row.title for row in panel.rows if not row.reference}
    for column in panel.columns:
        cells = [c for c in panel.cells if c.column == column.title and c.row in compared]
        for one, other in combinations(cells, 2):
            yield column.title, (one, one.row), (other, other.row)


def _pairs_in_rows(panel: Panel) -> Iterator[Pair]:
    for row in panel.rows:
        cells = [c for c in panel.cells if c.row == row.title]
        for one, other in combinations(cells, 2):
            yield row.title, (one, one.column), (other, other.column)


def _orders(metric: str, what: str, pairs: list[Pair]) -> Orders:
    same, unclear = 0, 0
    opposite: dict[str, tuple[str, ...]] = {}
    for place, (one, name), (other, other_name) in pairs:
        ours = figures.figure(one.values(metric)), figures.figure(other.values(metric))
        numbers = one.paper.get(metric), other.paper.get(metric)
        if not (ours[0] and ours[1] and numbers[0] and numbers[1]):
            continue
        in_paper = figures.paper_order(METRICS[metric], numbers[0], numbers[1])
        here = figures.order(METRICS[metric], ours[0], ours[1])
        if not in_paper:
            continue
        same += here == in_paper
        unclear += here == 0
        if here == -in_paper:
            ahead, behind = (name, other_name) if here > 0 else (other_name, name)
            opposite[place] = (*opposite.get(place, ()), f"{ahead} before {behind}")
    return Orders(metric, what, same, unclear, opposite)


def listed(names: list[str]) -> str:
    """Return "a", "a and b", or "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
