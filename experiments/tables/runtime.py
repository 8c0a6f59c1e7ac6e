"""Time and memory of every method: the paper's table 4."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import torch

from benchmarks.machine import machine
from experiments import methods, paper
from experiments.timing import MATRIX, PEER, SIZES, VALUES, WORKS, Timing, measure, title_of
from experiments.writing.comparing import listed
from experiments.writing.records import Axis, Cell, Column, Finished, Outcome, Panel, PaperNumber, Row
from nsc.wording import count

NAME = "runtime"
TITLE = "Time and memory, forward and backward"
SOURCE = "table 4"


def make(names: Sequence[str], sizes: Sequence[int], command: str, report: Callable[[str], None]) -> Finished:
    """Measure methods on one thread, and on all that torch has, and return the table.

    Args:
        names: the methods, and works on families, see WORKS; () are all.
        sizes: the n; () are the paper's and 16,384.
        command: that makes the table.
        report: is told what is measured next.

    Raises:
        ExperimentError: an unknown method.
    """
    begin = time.monotonic()
    works, columns = tuple(names) or WORKS, tuple(sizes) or SIZES
    threads = tuple(dict.fromkeys((1, torch.get_num_threads())))
    timings = measure(works, columns, threads, report)
    return Finished(
        name=NAME,
        title=TITLE,
        source=SOURCE,
        profile="cpu",
        command=command,
        panels=tuple(_panel(number, works, columns, timings) for number in threads),
        tuned=(),
        deviations=(
            "The paper's times are of its PyTorch program on a CPU that it does not name, those of networks "
            "with P; its memory is of its CUDA kernels.",
            "Here rows of P have P and a dense gradient of it, as the paper times them, rows of values the "
            "sorted values and a gradient of them; all others are the whole loss of a method.",
        ),
        notes=(
            *(
                _who_is_ahead([t for t in timings if t.threads == number], network)
                for number in threads
                for network in ("bitonic", "odd_even")
            ),
            *_unmeasured(timings),
        ),
        seconds=time.monotonic() - begin,
    )


def _panel(threads: int, works: Sequence[str], sizes: Sequence[int], timings: Sequence[Timing]) -> Panel:
    return Panel(
        title=count(threads, "thread").capitalize(),
        axis=Axis("n", "log"),
        # Memory is measured on one thread.
        metrics=("seconds", "bytes") if threads == 1 else ("seconds",),
        rows=tuple(Row(title_of(work), reference=_is_reference(work)) for work in works),
        columns=tuple(Column(f"n = {n}", n) for n in sizes),
        cells=tuple(_cell(timing) for timing in timings if timing.threads == threads),
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
                machine=f"{machine()}, {count(timing.threads, 'thread')}",
            ),
        ),
        paper=_paper(timing),
    )


def _paper(timing: Timing) -> dict[str, PaperNumber]:
    """Return the paper's numbers of a work on one thread; networks have theirs at "P of"."""
    is_matrix = timing.work.startswith(MATRIX)
    if timing.threads > 1 or (not is_matrix and not _is_loss_of_other(timing.work)):
        return {}
    row = timing.work.removeprefix(MATRIX)
    numbers = {
        "seconds": paper.number("runtime cpu", row, str(timing.n), "seconds"),
        "bytes": paper.number("runtime gpu", row, str(timing.n), "bytes"),
    }
    return {metric: number for metric, number in numbers.items() if number is not None}


def _is_reference(work: str) -> bool:
    """Return whether a work does less than the others: it relaxes no order, or makes sorted values alone."""
    return work == "regression" or work.startswith(VALUES)


def _is_loss_of_other(work: str) -> bool:
    """Return whether a work is the loss of a method that is no network."""
    return not work.startswith((MATRIX, VALUES, PEER)) and not methods.is_network(work)


def _unmeasured(timings: Sequence[Timing]) -> list[str]:
    """Return why memory is missing where it is."""
    return [f"No memory of {t.title} at n = {t.n}: {t.memory_reason}." for t in timings if t.memory_reason]


def _who_is_ahead(timings: Sequence[Timing], network: str) -> str:
    """Return where the loss of a network is quicker than all other methods, and where it is not."""
    title = title_of(network)
    ours = {t.n: t.seconds for t in timings if t.work == network and t.seconds is not None}
    others = [t for t in timings if _is_loss_of_other(t.work) and t.work != "regression" and t.seconds]
    if not ours or not others:
        return f"The loss of {title} was not compared with other methods."
    quicker = {
        n: [t.title for t in others if t.n == n and t.seconds is not None and t.seconds < seconds]
        for n, seconds in ours.items()
    }
    ahead = [str(n) for n, titles in quicker.items() if not titles]
    behind = [f"{listed(titles)} at n = {n}" for n, titles in quicker.items() if titles]
    sentences = []
    if ahead:
        sentences.append(f"is quicker than every other method at n = {', '.join(ahead)}")
    if behind:
        sentences.append(f"is slower than {'; '.join(behind)}")
    return f"On {count(timings[0].threads, 'thread')} the loss of {title} {', and '.join(sentences)}."
