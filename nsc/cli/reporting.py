"""Reporting: tables, and the progress of long commands on standard error."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import click
from rich import console, progress
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from nsc.compiler.progress import SILENT, Progress
from nsc.runtime.build.notice import LATE, silence

# Seconds between two counts: on a terminal, where each replaces the last one, and in lines, which stay.
_TERMINAL_PAUSE = 0.1
_LINES_PAUSE = 10.0


class Console(console.Console):
    """A console that raises an error when nobody reads its output: rich would end the process with 1."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], wide: str, err: bool = False
) -> None:
    """Print a table with numbers on the right of their cells, and a dash for None.

    Args:
        title: above it.
        columns: their titles.
        rows: their cells.
        wide: the column that a narrow terminal cuts into lines.
        err: whether it goes to standard error.
    """
    table = Table(title=title, title_justify="left")
    for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
        is_text = any(isinstance(cell, str) for cell in cells)
        table.add_column(
            column, justify="left" if is_text else "right", no_wrap=column != wide, overflow="fold"
        )
    for row in rows:
        table.add_row(
            *("–" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row)
        )
    Console(stderr=err).print(table)


class _Reporter:
    """Shows a new phase at once, and counts after a pause."""

    def __init__(self, show: Callable[[str], None], pause: float) -> None:
        self.show, self.pause = show, pause
        self.name, self.shown = "", 0.0

    def phase(self, name: str) -> None:
        if name != self.name:
            self.name, self.shown = name, time.monotonic()
            self.show(name)

    def count(self, what: str, number: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now - self.shown >= self.pause:
            self.shown = now
            self.show(f"{self.name}: {number:,} {'' if total is None else f'of {total:,} '}{what}")


@contextmanager
def reporting(verbose: bool) -> Iterator[Progress]:
    """Yield the progress that the user sees.

    - If `verbose`: a line for each phase.
    - Otherwise, if standard error is a terminal: one line, which appears after two seconds, changes, and is
      removed in the end.
    - Otherwise: nothing.
    """
    shown = Console(stderr=True)
    with silence():
        if verbose:
            yield _Reporter(lambda text: click.echo(f"nsc: {text}", err=True), _LINES_PAUSE)
        elif shown.is_interactive:  # a terminal that can remove a line
            with _late_line(shown) as show:
                yield _Reporter(show, _TERMINAL_PAUSE)
        else:
            yield SILENT


@contextmanager
def _late_line(shown: Console) -> Iterator[Callable[[str], None]]:
    """Yield a function that changes the text of a line with a clock; the line appears after some seconds."""
    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    line = progress.Progress(*columns, console=shown, transient=True, redirect_stdout=False)
    task = line.add_task("")
    timer = threading.Timer(LATE, line.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda text: line.update(task, description=text)
    finally:
        timer.cancel()
        timer.join()
        line.stop()


verbose_option = click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Print each phase on standard error, a line each; of a build the command too.",
)
