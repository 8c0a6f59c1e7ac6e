"""Timing: peers take turns, so that a machine that changes its speed changes it for all of them."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import torch

from benchmarks.cases import WORKS, Call, Case

ROUNDS = 9
# A round of a quick peer repeats its call until it has taken this long.
ROUND_SECONDS = 0.05
# Peers that are this slow take part in fewer rounds, but never in fewer than LEAST_ROUNDS.
CASE_SECONDS = 8.0
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Timing:
    """What was measured of one peer on one case.

    Attributes:
        case: the case.
        peer: who did the work.
        threads: torch's number of threads.
        seconds: the median time of a call.
        low, high: the quickest and the slowest round.
        rounds: number of rounds.
    """

    case: Case
    peer: str
    threads: int
    seconds: float
    low: float
    high: float
    rounds: int

    @property
    def microseconds_per_sample(self) -> float:
        """The median per sample."""
        return self.seconds / self.case.batch * 1e6


def measure(case: Case, threads: int) -> list[Timing]:
    """Return a timing of each peer, the first of which is nsc."""
    torch.manual_seed(0)
    torch.set_num_threads(threads)
    peers = WORKS[case.work](case)
    repeats = {name: _repeats(call) for name, call in peers.items()}
    rounds: dict[str, list[float]] = {name: [] for name in peers}
    start = time.perf_counter()
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > CASE_SECONDS:
            break
        for name, call in peers.items():
            if repeats[name] > 1:
                call()  # what the peer before it left in caches and allocator is not its cost
            rounds[name].append(_time(call, repeats[name]))
    return [
        Timing(case, name, threads, statistics.median(times), min(times), max(times), len(times))
        for name, times in rounds.items()
    ]


def _repeats(call: Call) -> int:
    call()  # builds the kernel, fills caches and allocator
    once = _time(call, 1)
    return max(1, int(ROUND_SECONDS / max(once, 1e-6)))


def _time(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
