"""Notice: a line on a terminal that says what a call waits for, while it waits."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

# Seconds after which a terminal shows what takes so long.
LATE = 2.0

_is_silent: ContextVar[bool] = ContextVar("is_silent", default=False)


@contextmanager
def silence() -> Iterator[None]:
    """Say nothing inside the context: its caller shows a line of its own."""
    token = _is_silent.set(True)
    try:
        yield
    finally:
        _is_silent.reset(token)


@contextmanager
def notice(what: str) -> Iterator[None]:
    """Show on standard error what is done, if that is a terminal and once the work takes long.

    The line is removed in the end.
    """
    if _is_silent.get() or not _is_terminal():
        yield
        return
    text = f"nsc: {what} …"
    ended = threading.Event()

    def show() -> None:
        if not ended.wait(LATE):
            _write(f"\r{text}")
            ended.wait()
            _write(f"\r{' ' * len(text)}\r")

    line = threading.Thread(target=show, daemon=True, name="notice")
    line.start()
    try:
        yield
    finally:
        ended.set()
        line.join()


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
    except (AttributeError, ValueError):  # no standard error, or a closed one
        return False


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
