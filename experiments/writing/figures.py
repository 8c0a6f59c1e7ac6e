"""Figures: mean, deviation and standard errors, whether two can be told apart, and their text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace

from experiments.metrics import FIVE, error_of_mean, error_of_share
from experiments.run import Run
from experiments.writing.quantities import METRICS, Metric
from experiments.writing.records import Cell, PaperNumber

# The difference of two means tells them apart if it exceeds this many of its standard errors. By Student's t
# that happens to two equal methods in 8 % of comparisons with five seeds each, in 12 % with three.
LEAST_ERRORS = 2.0
# Times and memory are measured once: they are told apart if they differ by this share of the smaller.
LEAST_DIFFERENCE = 0.1

_STEPS = {
    "seconds": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "bytes": ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")),
}


@dataclass(frozen=True)
class Figure:
    """The values of a cell in one number.

    Attributes:
        mean: of the values.
        deviation: their standard deviation, with count − 1; None for one value.
        error: the standard error of their mean; None for one value.
        count: the number of values.
        sampling_error: see `sampling_error`; None for several values, whose error says more.
    """

    mean: float
    deviation: float | None
    error: float | None
    count: int
    sampling_error: float | None = None


def figure(values: Sequence[float]) -> Figure | None:
    """Return mean, deviation and standard error of the values; None if there are no values.

    >>> figure([0.5, 0.7])
    Figure(mean=0.6, deviation=0.1414213562373..., error=0.0999999999999..., count=2, sampling_error=None)
    """
    if not values:
        return None
    if len(values) == 1:
        return Figure(values[0], None, None, 1)
    return Figure(statistics.fmean(values), statistics.stdev(values), error_of_mean(values), len(values))


def figure_of(cell: Cell, key: str) -> Figure | None:
    """Return the figure of a cell over its seeds, by a key of METRICS; None if no seed has that metric."""
    found = figure(cell.values(key))
    if found is None or found.count > 1:
        return found
    run = next(outcome.run for outcome in cell.outcomes if key in outcome.test)
    return replace(found, sampling_error=sampling_error(found.mean, METRICS[key], run))


def sampling_error(share: float, metric: Metric, run: Run | None) -> float | None:
    """Return the standard error √(p (1 − p) / m) of the share p of the m whole samples that a run measured.

    It contains neither the spread over seeds nor that over other test images. For EW it is an upper bound:
    the ranks of one sample depend on each other, so m counts samples and not ranks.

    Returns:
        The error, a share. None for times and memory; for shares of images, because a run does not say how
        many images the test part has; for the shares 0 and 1, whose error would be 0 by the formula; and for
        a run that asks for less than one sample.
    """
    if run is None or not metric.sample or not 0 < share < 1:
        return None
    size = FIVE if metric.sample == "five" else run.n
    return error_of_share(share, run.test // size) if 0 < size <= run.test else None


def errors_apart(one: Figure, other: Figure) -> float | None:
    """Return one mean minus the other, in standard errors of the difference; None if an error is unknown."""
    if one.error is None or other.error is None:
        return None
    difference, error = one.mean - other.mean, math.hypot(one.error, other.error)
    if error == 0:
        return math.copysign(math.inf, difference) if difference else 0.0
    return difference / error


def order(metric: Metric, one: Figure, other: Figure) -> int:
    """Return 1 if one is better, −1 if the other is, 0 if they cannot be told apart.

    Shares are told apart by the standard error, so never with one seed.
    """
    if metric.unit == "share":
        distance = errors_apart(one, other)
        return 0 if distance is None or abs(distance) <= LEAST_ERRORS else _sign(distance)
    least = LEAST_DIFFERENCE * min(one.mean, other.mean)
    return 0 if abs(one.mean - other.mean) <= least else -_sign(one.mean - other.mean)


def paper_order(metric: Metric, one: PaperNumber, other: PaperNumber) -> int:
    """Return 1 if the paper's number of one is better, −1 if the other's is, 0 if they are equal."""
    sign = _sign(one.value - other.value)
    return sign if metric.unit == "share" else -sign


def shown(metric: Metric, value: float) -> str:
    """Return a value with its unit; a share is in %, without the sign, which the heading of its table has.

    >>> from experiments.writing.quantities import METRICS
    >>> shown(METRICS["em5"], 0.4361), shown(METRICS["seconds"], 3.5e-6)
    ('43.6', '3.5 µs')
    """
    if metric.unit == "share":
        return f"{100 * value:.1f}"
    steps = _STEPS[metric.unit]
    step, unit = next((s for s in steps if value >= s[0]), steps[-1])
    return f"{value / step:.{max(0, 1 - int(math.log10(max(value / step, 1))))}f} {unit}"


def shown_figure(metric: Metric, figure: Figure) -> str:
    """Return a share as "mean ± deviation (error)", of one value as "mean (error by the sample)".

    Times, memory, and shares without any error are the mean alone.
    """
    mean = shown(metric, figure.mean)
    if metric.unit != "share":
        return mean
    if figure.deviation is not None and figure.error is not None:
        return f"{mean} ± {100 * figure.deviation:.1f} ({100 * figure.error:.1f})"
    if figure.sampling_error is not None:
        return f"{mean} ({100 * figure.sampling_error:.1f} by the sample)"
    return mean


def shown_paper(metric: Metric, number: PaperNumber) -> str:
    """Return "value ± deviation", or the value alone."""
    if metric.unit != "share":
        return shown(metric, number.value)
    deviation = "" if number.deviation is None else f" ± {number.deviation:.1f}"
    return f"{number.value:.1f}{deviation}"


def shown_difference(metric: Metric, figure: Figure, number: PaperNumber) -> str:
    """Return our share minus the paper's, in points; times and memory as a multiple of the paper's."""
    if metric.unit == "share":
        return signed(figure.mean - number.value / 100)
    ratio = figure.mean / number.value
    return f"× {ratio:.2g}" if ratio < 100 else f"× {ratio:,.0f}"


def signed(share: float) -> str:
    """Return a difference of shares in points, with its sign."""
    text = f"{100 * share:+.1f}".replace("-", "−")
    return "0.0" if text in {"+0.0", "−0.0"} else text


def shown_duration(seconds: float) -> str:
    """Return a duration, such as "48 s", "12 min" or "3.4 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
