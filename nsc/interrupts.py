"""Interrupts: what Ctrl-C does before the command line is ready to handle it, and after it has ended.

This module imports only what Python itself has imported before: until `leave_at_once` is called, Ctrl-C shows
a traceback.
"""

# `signal` imports enum and more.
import _signal
import os
import sys

# Shells' exit code for a process that Ctrl-C ended.
INTERRUPTED = 130


def is_command() -> bool:
    """Say whether this process is the command, `nsc` or `python -m nsc`, not a program that imports nsc."""
    arguments = getattr(sys, "argv", None) or [""]
    if arguments[0] == "-m":  # as it is until Python has found the module that it is to run
        return sys.orig_argv[-len(arguments)] in ("nsc", "-mnsc")
    return os.path.basename(str(arguments[0])) == "nsc"


def leave_at_once() -> None:
    """Make Ctrl-C end the process with one line, for the time when there is nothing to clean up.

    During imports an exception would appear as a traceback, or as another error of the imported module.
    A process that ignores Ctrl-C continues to ignore it.
    """
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _leave)


def raise_instead() -> bool:
    """Make Ctrl-C raise KeyboardInterrupt again; return whether it would have ended the process at once."""
    leaves: bool = _signal.getsignal(_signal.SIGINT) is _leave
    if leaves:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)
    return leaves


def _leave(number: int, frame: object) -> None:
    os.write(2, b"nsc: interrupted\n")
    os._exit(INTERRUPTED)
