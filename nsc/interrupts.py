"""Interrupts: what Ctrl-C does before the command line can answer for it."""

from __future__ import annotations

import os
import signal
from types import FrameType

# The exit code of what Ctrl-C ended, as shells have it.
INTERRUPTED = 130


def leave_at_once() -> None:
    """Let Ctrl-C end the process with one line, as long as there is nothing to clean up.

    An exception would come out of whatever is being imported, as a traceback or as an error of another kind.
    A process that ignores Ctrl-C goes on doing so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_instead() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: FrameType | None) -> None:
    os.write(2, b"nsc: interrupted\n")
    os._exit(INTERRUPTED)
