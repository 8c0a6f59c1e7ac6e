"""Timing: peers take turns, so that a change of the machine's speed affects all of them."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from benchmarks.cases import Case
from benchmarks.networks import operator
from benchmarks.peers import Call, calls, pose

ROUNDS = 9
# A quick peer repeats its call in each round, for this long.
ROUND_SECONDS = 0.05
# A group ends after this time, but not before LEAST_ROUNDS rounds.
GROUP_SECONDS = 8.0
LEAST_ROUNDS = 3


@dataclass(frozen=True)
class Timing:
    """The measured time of one peer on one case.

    Attributes:
        case: the case.
        peer: its name.
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


@dataclass(frozen=True)
class Rounds:
    """Seconds of a call.

    Attributes:
        seconds: the median of rounds.
        low, high: the quickest and the slowest round.
        rounds: number of rounds.
    """

    seconds: float
    low: float
    high: float
    rounds: int


@dataclass
class _Turn:
    """A call with a number of threads, and the seconds of its rounds so far."""

    call: Call
    threads: int
    repeats: int = 1
    rounds: list[float] = field(default_factory=list)

    def prepare(self) -> None:
        torch.set_num_threads(self.threads)
        self.call()  # builds the kernel, fills caches and allocator
        once = _time(self.call, 1)
        self.repeats = max(1, int(ROUND_SECONDS / max(once, 1e-6)))
        if self.repeats == 1:
            self.rounds.append(once)

    def take(self) -> None:
        torch.set_num_threads(self.threads)
        if self.repeats > 1:
            self.call()  # refills caches and allocator after the previous peer, outside the timing
        self.rounds.append(_time(self.call, self.repeats))

    def result(self) -> Rounds:
        return Rounds(statistics.median(self.rounds), min(self.rounds), max(self.rounds), len(self.rounds))


def measure(group: Sequence[Case], threads: Sequence[int]) -> list[Timing]:
    """Return a timing of each peer on each case for each number of threads; all of them take turns."""
    torch.manual_seed(0)
    timed = [
        (case, peer, count, call)
        for case in group
        for peer, call in calls(pose(case, operator(case.network, case.n))).items()
        for count in threads
    ]
    results = take_turns([(call, count) for _, _, count, call in timed], GROUP_SECONDS)
    return [
        Timing(case, peer, count, **vars(rounds))
        for (case, peer, count, _), rounds in zip(timed, results, strict=True)
    ]


def take_turns(calls: Sequence[tuple[Call, int]], seconds: float) -> list[Rounds]:
    """Time calls, each with a number of torch's threads, in ROUNDS rounds.

    Args:
        calls: the calls and their threads.
        seconds: when to end after LEAST_ROUNDS rounds.
    """
    turns = [_Turn(call, count) for call, count in calls]
    for turn in turns:
        turn.prepare()
    start = time.perf_counter()
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > seconds:
            break
        for turn in turns:
            if len(turn.rounds) <= number:
                turn.take()
    return [turn.result() for turn in turns]


def _time(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats
