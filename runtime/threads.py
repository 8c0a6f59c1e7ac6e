"""Threads: work on arrays, in parts that run at the same time; needs no torch."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait

# Least work of a part: bytes of values times minima and maxima for each, about a quarter of a millisecond.
# To wake a thread takes less.
LEAST_WORK = 20_000_000
# Parts for each thread: one that wakes late, or has to wait for its core, leaves its parts to the others.
_PARTS = 8

# Threads are kept, because new ones take longer to start. A fork has none of them.
_kept: list[ThreadPoolExecutor] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_kept.clear)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def share_out(do: Callable[[int, int], None], threads: int, work: float) -> None:
    """Call do(part, parts) for all parts of a work. Threads take the next part until none is left.

    Args:
        do: does a part.
        threads: how many at most, this one among them.
        work: in the unit of LEAST_WORK.
    """
    parts = min(threads * _PARTS, int(work / LEAST_WORK))
    if threads == 1 or parts < 2:
        do(0, 1)
        return
    left, held = deque(range(parts)), [do]

    def take() -> None:
        while True:
            try:
                part = left.popleft()
            except IndexError:  # none is left
                return
            held[0](part, parts)

    if not _kept:
        _kept.append(ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="nsc"))
    others = [_kept[0].submit(take) for _ in range(min(threads, parts) - 1)]
    try:
        take()
    finally:
        left.clear()  # where a part failed, or Ctrl-C came
        begun = [other for other in others if not other.cancel()]
        wait(begun)
        held.clear()  # the pool may keep `take` for a while, and is not to keep the arrays
    for other in begun:
        other.result()
