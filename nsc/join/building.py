"""The budget of a proof on this machine: memory, time, and a builder of C++ libraries."""

from __future__ import annotations

import time
from pathlib import Path

import nsc
from nsc.arguments import integer, real
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.verify import Budget
from nsc.errors import PropertyError, ToolchainError
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain
from nsc.wording import argument

# Default memory for the 0-1 patterns of a proof, in MB.
MAX_MEMORY = Budget().memory >> 20


def budget_of(
    max_memory: int = MAX_MEMORY, time_limit: float | None = None, progress: Progress = SILENT
) -> Budget:
    """Return the budget of a proof; its time begins now.

    Args:
        max_memory: MB that the method of reachable sets may take for 0-1 patterns.
        time_limit: seconds after which the proof gives up; None: about 20 a method.
        progress: is told how far the proof is.

    Raises:
        PropertyError: a limit that is no number of its kind.
    """
    megabytes = integer("max_memory", max_memory, PropertyError)
    if megabytes < 1:
        raise PropertyError(f"{argument('max_memory')} must be 1 or more, got {megabytes}")
    seconds = None if time_limit is None else real(time_limit)
    if time_limit is not None and (seconds is None or not seconds >= 0):
        raise PropertyError(f"{argument('time_limit')} must be a number of seconds, got {time_limit!r}")
    deadline = None if seconds is None else time.monotonic() + seconds
    return Budget(memory=megabytes << 20, deadline=deadline, build=build_library, progress=progress)


def build_library(name: str, source: str) -> Path | None:
    """Return the library of a C++ source, from the cache or built now; None where there is no compiler.

    Raises:
        BuildError: the compiler failed.
    """
    try:
        return cache.build(name, source, find_toolchain(), nsc.__version__).binary
    except ToolchainError:
        return None
