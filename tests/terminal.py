"""Processes that have a terminal as standard error."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Sequence


def at_a_terminal(command: Sequence[str], term: str = "xterm-256color") -> tuple[int, bytes, bytes]:
    """Run a command at a kind of terminal; return its exit code, its standard output, and what was shown."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": term}
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, env=environment)
    os.close(theirs)
    try:
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
