"""`python -m benchmarks.windows`: windows with gaps and missing values beside whole ones, and peers.

Writes results/windows.md. The calls of a line take turns, on one thread.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np

import nsc.numpy
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "windows.md"
PIXELS, LENGTH, ROUNDS = 1024, 500_000, 15


@dataclass(frozen=True)
class Line:
    """Two calls of the same work.

    Attributes:
        what: in words.
        ours: the call that is measured.
        other: the call that it is compared with.
    """

    what: str
    ours: str
    other: str


LINES = (
    *(
        Line(
            f"{n} × {n}, {share} of the pixels NaN, ignored",
            f'median({name}, {n}, nan="ignore")',
            f"median(x, {n})",
        )
        for n in (3, 5, 7)
        for share, name in (("none", "x"), ("1 %", "x1"), ("5 %", "x5"), ("30 %", "x30"))
    ),
    Line("5 × 5, cut at the border", 'median(x, 5, "shrink")', "median(x, 5)"),
    Line("5 × 5, a tenth of the pixels masked", "median(x, 5, mask=mask)", "median(x, 5)"),
    *(
        Line(f"a disk of radius {r}", f"median(x, footprint=disk({r}))", f"median(x, {2 * r + 1})")
        for r in (2, 3, 4)
    ),
    *(
        Line(f"moving median of {n}, {share} NaN", f"moving({name}, {n})", f"bn.move_median({name}, {n}, 1)")
        for n in (5, 25, 101)
        for share, name in (("none", "series"), ("1 %", "series1"))
    ),
    Line("15 × 15 of float32, OpenCV on uint8", "median(x, 15)", "cv2.medianBlur(grey, 15)"),
)


def names(pixels: int, length: int) -> dict[str, Any]:
    """Return the names that lines have."""
    random = np.random.default_rng(0)
    x = random.standard_normal((pixels, pixels), dtype=np.float32)
    series = random.standard_normal(length)

    def holed(values: Any, share: float) -> Any:
        return np.where(random.random(values.shape) < share, values.dtype.type(np.nan), values)

    def disk(radius: int) -> Any:
        steps = np.arange(-radius, radius + 1)
        return steps[:, None] ** 2 + steps**2 <= radius**2

    found = {f"x{share}": holed(x, share / 100) for share in (1, 5, 30)}
    for module, name in (("bottleneck", "bn"), ("cv2", "cv2")):
        found[name] = importlib.import_module(module)
    return found | {
        "x": x,
        "grey": (x * 40 + 128).clip(0, 255).astype(np.uint8),
        "mask": random.random(x.shape) < 0.1,
        "series": series,
        "series1": holed(series, 0.01),
        "disk": disk,
        "median": nsc.numpy.median_filter,
        "moving": lambda x, n: nsc.numpy.rolling(x, n, min_periods=1).median(),
    }


def _least(calls: list[Callable[[], Any]]) -> list[float]:
    """Return the least seconds of each call, in turns."""
    seconds = [np.inf] * len(calls)
    for _ in range(ROUNDS):
        for number, call in enumerate(calls):
            begin = time.perf_counter()
            call()
            seconds[number] = min(seconds[number], time.perf_counter() - begin)
    return seconds


def _rows(only: str) -> Iterator[str]:
    named = names(PIXELS, LENGTH)
    named["cv2"].setNumThreads(1)
    for line in (line for line in LINES if only in line.what):
        codes = [compile(text, "line", "eval") for text in (line.ours, line.other)]
        ours, other = _least([lambda code=code: eval(code, named) for code in codes])  # type: ignore[misc]
        count = named["series"].size if "series" in line.ours else named["x"].size
        times = f"{ours / count * 1e9:.2f} | {other / count * 1e9:.2f}"
        yield f"| {line.what} | `{line.ours}` | `{line.other}` | {times} | {ours / other:.2f} |"


@click.command()
@click.option("--only", default="", metavar="TEXT", help="Lines that have TEXT; nothing is written.")
def main(only: str) -> None:
    """Measure all lines and write the table."""
    nsc.numpy.set_num_threads(1)
    with nsc.numpy.prepare():
        rows = [*_rows(only)]
    head = "| windows | call | beside | ns | its ns | time |\n|---|---|---|---:|---:|---:|"
    table = "\n".join([head, *rows])
    click.echo(table)
    if only:
        return
    text = (
        f"`python -m benchmarks.windows` on {machine()}. Medians of {PIXELS} × {PIXELS} pixels of float32 "
        f"and of {LENGTH:,} values of float64, on one thread. Nanoseconds for a value, the least of {ROUNDS} "
        "rounds in which both calls take turns, with kernels that are built already; the last column divides "
        "the two."
    )
    write_whole(RESULTS, f"# Windows\n\n{paragraph(text)}\n\n{table}\n")
    click.echo(f"wrote {RESULTS}")


if __name__ == "__main__":
    main()
