"""Interrupts: the effect of Ctrl-C while the command line is imported."""

import os
import signal

# Shells' exit code for a process that Ctrl-C ended.
INTERRUPTED = 130


def leave_at_once() -> None:
    """Make Ctrl-C end the process with one line, as long as there is nothing to clean up.

    During imports KeyboardInterrupt would appear as a traceback, or as another error of the imported module.
    A process that ignores Ctrl-C continues to ignore it.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _leave)


def raise_instead() -> None:
    """Make Ctrl-C raise KeyboardInterrupt again, if it would have ended the process at once."""
    if signal.getsignal(signal.SIGINT) is _leave:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"nsc: interrupted\n")
    os._exit(INTERRUPTED)
