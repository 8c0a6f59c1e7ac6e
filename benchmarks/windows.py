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
    *(
        Line(f"moving median of {n}, pandas", f"moving(series, {n})", f"of_pandas(series[:50_000], {n})")
        for n in (5, 25, 101)
    ),
    *(
        Line(f"{n} × {n} of float32, scipy", f"median(x, {n})", f"ndimage.median_filter(x[:64], {n})")
        for n in (3, 5, 7, 9, 11, 15)
    ),
    *(Line(f"{n} × {n} of uint8, OpenCV", f"median(grey, {n})", f"blur(grey, {n})") for n in (3, 5, 7)),
    *(Line(f"{n} × {n} of float32, OpenCV", f"median(x, {n})", f"blur(x, {n})") for n in (3, 5)),
    *(
        Line(f"{n} × {n} of float32, OpenCV on uint8", f"median(x, {n})", f"blur(grey, {n})")
        for n in (7, 9, 11, 15)
    ),
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

    def of_pandas(x: Any, n: int) -> Any:
        return pandas.Series(x).rolling(n, min_periods=1).median().to_numpy()

    modules = ("bottleneck", "cv2", "pandas", "scipy.ndimage")
    bottleneck, cv2, pandas, ndimage = map(importlib.import_module, modules)
    cv2.setNumThreads(1)
    return {f"x{share}": holed(x, share / 100) for share in (1, 5, 30)} | {
        "x": x,
        "bn": bottleneck,
        "blur": cv2.medianBlur,
        "ndimage": ndimage,
        "of_pandas": of_pandas,
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
    for line in (line for line in LINES if only in line.what):
        codes = [compile(text, "line", "eval") for text in (line.ours, line.other)]
        seconds = _least([lambda code=code: eval(code, named) for code in codes])  # type: ignore[misc]
        sizes = [eval(code, named).size for code in codes]
        ours, other = (each / size * 1e9 for each, size in zip(seconds, sizes, strict=True))
        times = f"{ours:,.2f} | {other:,.2f} | {ours / other:.3g}"
        yield f"| {line.what} | `{line.ours}` | `{line.other}` | {times} |"


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
