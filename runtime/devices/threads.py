"""Threads: work on arrays, in parts that run at the same time, and a lock; needs no torch."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

# Least work of a part: bytes of values times minima and maxima for each, about a quarter of a millisecond.
# To wake a thread takes less.
LEAST_WORK = 20_000_000
# Threads are kept, because new ones take longer to start. A fork has none of them.
_kept: list[ThreadPoolExecutor] = []
os.register_at_fork(after_in_child=_kept.clear)


class Lock:
    """A lock of threads, in a `with` statement; each process has its own.

    A fork copies a lock as it is, but not the thread that holds it, so nobody would ever release it.
    """

    def __init__(self) -> None:
        self._locks: dict[int, threading.Lock] = {}

    def __enter__(self) -> None:
        self._locks.setdefault(os.getpid(), threading.Lock()).acquire()

    def __exit__(self, *_: object) -> None:
        self._locks[os.getpid()].release()


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts_of(threads: int, work: float, each: int = 8) -> int:
    """Return how many parts a work is worth being shared out in; 1 for one thread.

    Args:
        threads: how many at most.
        work: in the unit of LEAST_WORK.
        each: how many for each thread, if there is enough work. A thread that wakes late, or waits for its
            core, leaves its parts to others.
    """
    most = max(1, int(work / LEAST_WORK))
    return 1 if threads == 1 else min(most, threads * min(each, max(1, most // threads)))


def share_out(do: Callable[[int, int], None], threads: int, parts: int) -> None:
    """Call do(part, parts) for all parts of a work. Threads take the next part until none is left.

    Args:
        do: does a part.
        threads: how many at most, this one among them.
        parts: how many.
    """
    if threads == 1 or parts == 1:
        for part in range(parts):
            do(part, parts)
        return
    left, held = deque(range(parts)), [do]
    entered: list[bool] = []
    gone: list[bool] = []
    errors: list[BaseException] = []
    changed = threading.Event()

    def take() -> None:
        while True:
            try:
                part = left.popleft()
            except IndexError:  # none is left
                return
            held[0](part, parts)

    def help() -> None:
        entered.append(True)
        try:
            take()
        except BaseException as error:
            errors.append(error)
        finally:
            gone.append(True)
            changed.set()

    try:
        for _ in range(min(threads, parts) - 1):
            try:
                _pool().submit(help)
            except RuntimeError:  # the main thread has ended, or the process ends: this one does all
                break
        take()
    except BaseException as error:
        errors.insert(0, error)
    # Where a part failed, or Ctrl-C came, nothing more begins. A part that runs still writes, so Ctrl-C does
    # not end the wait. A helper that has not entered finds nothing left.
    left.clear()
    while True:
        try:
            changed.clear()
            if len(gone) == len(entered):
                break
            changed.wait()
        except KeyboardInterrupt as error:
            errors.insert(0, error)
    held.clear()  # the pool may keep `help` for a while, and is not to keep the arrays
    if errors:
        raise errors[0]


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # most calls need none

    if not _kept:
        _kept.append(ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nsc"))
    return _kept[0]
