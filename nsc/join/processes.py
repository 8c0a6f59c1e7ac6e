"""Processes of this machine that do work for this one, and end with it."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

# Seconds to wait until a process, or the client of a cluster, has ended.
GRACE = 2


def started(answer: Callable[..., object], *given: object) -> tuple[SpawnProcess, Connection]:
    """Start a process, and return it with a connection.

    The process sends answer(*given, each) for each object that comes. It ends when this process has ended,
    even in the middle of an answer. Ctrl-C does not reach it.

    Args:
        answer: a function of a module; what it raises ends the process.
        given: its first arguments.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, answer, given), daemon=True)
    # Ctrl-C goes to every process of a terminal. The new one would print a traceback, so it inherits a mask
    # that blocks the signal, and this process ends it. Python's resource tracker, which the first process
    # starts, would unblock the signal again: it runs before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def end(processes: Collection[SpawnProcess]) -> None:
    """End processes, those that do not answer by force."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(GRACE)
        process.kill()
        process.join()


def _serve(connection: Connection, answer: Callable[..., object], given: tuple[object, ...]) -> None:
    """Answer what comes: the main function of a process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            connection.send(answer(*given, connection.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
