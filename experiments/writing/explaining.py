"""What the figures of a page mean, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from experiments.writing import figures
from experiments.writing.comparing import listed
from experiments.writing.quantities import METRICS
from experiments.writing.records import Finished, Panel, Tuned

_MANY_SEEDS = (
    "A share is the mean over seeds ± the standard deviation over seeds, and in brackets the standard error "
    "of the mean. Two shares are told apart if they differ by more than two standard errors of their "
    "difference. Two equal methods pass by chance in 8 % of comparisons with five seeds each, in 12 % with "
    "three."
)
_ONE_SEED = "Shares of one seed have no error over seeds and cannot be told apart."
_SAMPLING_ERROR = (
    "In brackets is then the error by the sample, √(p (1 − p) / m) for a share p of m samples; EW, whose "
    "ranks depend on each other within a sample, has at most this error."
)
_ONCE = (
    f"Times and memory are told apart if they differ by more than {figures.LEAST_DIFFERENCE:.0%}; the "
    "difference from the paper is ours as a multiple of the paper's."
)
_BOLD = "The best figure of a column is bold, and so are those that cannot be told apart from it."
BY_THE_SAMPLE = (
    "The error by the sample contains neither the spread over seeds nor that over other test images."
)


def how_to_read(tables: Sequence[Finished]) -> str:
    """Return what figures mean and when they are told apart, for what the tables have."""
    panels = [panel for finished in tables for panel in finished.panels]
    cells = [(panel, cell) for panel in panels for cell in panel.cells]
    shares = [cell for panel, cell in cells if METRICS[panel.metrics[0]].unit == "share"]
    sentences = []
    if any(len(cell.outcomes) > 1 for cell in shares):
        sentences.append(_MANY_SEEDS)
    if any(len(cell.outcomes) == 1 for cell in shares):
        sentences.append(_ONE_SEED)
    if any(has_sampling_errors(panel, metric) for panel in panels for metric in panel.metrics):
        sentences.append(_SAMPLING_ERROR)
    if len(shares) < len(cells):
        sentences.append(_ONCE)
    if any(len(cell.outcomes) > 1 for cell in shares) or len(shares) < len(cells):
        sentences.append(_BOLD)
    return " ".join(sentences)


def has_sampling_errors(panel: Panel, metric: str) -> bool:
    """Return whether a figure of the metric has an error by the sample."""
    found = [figures.figure_of(cell, metric) for cell in panel.cells]
    return any(figure.sampling_error is not None for figure in found if figure)


def at_an_edge(tuned: Sequence[Tuned]) -> str:
    """Return a sentence about temperatures that were chosen at an edge of their grid; "" if none was."""
    parts = []
    for edge in ("smallest", "largest"):
        names = [", ".join(filter(None, (each.row, each.column))) for each in tuned if each.edge == edge]
        if names:
            parts.append(f"the {edge} of its grid for {listed(names)}")
    if not parts:
        return ""
    return f"The chosen temperature is {', and '.join(parts)}: the best one may lie beyond the grid."
