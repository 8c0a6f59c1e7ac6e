"""A finished table as a picture: every metric over the columns, with the paper's numbers."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Picture
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter
from matplotlib.typing import LineStyleType

from experiments.writing import figures
from experiments.writing.quantities import METRICS, Metric
from experiments.writing.records import Column, Finished, Panel, Row

# Colours that can be told apart by the colour-blind, on light and on dark: without the yellow and the black.
# Source: Okabe and Ito, Color Universal Design, 2008.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#9467BD")
LINES: tuple[LineStyleType, ...] = ("-", "--", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
REFERENCE = "#8C8C8C"

# Of all pictures of the project: they have no ground of their own, and are read in light and in dark.
INKS = Path(__file__).parents[2] / "docs" / "pictures" / "inks.mplstyle"
WIDTH, HEIGHT = 4.4, 3.7  # inches, of one pair of axes
MOST_IN_ROW = 4
# Inches of a letter in the legend, and of what stands beside a title there.
LETTER, BESIDE_TITLE = 0.07, 0.6
# Rows stand beside each other within this share of the step between two columns, so that bars do not overlap.
SPREAD = 0.44


@dataclass(frozen=True)
class Style:
    """How a row is drawn, in every panel the same."""

    color: str
    line: LineStyleType
    marker: str


def draw(finished: Finished) -> bytes:
    """Return the picture as PNG: the paper's numbers beside ours, or below them if they lie far apart."""
    file = io.BytesIO()
    with matplotlib.style.context(INKS):
        # Without a version in it, the same table gives the same bytes.
        picture_of(finished).savefig(file, format="png", dpi=130, metadata={"Software": None})
    return file.getvalue()


def picture_of(finished: Finished) -> Picture:
    """Return what `draw` draws, in the inks of the caller."""
    rows = list(dict.fromkeys(row for panel in finished.panels for row in panel.rows))
    styles = _styles(rows)
    across = _across(finished)
    contents = (("ours",), ("paper",)) if _are_far_apart(finished) else (("ours", "paper"),)
    parts = [(content, _metrics(finished, content)) for content in contents]
    downs = [-(-len(metrics) // across) for _, metrics in parts]
    in_line = _in_line(rows, WIDTH * across)
    lines = -(-len(rows) // in_line)
    picture = Picture(
        figsize=(WIDTH * across, HEIGHT * sum(downs) + 0.25 * lines + 0.6), layout="constrained"
    )
    grid = list(picture.subplots(sum(downs), across, squeeze=False).ravel())
    for (content, metrics), down in zip(parts, downs, strict=True):
        part, grid = grid[: across * down], grid[across * down :]
        for axes, (panel, metric) in zip(part, metrics, strict=False):
            _draw_metric(axes, panel, metric, styles, content)
        for axes in part[len(metrics) :]:
            axes.set_axis_off()
    picture.suptitle(finished.heading, fontsize="large")
    has_lines = any(panel.axis.scale != "names" for panel in finished.panels)
    picture.legend(
        handles=[_handle(title, style, has_lines) for title, style in styles.items()],
        title=_caption(finished),
        loc="outside lower center",
        ncols=-(-len(rows) // lines),
        frameon=False,
    )
    return picture


def _in_line(rows: list[Row], width: float) -> int:
    """Return how many titles of rows a line of the legend holds, in a picture of a width in inches."""
    longest = max(len(row.title) for row in rows)
    return max(1, int(width / (LETTER * longest + BESIDE_TITLE)))


def _metrics(finished: Finished, content: tuple[str, ...]) -> list[tuple[Panel, str]]:
    """Return what to draw: each metric of each panel, or, of the paper's numbers alone, those that it has."""
    return [
        (panel, metric)
        for panel in finished.panels
        for metric in panel.metrics
        if "ours" in content or any(metric in cell.paper for cell in panel.cells)
    ]


def _across(finished: Finished) -> int:
    """Return how many axes stand side by side: one for each metric of a panel, or else one for each panel."""
    most = max(len(panel.metrics) for panel in finished.panels)
    return min(most if most > 1 else len(finished.panels), MOST_IN_ROW)


def _are_far_apart(finished: Finished) -> bool:
    """Return whether the shares of a panel's first metric all lie on one side of the paper's, with a gap.

    On common axes the differences between methods would then be too small to see.
    """
    for panel in finished.panels:
        metric = panel.metrics[0]
        ours = [100 * value for cell in panel.cells for value in cell.values(metric)]
        paper = [cell.paper[metric].value for cell in panel.cells if metric in cell.paper]
        if METRICS[metric].unit == "share" and ours and paper:
            gap = max(min(paper) - max(ours), min(ours) - max(paper))
            if gap > max(ours) - min(ours):
                return True
    return False


def _styles(rows: list[Row]) -> dict[str, Style]:
    styles: dict[str, Style] = {}
    for row in rows:
        i = sum(style.color != REFERENCE for style in styles.values())
        color = REFERENCE if row.reference else COLORS[i % len(COLORS)]
        line = LINES[2] if row.reference else LINES[i // len(COLORS) % len(LINES)]
        styles[row.title] = Style(color, line, MARKERS[len(styles) % len(MARKERS)])
    return styles


def _draw_metric(
    axes: Axes, panel: Panel, key: str, styles: Mapping[str, Style], content: tuple[str, ...]
) -> None:
    metric = METRICS[key]
    for row in panel.rows:
        if "ours" in content:
            _draw_ours(axes, panel, row, key, styles[row.title])
        if "paper" in content:
            _draw_paper(axes, panel, row, key, styles[row.title])
    _finish(axes, panel, metric)
    names = (panel.title, metric.title, "the paper" if content == ("paper",) else "")
    axes.set_title(", ".join(filter(None, names)), fontsize="medium")


def _draw_ours(axes: Axes, panel: Panel, row: Row, key: str, style: Style) -> None:
    scale = 100 if METRICS[key].unit == "share" else 1
    points = [
        (_place(panel, row, column), scale * figure.mean, scale * (figure.error or 0))
        for column in panel.columns
        if (cell := panel.cell(row.title, column.title)) and (figure := figures.figure_of(cell, key))
    ]
    errors = [error for _, _, error in points]
    axes.errorbar(
        [at for at, _, _ in points],
        [mean for _, mean, _ in points],
        yerr=errors if any(errors) else None,
        color=style.color,
        linestyle="none" if panel.axis.scale == "names" else style.line,
        linewidth=1.3,
        marker=style.marker,
        markersize=4.5,
        capsize=2.5,
    )


def _draw_paper(axes: Axes, panel: Panel, row: Row, key: str, style: Style) -> None:
    points = [
        (_place(panel, row, column), cell.paper[key].value)
        for column in panel.columns
        if (cell := panel.cell(row.title, column.title)) and key in cell.paper
    ]
    axes.plot(
        [at for at, _ in points],
        [value for _, value in points],
        linestyle="none",
        marker=style.marker,
        markersize=6,
        markerfacecolor="none",
        markeredgecolor=style.color,
    )


def _place(panel: Panel, row: Row, column: Column) -> float:
    """Return a cell's place on the axis; on an axis of even steps rows stand beside each other."""
    if panel.axis.scale in {"linear", "log"} and column.at is not None:
        return column.at
    count = len(panel.rows)
    aside = (panel.rows.index(row) - (count - 1) / 2) / max(count, 4)
    return panel.columns.index(column) + SPREAD * aside


def _finish(axes: Axes, panel: Panel, metric: Metric) -> None:
    axes.set_xlabel(panel.axis.title)
    axes.grid(alpha=0.25)
    if panel.axis.scale == "log":
        axes.set_xscale("log")
    if panel.axis.scale == "names":
        lines = [column.title.replace(", ", ",\n").split("\n") for column in panel.columns]
        names = ["\n".join(textwrap.fill(line, 14) for line in each) for each in lines]
        axes.set_xticks(range(len(names)), names)
    else:
        at_steps = panel.axis.scale == "ordinal"
        ticks = [float(i) if at_steps else column.at or 0.0 for i, column in enumerate(panel.columns)]
        axes.set_xticks(ticks, [f"{column.at:g}" for column in panel.columns])
    if panel.axis.scale in {"ordinal", "names"}:
        axes.set_xlim(-0.5, len(panel.columns) - 0.5)
    if metric.unit == "share":
        axes.set_ylabel(f"{metric.title}, %")
        low, high = axes.get_ylim()
        axes.set_ylim(max(low, -2), min(high, 102))
    else:
        axes.set_yscale("log")
        axes.set_ylabel(f"{metric.title.lower()} a sample")
        axes.yaxis.set_major_formatter(EngFormatter(unit="s" if metric.unit == "seconds" else "B"))
    axes.minorticks_off()


def _handle(title: str, style: Style, has_lines: bool) -> Line2D:
    line: LineStyleType = style.line if has_lines else "none"
    return Line2D([], [], color=style.color, linestyle=line, marker=style.marker, markersize=5, label=title)


def _caption(finished: Finished) -> str:
    cells = [cell for panel in finished.panels for cell in panel.cells]
    parts = (
        "hollow: the paper's numbers" if any(cell.paper for cell in cells) else "",
        "bars: the standard error over seeds" if any(len(cell.outcomes) > 1 for cell in cells) else "",
    )
    return "; ".join(filter(None, parts))
