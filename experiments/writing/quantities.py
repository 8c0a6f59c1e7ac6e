"""What is measured, and how it is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """What a figure measures, and how it is shown.

    Attributes:
        title: for tables.
        text: what it is, a phrase.
        unit: "share", a number in [0, 1] that is shown in % and is best when large; "seconds" or "bytes",
            best when small.
        sample: the items of a measured sample, "n" or "five"; "" if the metric is not one of samples. Only a
            metric of samples of five measures the same at every n.
    """

    title: str
    text: str
    unit: str
    sample: Literal["n", "five", ""] = ""


METRICS = {
    "em": Metric("EM", "samples of n with all ranks right, %", "share", "n"),
    "ew": Metric("EW", "right ranks in samples of n, %", "share", "n"),
    "em5": Metric("EM5", "samples of five with all ranks right, %", "share", "five"),
    "top1": Metric("top-1", "images whose class scores highest, %", "share"),
    "top5": Metric("top-5", "images whose class is among the five highest scores, %", "share"),
    "seconds": Metric("Time", "forward and backward, a sample", "seconds"),
    "bytes": Metric("Memory", "peak above the inputs, a sample", "bytes"),
}
