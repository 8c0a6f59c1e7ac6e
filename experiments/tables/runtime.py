"""Time and memory of every method: the paper's table 4."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from benchmarks.machine import machine
from experiments import methods, paper
from experiments.timing import MATRIX, SIZES, WORKS, Timing, measure, title_of
from experiments.writing.records import Axis, Cell, Column, Finished, Outcome, Panel, PaperNumber, Row

NAME = "runtime"
TITLE = "Time and memory, forward and backward, one thread"
SOURCE = "table 4"
_METRICS = ("seconds", "bytes")


def make(names: Sequence[str], sizes: Sequence[int], command: str, report: Callable[[str], None]) -> Finished:
    """Measure methods and return the table.

    Args:
        names: the methods, and "P of FAMILY"; () are all.
        sizes: the n; () are the paper's.
        command: that makes the table.
        report: is told what is measured next.

    Raises:
        ExperimentError: an unknown method.
    """
    begin = time.monotonic()
    works, columns = tuple(names) or WORKS, tuple(sizes) or SIZES
    timings = measure(works, columns, report)
    panel = Panel(
        title="",
        axis=Axis("n", "log"),
        metrics=_METRICS,
        rows=tuple(Row(title_of(work), reference=work == "regression") for work in works),
        columns=tuple(Column(f"n = {n}", n) for n in columns),
        cells=tuple(_cell(timing) for timing in timings),
    )
    return Finished(
        name=NAME,
        title=TITLE,
        source=SOURCE,
        profile="cpu",
        command=command,
        panels=(panel,),
        tuned=(),
        deviations=(
            "The paper's times are of its PyTorch program on a CPU that it does not name, those of networks "
            "with P; its memory is of its CUDA kernels.",
            'Here rows that begin with "P of" have P and a dense gradient of it, as the paper times them; '
            "all others are the whole loss of a method.",
        ),
        notes=(
            *(_who_is_ahead(timings, network) for network in ("bitonic", "odd_even")),
            *_unmeasured(timings),
        ),
        seconds=time.monotonic() - begin,
    )


def _cell(timing: Timing) -> Cell:
    figures = {"seconds": timing.seconds, "bytes": timing.bytes}
    return Cell(
        row=timing.title,
        column=f"n = {timing.n}",
        outcomes=(
            Outcome(
                run=None,
                failure=timing.reason,
                test={metric: value for metric, value in figures.items() if value is not None},
                training={},
                seconds=0.0,
                machine=f"{machine()}, 1 thread",
            ),
        ),
        paper=_paper(timing),
    )


def _paper(timing: Timing) -> dict[str, PaperNumber]:
    """Return the paper's numbers of a work; networks have theirs at "P of"."""
    is_matrix = timing.work.startswith(MATRIX)
    if not is_matrix and methods.is_network(timing.work):
        return {}
    row = timing.work.removeprefix(MATRIX)
    numbers = {
        "seconds": paper.number("runtime cpu", row, str(timing.n), "seconds"),
        "bytes": paper.number("runtime gpu", row, str(timing.n), "bytes"),
    }
    return {metric: number for metric, number in numbers.items() if number is not None}


def _unmeasured(timings: Sequence[Timing]) -> list[str]:
    """Return why memory is missing where it is."""
    return [f"No memory of {t.title} at n = {t.n}: {t.memory_reason}." for t in timings if t.memory_reason]


def _who_is_ahead(timings: Sequence[Timing], network: str) -> str:
    """Return where the loss of a network is quicker than all other methods, and where it is not."""
    title = title_of(network)
    losses = [t for t in timings if not t.work.startswith(MATRIX) and t.seconds is not None]
    ours = {t.n: t.seconds for t in losses if t.work == network}
    others = [t for t in losses if not methods.is_network(t.work) and t.work != "regression"]
    if not ours or not others:
        return f"The loss of {title} was not compared with other methods."
    quicker = {
        n: [t.title for t in others if t.n == n and t.seconds is not None and t.seconds < seconds]
        for n, seconds in ours.items()
        if seconds is not None
    }
    ahead = [str(n) for n, titles in quicker.items() if not titles]
    behind = [f"at n = {n} {', '.join(titles)}" for n, titles in quicker.items() if titles]
    sentences = []
    if ahead:
        sentences.append(f"The loss of {title} is quicker than every other method at n = {', '.join(ahead)}.")
    if behind:
        sentences.append(f"Quicker than the loss of {title} are {'; '.join(behind)}.")
    return " ".join(sentences)
