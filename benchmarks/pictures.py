"""Pictures of the results, axes logarithmic."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import growth
from benchmarks.arithmetic import Arithmetic
from benchmarks.cases import AGAINST_PEERS, LOSS, VALUES, P
from benchmarks.measure import Timing
from benchmarks.memory import FLOAT_BYTES, MB, Peak

# Of all pictures of the project: they have no ground of their own, and are read in light and in dark.
INKS = Path(__file__).parents[1] / "docs" / "pictures" / "inks.mplstyle"
# How the names of the pictures end, behind the name of the results.
TIMES, GROWTH, MEMORY = ".png", "-growth.png", "-memory.png"
COLORS = {
    "nsc": "tab:blue",
    "diffsort": "tab:orange",
    "indexed torch": "tab:green",
    "compiled torch": "tab:purple",
    "torchsort": "tab:red",
}
TITLES = {
    P: "P and its gradient",
    LOSS: "cross entropy and its gradient",
    VALUES: "sorted values and their gradient",
}


def draw_all(
    timings: Sequence[Timing], arithmetic: Arithmetic | None, peaks: Sequence[Peak]
) -> dict[str, bytes]:
    """Return the pictures for which there are results: how its file name ends to PNG."""
    points = list(growth.growth(timings, arithmetic)) if arithmetic else []
    pictures = {}
    with matplotlib.style.context(INKS):
        if curves := [t for t in timings if t.case in AGAINST_PEERS and t.case.network == "bitonic"]:
            pictures[TIMES] = _png(draw_times(curves))
        if points:
            pictures[GROWTH] = _png(draw_growth(points))
        if peaks:
            pictures[MEMORY] = _png(draw_memory(peaks))
    return pictures


def draw_times(timings: Sequence[Timing]) -> Figure:
    """Draw the time of every work over n on bitonic networks, a panel for each work."""
    works = [work for work in TITLES if any(t.case.work == work for t in timings)]
    figure = Figure(figsize=(4.6 * len(works), 4.6), layout="constrained")
    for axes, work in zip(figure.subplots(1, len(works), squeeze=False)[0], works, strict=True):
        shown = [t for t in timings if t.case.work == work]
        for peer, threads in dict.fromkeys((t.peer, t.threads) for t in shown):
            curve = [t for t in shown if (t.peer, t.threads) == (peer, threads)]
            axes.plot(
                [t.case.n for t in curve],
                [t.microseconds_per_sample for t in curve],
                color=COLORS[peer],
                linestyle="-" if threads == 1 else "--",
                marker="o",
                markersize=4,
                label=peer if threads == 1 else None,
            )
        _finish(axes, TITLES[work], "µs per sample", sorted({t.case.n for t in shown}))
        axes.set_xlabel("n")
        axes.legend(frameon=False, loc="lower right")
    figure.supxlabel("bitonic; solid lines 1 thread, dashed lines 2 threads", fontsize="medium")
    return figure


def draw_growth(points: Sequence[growth.Point]) -> Figure:
    """Draw nsc's time over n with its limit, and below it the ratio of both."""
    works = [work for work in TITLES if any(p.timing.case.work == work for p in points)]
    figure = Figure(figsize=(5.6 * len(works), 6.4), layout="constrained")
    panels = figure.subplots(2, len(works), squeeze=False, sharex="col", height_ratios=(3, 2))
    for (above, below), work in zip(panels.T, works, strict=True):
        shown = [p for p in points if p.timing.case.work == work]
        for threads in sorted({p.timing.threads for p in shown}):
            curve = [p for p in shown if p.timing.threads == threads]
            sizes = [p.timing.case.n for p in curve]
            style = {"linestyle": "-" if threads == 1 else "--", "marker": "o", "markersize": 4}
            label = f"nsc, {threads} thread{'s' if threads > 1 else ''}"
            times = [p.timing.microseconds_per_sample for p in curve]
            above.plot(sizes, times, color=COLORS["nsc"], label=label, **style)
            below.plot(sizes, [p.ratio for p in curve], color=COLORS["nsc"], **style)
        single = [p for p in shown if p.timing.threads == 1]
        sizes = [p.timing.case.n for p in single]
        above.plot(sizes, [p.limit * 1e6 for p in single], color="gray", label="its arithmetic, 1 thread")
        above.legend(frameon=False, loc="upper left")
        below.axhline(1, color="gray")
        _finish(above, TITLES[work], "µs per sample", sizes)
        _finish(below, "", "time / arithmetic", sizes)
        _name_ratios(below)
        below.set_xlabel("n")
    return figure


def draw_memory(peaks: Sequence[Peak]) -> Figure:
    """Draw peak memory over n, with the size of P."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    for work, peer in dict.fromkeys((p.case.work, p.peer) for p in peaks):
        curve = [p for p in peaks if (p.case.work, p.peer) == (work, peer) and p.call > 0]
        axes.plot(
            [p.case.n for p in curve],
            [p.call for p in curve],
            color=COLORS[peer],
            linestyle="-" if work == P else "--",
            marker="o",
            markersize=4,
            label=f"{peer}, {TITLES[work]}",
        )
    sizes = sorted({p.case.n for p in peaks})
    axes.plot(sizes, [FLOAT_BYTES * n**2 / MB for n in sizes], color="gray", linewidth=1, label="P itself")
    _finish(axes, "Peak memory above inputs and outputs, one sample", "MB", sizes)
    axes.set_xlabel("n")
    axes.legend(frameon=False)
    return figure


def _finish(axes: Axes, title: str, ylabel: str, sizes: list[int]) -> None:
    axes.set(xscale="log", yscale="log", ylabel=ylabel, title=title)
    ticks = sizes if len(sizes) < 8 else sizes[::2]
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)


def _name_ratios(axes: Axes) -> None:
    axes.set_ylim(bottom=min(0.8, axes.get_ylim()[0]))
    top = axes.get_ylim()[1]
    ratios = (1, 2, 3, 5, 10, 20, 50, 100) if top < 200 else (1, 10, 100, 1000, 10000)
    ticks = [ratio for ratio in ratios if ratio <= top]
    axes.set_yticks(ticks, [f"{tick:,}×" for tick in ticks])


def _png(figure: Figure) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=130)
    return file.getvalue()
