"""The figures of finished tables as CSV, for programs that read tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence

from experiments.writing import figures
from experiments.writing.quantities import METRICS
from experiments.writing.records import Finished

HEADS = (
    *("table", "panel", "metric", "unit", "row", "column"),
    *("seeds", "mean", "deviation", "error", "paper", "paper deviation"),
)


def to_csv(tables: Sequence[Finished]) -> str:
    """Return a line for each figure: shares and their errors in %, times in seconds, memory in bytes."""
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(HEADS)
    for finished in tables:
        lines.writerows(_lines(finished))
    return text.getvalue()


def _lines(finished: Finished) -> Iterator[tuple[object, ...]]:
    for panel in finished.panels:
        for key in panel.metrics:
            metric = METRICS[key]
            unit, scale = ("%", 100) if metric.unit == "share" else (metric.unit, 1)
            for cell in panel.cells:
                figure, paper = figures.figure_of(cell, key), cell.paper.get(key)
                if figure is None:
                    continue
                ours = (figure.mean, figure.deviation, figure.error)
                papers = (paper.value, paper.deviation) if paper else (None, None)
                yield (
                    *(finished.stem, panel.title, metric.title, unit, cell.row, cell.column, figure.count),
                    *("" if value is None else f"{scale * value:.6g}" for value in ours),
                    *("" if value is None else f"{value:.6g}" for value in papers),
                )
