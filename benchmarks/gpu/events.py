"""Time by CUDA events."""

from __future__ import annotations

from collections.abc import Callable

import torch

DEVICE = "cuda"
ROUNDS = 11
LEAST_ROUNDS = 3
# A round repeats its call until it has taken this long.
ROUND_SECONDS = 0.03

Call = Callable[[], object]


def event() -> torch.cuda.Event:
    """Return an event that keeps its time."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def rounds(call: Call, count: int = ROUNDS, seconds: float = ROUND_SECONDS) -> list[float]:
    """Return the mean seconds of a call in each of some rounds of as many calls as take `seconds`."""
    repeats = repeats_of(call, seconds)
    return [once(call, repeats) for _ in range(count)]


def repeats_of(call: Call, seconds: float = ROUND_SECONDS) -> int:
    """Return how many calls take `seconds`, at least 1."""
    call()  # sets things up
    return max(1, int(seconds / max(once(call), 1e-7)))


def once(call: Call, repeats: int = 1) -> float:
    """Return the mean seconds of some calls, one after another."""
    start, end = event(), event()
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3 / repeats
