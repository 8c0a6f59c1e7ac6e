"""How many threads a call uses: `workers` of the call, or else one number for the process."""

from __future__ import annotations

import os

from nsc.arguments import integer
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.threads import cores

# A call on fewer values uses one thread.
LEAST_VALUES = 1 << 14
# What was set; None: nothing yet.
_number: int | None = None


def set_num_threads(k: int) -> None:
    """Set how many threads calls of this process use at most, unless they say `workers` themselves.

    A call takes the number when it begins, so other threads may set it at any time.

    Args:
        k: at least 1; or -1, for the cores that this process may use.

    Raises:
        OperandTypeError: k is no integer.
        OperandError: k is neither positive nor -1.

    >>> before = get_num_threads()
    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(before)
    """
    global _number
    _number = _count("set_num_threads", "k", k)


def get_num_threads() -> int:
    """Return how many threads calls use at most that do not say `workers`.

    Until `set_num_threads` is called it is OMP_NUM_THREADS, as in torch, which schedulers of many processes
    set to 1. Without this variable it is the number of cores that the process may use.

    >>> get_num_threads() >= 1
    True
    """
    return _number or _of_environment() or cores()


def thread_count(function: str, workers: int | None, values: int) -> int:
    """Return how many threads a call on so many values uses at most.

    Args:
        function: the function that was called, for messages.
        workers: what the call says; -1: the cores; None: the number of the process, or 1 for few values.
        values: how many.
    """
    if workers is None:
        return 1 if values < LEAST_VALUES else get_num_threads()
    return _count(function, "workers", workers)


def _count(function: str, name: str, value: object) -> int:
    count = integer(name, value, OperandTypeError)
    if count == -1:
        return cores()
    if count < 1:
        raise OperandError(f"nsc.numpy.{function}: {name} must be at least 1, or -1, got {count}")
    return count


def _of_environment() -> int | None:
    """Return OMP_NUM_THREADS, of a list of levels the first; None if it is not set or no number."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None
