"""Figures: mean, deviation and standard error, whether two can be told apart, and their text."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from experiments.writing.quantities import Metric
from experiments.writing.records import PaperNumber

# The difference of two means tells them apart if it exceeds this many of its standard errors.
LEAST_ERRORS = 1.0
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
        count: how many there are.
    """

    mean: float
    deviation: float | None
    count: int

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for one value."""
        return None if self.deviation is None else self.deviation / math.sqrt(self.count)


def figure(values: Sequence[float]) -> Figure | None:
    """Return mean and deviation of the values; None if there are none.

    >>> figure([0.5, 0.7])
    Figure(mean=0.6, deviation=0.141421356237309..., count=2)
    """
    if not values:
        return None
    deviation = statistics.stdev(values) if len(values) > 1 else None
    return Figure(statistics.fmean(values), deviation, len(values))


def errors_apart(one: Figure, other: Figure) -> float | None:
    """Return one mean less the other, in standard errors of that difference; None if an error is unknown."""
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
    """Return a value with its unit; shares in % have none, their table names it.

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
    """Return "mean ± deviation (error)"; the mean alone if there is one value, or no share."""
    mean = shown(metric, figure.mean)
    if metric.unit != "share" or figure.deviation is None or figure.error is None:
        return mean
    return f"{mean} ± {100 * figure.deviation:.1f} ({100 * figure.error:.1f})"


def shown_paper(metric: Metric, number: PaperNumber) -> str:
    """Return "value ± deviation", or the value alone."""
    if metric.unit != "share":
        return shown(metric, number.value)
    deviation = "" if number.deviation is None else f" ± {number.deviation:.1f}"
    return f"{number.value:.1f}{deviation}"


def shown_difference(metric: Metric, figure: Figure, number: PaperNumber) -> str:
    """Return ours less the paper's in points; for times and memory ours as a multiple of the paper's."""
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
