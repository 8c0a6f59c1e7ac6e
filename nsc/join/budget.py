"""The budget of a proof on this machine: memory, time, and where proofs are kept."""

from __future__ import annotations

import time

from nsc.arguments import integer, real
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import Budget
from nsc.errors import PropertyError
from nsc.runtime.build import folder
from nsc.wording import argument

# Default memory for the 0-1 patterns of a proof, in MB.
MAX_MEMORY = Budget().memory >> 20


def budget_of(
    max_memory: int = MAX_MEMORY,
    time_limit: float | None = None,
    progress: Progress = SILENT,
    keeps: bool = False,
) -> Budget:
    """Return the budget of a proof; its time begins now.

    Args:
        max_memory: MB that the method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: each method counts
            its steps, so that the verdict is the same on every machine.
        progress: receives how far the proof is.
        keeps: whether proofs are written to the cache, and cached proofs are reused.

    Raises:
        PropertyError: a limit that is not a positive integer (memory) or a number of seconds (time).
    """
    megabytes = integer("max_memory", max_memory, PropertyError)
    if megabytes < 1:
        raise PropertyError(f"{argument('max_memory')} must be 1 or more, got {megabytes}")
    seconds = None if time_limit is None else real(time_limit)
    if time_limit is not None and (seconds is None or not seconds >= 0):
        raise PropertyError(f"{argument('time_limit')} must be a number of seconds, got {time_limit!r}")
    deadline = None if seconds is None else time.monotonic() + seconds
    return Budget(
        memory=megabytes << 20,
        deadline=deadline,
        archive=folder if keeps else None,
        progress=progress,
    )
