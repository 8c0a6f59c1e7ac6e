"""What a cell is made of: metrics, outcomes of runs, and the paper's numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from experiments.run import Result, Run


@dataclass(frozen=True)
class Metric:
    """What a figure measures, and how it is shown.

    Attributes:
        title: for tables.
        text: what it is, a phrase.
        unit: "share", a number in [0, 1] that is shown in % and is best when large; "seconds" or "bytes",
            best when small.
    """

    title: str
    text: str
    unit: str


METRICS = {
    "em": Metric("EM", "samples of n with all ranks right, %", "share"),
    "ew": Metric("EW", "right ranks in samples of n, %", "share"),
    "em5": Metric("EM5", "samples of five with all ranks right, %", "share"),
    "top1": Metric("top-1", "images whose class scores highest, %", "share"),
    "top5": Metric("top-5", "images whose class is among the five highest scores, %", "share"),
    "seconds": Metric("Time", "forward and backward, a sample", "seconds"),
    "bytes": Metric("Memory", "peak above the inputs, a sample", "bytes"),
}


@dataclass(frozen=True)
class PaperNumber:
    """A number that the paper prints.

    Attributes:
        value: in % for shares, in seconds, or in bytes.
        deviation: its standard deviation in the same unit; None if the paper has none.
    """

    value: float
    deviation: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What one training, or one measurement without training, gave.

    Attributes:
        run: the training; None for a measurement without training.
        failure: why there are no figures; "" if there are.
        test: metrics on the test part: shares in [0, 1], seconds, or bytes.
        training: the same metrics on the training part.
        seconds: of training; 0 for a measurement.
        machine: what ran it: processor, threads, versions.
    """

    run: Run | None
    failure: str
    test: dict[str, float]
    training: dict[str, float]
    seconds: float
    machine: str

    def __post_init__(self) -> None:
        """Check that there are either figures or a failure."""
        require(bool(self.failure) != bool(self.test), "an outcome has either metrics or a failure")
        for metrics in (self.test, self.training):
            require_known("metric", metrics, METRICS)
            for key, value in metrics.items():
                require(math.isfinite(value) and value >= 0, f"{key} must be finite and >= 0, got {value}")
                most = 1 if METRICS[key].unit == "share" else math.inf
                require(value <= most, f"{key} is a share in [0, 1], got {value}")

    @classmethod
    def of(cls, result: Result) -> Outcome:
        """Return what a table needs of a result."""
        return cls(
            run=result.run,
            failure=result.failure,
            test=result.test,
            training=result.training,
            seconds=result.seconds,
            machine=result.machine,
        )


def require(is_right: bool, message: str) -> None:
    """Raise ValueError with the message unless it is right."""
    if not is_right:
        raise ValueError(message)


def require_known(what: str, asked: Iterable[str], known: Iterable[str]) -> None:
    """Raise ValueError if a name is not among those known."""
    known = list(known)
    for name in asked:
        require(name in known, f"unknown {what} {name!r}; known are {', '.join(known)}")
