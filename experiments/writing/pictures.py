"""A finished table as a picture: every metric over the columns, with the paper's numbers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from matplotlib.typing import LineStyleType

from experiments.writing import figures
from experiments.writing.records import METRICS, Column, Finished, Metric, Panel, Row

# Colours that can be told apart by the colour-blind, without the yellow, which is too light for lines.
# Source: Okabe and Ito, Color Universal Design, 2008.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
LINES: tuple[LineStyleType, ...] = ("-", "--", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
REFERENCE = "#8C8C8C"

WIDTH, HEIGHT = 4.4, 3.7  # inches, of one pair of axes
MOST_IN_ROW = 4
# Rows stand beside each other within this share of the step between two columns, so that bars do not overlap.
SPREAD = 0.44


@dataclass(frozen=True)
class Style:
    """How a row is drawn, in every panel the same."""

    color: str
    line: LineStyleType
    marker: str


def draw(finished: Finished) -> bytes:
    """Return the picture as PNG."""
    drawn = [(panel, metric) for panel in finished.panels for metric in panel.metrics]
    across = _across(finished)
    down = -(-len(drawn) // across)
    rows = list(dict.fromkeys(row for panel in finished.panels for row in panel.rows))
    styles = _styles(rows)
    legend_lines = -(-(len(rows) + 1) // (2 * across))
    picture = Picture(
        figsize=(WIDTH * across, HEIGHT * down + 0.25 * legend_lines + 0.4), layout="constrained"
    )
    grid = picture.subplots(down, across, squeeze=False).ravel()
    for axes, (panel, metric) in zip(grid, drawn, strict=False):
        _draw_metric(axes, panel, metric, styles)
    for axes in grid[len(drawn) :]:
        axes.set_axis_off()
    picture.suptitle(f"{finished.title}: {finished.profile}", fontsize="large")
    picture.legend(
        handles=_legend(finished, styles), loc="outside lower center", ncols=2 * across, frameon=False
    )
    file = io.BytesIO()
    # Without a version in it, the same table gives the same bytes.
    picture.savefig(file, format="png", dpi=130, metadata={"Software": None})
    return file.getvalue()


def _across(finished: Finished) -> int:
    """Return how many axes stand in a row: the metrics of a panel, or else panels."""
    most = max(len(panel.metrics) for panel in finished.panels)
    return min(most if most > 1 else len(finished.panels), MOST_IN_ROW)


def _styles(rows: list[Row]) -> dict[str, Style]:
    styles: dict[str, Style] = {}
    for row in rows:
        i = sum(style.color != REFERENCE for style in styles.values())
        color = REFERENCE if row.reference else COLORS[i % len(COLORS)]
        line = LINES[2] if row.reference else LINES[i // len(COLORS) % len(LINES)]
        styles[row.title] = Style(color, line, MARKERS[len(styles) % len(MARKERS)])
    return styles


def _draw_metric(axes: Axes, panel: Panel, key: str, styles: Mapping[str, Style]) -> None:
    metric = METRICS[key]
    scale = 100 if metric.unit == "share" else 1
    for row in panel.rows:
        style = styles[row.title]
        places, means, errors, paper = [], [], [], []
        for column in panel.columns:
            cell = panel.cell(row.title, column.title)
            at = _place(panel, row, column)
            figure = figures.figure(cell.values(key)) if cell else None
            if figure:
                places.append(at)
                means.append(scale * figure.mean)
                errors.append(scale * (figure.error or 0))
            if cell and key in cell.paper:
                paper.append((at, cell.paper[key].value))
        axes.errorbar(
            places,
            means,
            yerr=errors if any(errors) else None,
            color=style.color,
            linestyle="none" if panel.axis.scale == "names" else style.line,
            linewidth=1.4,
            marker=style.marker,
            markersize=5,
            capsize=2.5,
        )
        axes.plot(
            [at for at, _ in paper],
            [value for _, value in paper],
            linestyle="none",
            marker=style.marker,
            markersize=6,
            markerfacecolor="white",
            markeredgecolor=style.color,
        )
    _finish(axes, panel, metric)


def _place(panel: Panel, row: Row, column: Column) -> float:
    """Return a cell's place on the axis; on an axis of even steps rows stand beside each other."""
    if panel.axis.scale in {"linear", "log"} and column.at is not None:
        return column.at
    count = len(panel.rows)
    aside = (panel.rows.index(row) - (count - 1) / 2) / max(count, 4)
    return panel.columns.index(column) + SPREAD * aside


def _finish(axes: Axes, panel: Panel, metric: Metric) -> None:
    axes.set_title(", ".join(filter(None, (panel.title, metric.title))), fontsize="medium")
    axes.set_xlabel(panel.axis.title)
    axes.grid(alpha=0.25)
    if panel.axis.scale == "log":
        axes.set_xscale("log")
    if panel.axis.scale == "names":
        names = [textwrap.fill(column.title, 14) for column in panel.columns]
        axes.set_xticks(range(len(names)), names)
    else:
        at_steps = panel.axis.scale == "ordinal"
        ticks = [float(i) if at_steps else column.at or 0.0 for i, column in enumerate(panel.columns)]
        axes.set_xticks(ticks, [f"{column.at:g}" for column in panel.columns])
    axes.minorticks_off()
    if metric.unit == "share":
        axes.set_ylabel(f"{metric.title}, %")
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -2), min(high, 102))
    else:
        axes.set_yscale("log")
        axes.set_ylabel(f"{metric.title} a sample")
        axes.yaxis.set_major_formatter(EngFormatter(unit="s" if metric.unit == "seconds" else "B"))


def _legend(finished: Finished, styles: Mapping[str, Style]) -> list[Line2D]:
    handles = [
        Line2D([], [], color=s.color, linestyle=s.line, marker=s.marker, markersize=5, label=title)
        for title, s in styles.items()
    ]
    cells = [cell for panel in finished.panels for cell in panel.cells]
    if any(cell.paper for cell in cells):
        label = "hollow: the paper's numbers"
        handles.append(
            Line2D(
                [], [], color="#404040", linestyle="none", marker="o", markerfacecolor="white", label=label
            )
        )
    if any(len(cell.outcomes) > 1 for cell in cells):
        handles.append(Line2D([], [], linestyle="none", label="bars: standard error over seeds"))
    return handles
