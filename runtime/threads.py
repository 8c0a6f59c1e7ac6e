"""Threads: work on arrays, in parts that run at the same time; needs no torch."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

# Least work of a thread: bytes of values times minima and maxima for each, about a millisecond. Waking a
# thread can take as long.
LEAST_WORK = 100_000_000

# Threads are kept, because new ones take longer to start. A fork has none of them.
_kept: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(do: Callable[[int, int], None], threads: int, work: float) -> None:
    """Call do(part, parts) for all parts of a work, each in a thread.

    Args:
        do: does a part. It holds the arrays: a thread may outlive a call that is interrupted.
        threads: how many at most.
        work: in the unit of LEAST_WORK.
    """
    parts = max(1, min(threads, int(work / LEAST_WORK)))
    if parts == 1:
        do(0, 1)
        return
    if not _kept:
        _kept.append(ThreadPoolExecutor(thread_name_prefix="nsc"))
    others = [_kept[0].submit(do, part, parts) for part in range(1, parts)]
    do(0, parts)
    for other in others:
        other.result()
