"""Times calls by CUDA events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

DEVICE = "cuda"
ROUNDS = 11
LEAST_ROUNDS = 3
# A round repeats its call for this long.
ROUND_SECONDS = 0.03

Call = Callable[[], object]


class Seconds(NamedTuple):
    """Seconds of a call.

    Attributes:
        device: until the device has done it, with the next one behind it.
        host: until it returns.
    """

    device: float
    host: float


def event() -> torch.cuda.Event:
    """Return an event that records its time."""
    return torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]


def rounds(call: Call, count: int = ROUNDS, seconds: float = ROUND_SECONDS) -> list[float]:
    """Return the device's mean seconds of a call in `count` rounds, which take about `seconds` each."""
    repeats = repeats_of(call, seconds)
    return [once(call, repeats).device for _ in range(count)]


def repeats_of(call: Call, seconds: float = ROUND_SECONDS) -> int:
    """Return how many calls take `seconds`, at least 1."""
    call()  # the first call does the setup
    return max(1, int(seconds / max(once(call).device, 1e-7)))


def once(call: Call, repeats: int = 1) -> Seconds:
    """Return the mean seconds of `repeats` calls, one after another."""
    start, end = event(), event()
    start.record()
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    host = time.perf_counter() - begin
    end.record()
    end.synchronize()
    return Seconds(float(start.elapsed_time(end)) / 1e3 / repeats, host / repeats)
