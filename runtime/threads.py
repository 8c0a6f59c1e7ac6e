"""Threads: work on arrays, in parts that run at the same time; needs no torch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

# Least work of a part: bytes of values times minima and maxima for each, about a quarter of a millisecond.
# To wake a thread takes less.
LEAST_WORK = 20_000_000
# Threads are kept, because new ones take longer to start. A fork has none of them.
_kept: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parts_of(threads: int, work: float, each: int = 8) -> int:
    """Return how many parts of a work are worth to be shared out; 1 for one thread.

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
    left, held = deque(range(parts)), [do]

    def take() -> None:
        while True:
            try:
                part = left.popleft()
            except IndexError:  # none is left
                return
            held[0](part, parts)

    others: list[Future[None]] = []
    try:
        for _ in range(min(threads, parts) - 1):
            others.append(_pool().submit(take))
    except RuntimeError:  # the main thread has ended, or the process does: this thread does all
        pass
    except BaseException:
        _stop(left, others)
        raise
    try:
        take()
    finally:
        errors = _stop(left, others)
        held.clear()  # the pool may keep `take` for a while, and is not to keep the arrays
    for error in errors:
        if error:
            raise error


def _stop(left: deque[int], others: Iterable[Future[None]]) -> list[BaseException | None]:
    """Take what is left from others, wait until they are done, and return their errors.

    Ctrl-C does not end the wait, since a part that runs still writes. It is raised afterwards.
    """
    left.clear()  # where a part failed, or Ctrl-C came
    errors: list[BaseException | None] = []
    interrupted: KeyboardInterrupt | None = None
    for other in others:
        while not other.cancel():
            try:
                errors.append(other.exception())
                break
            except KeyboardInterrupt as error:
                interrupted = error
    return [*errors, interrupted]


def _pool() -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor  # most calls need none

    if not _kept:
        _kept.append(ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nsc"))
    return _kept[0]
