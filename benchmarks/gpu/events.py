"""Times calls by CUDA events."""

from __future__ import annotations

from collections.abc import Callable

import torch

DEVICE = "cuda"
ROUNDS = 11
LEAST_ROUNDS = 3
# A round repeats its call for this long.
ROUND_SECONDS = 0.03

Call = Callable[[], object]


def event() -> torch.cuda.Event:
    """Return an event that records its time."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def rounds(call: Call, count: int = ROUNDS, seconds: float = ROUND_SECONDS) -> list[float]:
    """Return the mean seconds of a call in each of `count` rounds, which take about `seconds` each."""
    repeats = repeats_of(call, seconds)
    return [once(call, repeats) for _ in range(count)]


def repeats_of(call: Call, seconds: float = ROUND_SECONDS) -> int:
    """Return how many calls take `seconds`, at least 1."""
    call()  # the first call does the setup
    return max(1, int(seconds / max(once(call), 1e-7)))


def once(call: Call, repeats: int = 1) -> float:
    """Return the mean seconds of `repeats` calls, one after another."""
    start, end = event(), event()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / repeats
