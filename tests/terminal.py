"""Processes that have a terminal as standard error."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Callable, Sequence


def at_a_terminal(
    command: Sequence[str], term: str = "xterm-256color", meanwhile: Callable[[], object] = lambda: None
) -> tuple[int, bytes, bytes]:
    """Run a command; return its exit code, its standard output, and what the terminal got.

    Args:
        command: the program and its arguments.
        term: the kind of the terminal.
        meanwhile: called once the process has begun.
    """
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    try:
        meanwhile()
        shown = b""
        while True:
            try:
                shown += os.read(ours, 1 << 16)
            except OSError:  # Linux raises it once the other end is closed
                break
        printed, _ = running.communicate(timeout=60)
    finally:
        os.close(ours)
        running.kill()
    return running.returncode, printed, shown
