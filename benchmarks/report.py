"""Reports: the same timings as JSON, Markdown and a picture."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from pathlib import Path

import torch
from matplotlib.figure import Figure

import nsc
from benchmarks.measure import Timing

COLUMNS = ("work", "threads", "nsc, µs a sample", "peer", "µs a sample", "nsc is faster by")


def machine() -> str:
    """Return what the timings were taken on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        named = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = f"{len(named)} × {named[0].partition(': ')[2]}" if named else model
    return f"{model}, torch {torch.__version__}, Python {platform.python_version()}, nsc {nsc.__version__}"


def rows(timings: list[Timing]) -> Iterator[tuple[str, ...]]:
    """Yield a row of COLUMNS for each peer of nsc on each case."""
    ours = {(t.case, t.threads): t for t in timings if t.peer == "nsc"}
    for timing in timings:
        if timing.peer == "nsc":
            continue
        own = ours[timing.case, timing.threads]
        yield (
            timing.case.name,
            str(timing.threads),
            _short(own.microseconds_per_sample),
            timing.peer,
            _short(timing.microseconds_per_sample),
            f"{_short(timing.seconds / own.seconds)}×",
        )


def write(folder: Path, timings: list[Timing]) -> list[Path]:
    """Write cpu.json, cpu.md and cpu.png; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"cpu.{ending}" for ending in ("json", "md", "png")]
    facts = [
        {
            **timing.case.__dict__,
            "peer": timing.peer,
            "threads": timing.threads,
            "us_per_sample": round(timing.microseconds_per_sample, 3),
            "lowest": round(timing.low / timing.case.batch * 1e6, 3),
            "highest": round(timing.high / timing.case.batch * 1e6, 3),
            "rounds": timing.rounds,
        }
        for timing in timings
    ]
    files[0].write_text(
        json.dumps({"machine": machine(), "timings": facts}, indent=1) + "\n", encoding="utf-8"
    )
    table = [COLUMNS, ("---",) * len(COLUMNS), *rows(timings)]
    text = "\n".join(f"| {' | '.join(row)} |" for row in table)
    files[1].write_text(
        f"# CPU\n\n`python -m benchmarks` on {machine()}.\n"
        "float32; medians of rounds in which the peers take turns.\n\n"
        f"{text}\n\n![time over n](cpu.png)\n",
        encoding="utf-8",
    )
    draw(files[2], timings)
    return files


def draw(file: Path, timings: list[Timing]) -> None:
    """Draw time over n of P and its gradient through bitonic, log axes."""
    figure = Figure(figsize=(7, 4.6), layout="constrained")
    axes = figure.subplots()
    curves: dict[tuple[str, int], list[Timing]] = {}
    for timing in timings:
        if (timing.case.work, timing.case.network) == ("P + gradient", "bitonic"):
            curves.setdefault((timing.peer, timing.threads), []).append(timing)
    colors = {"nsc": "tab:blue", "diffsort": "tab:orange", "indexed torch": "tab:green"}
    for (peer, threads), curve in curves.items():
        axes.plot(
            [t.case.n for t in curve],
            [t.microseconds_per_sample for t in curve],
            color=colors[peer],
            linestyle="-" if threads == 1 else "--",
            marker="o",
            markersize=4,
            label=f"{peer}, {threads} thread{'s' if threads > 1 else ''}",
        )
    axes.set(
        xscale="log", yscale="log", xlabel="n", ylabel="µs per sample", title="P and its gradient, bitonic"
    )
    axes.set_xticks(ticks := sorted({t.case.n for c in curves.values() for t in c}), [str(n) for n in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    figure.savefig(file, format="png", dpi=130)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
