"""Reporting: the progress of long commands, on standard error."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import click
from rich.console import Console
from rich.markup import escape

from nsc.compiler.progress import SILENT, Progress

F = TypeVar("F", bound=Callable[..., object])

# Seconds between two counts: on a terminal, which forgets them, and in lines, which stay.
_TERMINAL_PAUSE = 0.1
_LINES_PAUSE = 10.0


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
def reporting(verbose: bool, quiet: bool = False) -> Iterator[Progress]:
    """Yield the progress that the user sees: lines if verbose, else a line that changes on a terminal.

    Args:
        verbose: whether to print a line a phase, on a terminal or not.
        quiet: whether a terminal shows nothing, because the answer is for programs.
    """
    console = Console(stderr=True)
    if verbose:
        yield _Reporter(lambda text: click.echo(f"nsc: {text}", err=True), _LINES_PAUSE)
    elif console.is_terminal and not quiet:
        with console.status("") as line:
            yield _Reporter(lambda text: line.update(escape(text)), _TERMINAL_PAUSE)
    else:
        yield SILENT


def verbose_option(function: F) -> F:
    """Give a command --verbose."""
    return click.option(
        "-v", "--verbose", is_flag=True, help="Print each phase on standard error, a line each."
    )(function)
