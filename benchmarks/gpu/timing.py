"""Times of a case: of each peer, and of each kernel that nsc launches."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any
from unittest import mock

import torch

from benchmarks.gpu import events
from benchmarks.gpu.building import Subject
from benchmarks.gpu.events import LEAST_ROUNDS, ROUNDS, Call, Seconds, event, once, repeats_of
from benchmarks.gpu.failing import failure
from benchmarks.gpu.limits import Limits, limit_seconds
from benchmarks.gpu.peers import NSC, P_GRAD, PEERS, Peer
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cuda

# The rounds of a peer end after this time, but not before LEAST_ROUNDS rounds.
PEER_SECONDS = 1.5
# A quick round repeats its call for this long.
QUICK_SECONDS = 0.01
LAUNCH_CALLS = 7


@dataclass(frozen=True)
class Timing:
    """The measured time of one peer on one case.

    Attributes:
        work, network, n, batch: the case.
        peer: its name.
        seconds: the median time of a call.
        low, high: the quickest and the slowest round.
        host: the median time until a call returns.
        limits: seconds of the case at each limit of the device, for nsc alone; see limits.limit_seconds.
    """

    work: str
    network: str
    n: int
    batch: int
    peer: str
    seconds: float
    low: float
    high: float
    host: float
    limits: dict[str, float]

    @property
    def nanoseconds_per_sample(self) -> float:
        return self.seconds / self.batch * 1e9

    @property
    def binding(self) -> str:
        """The limit that takes longest; "" where none is known."""
        return max(self.limits, key=lambda name: self.limits[name], default="")

    @property
    def share(self) -> float | None:
        """The time at the limit that binds over the time measured."""
        return self.limits[self.binding] / self.seconds if self.limits else None


@dataclass(frozen=True)
class LaunchTime:
    """The time of the launches of one kernel with one grid in a call.

    Attributes:
        peer: whose call it is.
        function, blocks: the kernel and its grid.
        launches: number of launches in a call.
        seconds: of all of them together, the median over some calls.
        share: of the time of all kernels.
    """

    peer: str
    function: str
    blocks: int
    launches: int
    seconds: float
    share: float


@dataclass
class _Turn:
    peer: str
    subject: Subject
    batch: int
    call: Call
    repeats: int
    is_own: bool
    rounds: list[Seconds] = field(default_factory=list)

    def take(self) -> None:
        if self.repeats > 1:
            self.call()  # refills caches and allocator after the previous peer, outside the timing
        self.rounds.append(once(self.call, self.repeats))

    @property
    def times(self) -> list[float]:
        return [seconds.device for seconds in self.rounds]

    @property
    def is_over(self) -> bool:
        taken = sum(self.times) * self.repeats
        return len(self.rounds) >= LEAST_ROUNDS and taken > PEER_SECONDS


def time_case(
    work: str,
    peers: Sequence[Peer],
    subject: Subject,
    limits: Limits | None,
    variants: Sequence[Subject] = (),
    is_quick: bool = False,
) -> tuple[list[Timing], list[LaunchTime], list[str]]:
    """Return a timing of each peer, the times of the kernels of this project, and the failures.

    Peers take turns, so that a change of the device's clock affects all of them. So do the variants of the
    kernels, as the first peer. Quick rounds are shorter and fewer.
    """
    turns, failures = [], []
    count, seconds = (LEAST_ROUNDS, QUICK_SECONDS) if is_quick else (ROUNDS, events.ROUND_SECONDS)
    first, *others = peers
    runs = [(first.name, first, subject)]
    runs += [(f"{first.name}, {each.build.form.variant}", first, each) for each in variants]
    for name, peer, of in [*runs, *((other.name, other, subject) for other in others)]:
        batch = peer.batch(work, of)
        if not batch:
            continue
        try:
            call = peer.start(work, of, batch)
            turns.append(_Turn(name, of, batch, call, repeats_of(call, seconds), is_own=peer.name == NSC))
        except Exception as error:
            failures.append(f"{name}, batch {batch}: {failure(error)}")
    for _ in range(count):
        for turn in list(turns):
            if turn.is_over:
                continue
            try:
                turn.take()
            except Exception as error:
                failures.append(f"{turn.peer}, batch {turn.batch}: {failure(error)}")
                turns.remove(turn)
    timings = [
        Timing(
            work,
            subject.network,
            subject.n,
            turn.batch,
            turn.peer,
            statistics.median(turn.times),
            min(turn.times),
            max(turn.times),
            statistics.median(each.host for each in turn.rounds),
            {}
            if not turn.is_own or limits is None
            else limit_seconds(work, subject.n, turn.batch, turn.subject.mixes, limits),
        )
        for turn in turns
    ]
    launches: list[LaunchTime] = []
    for turn in turns:
        if turn.is_own:
            try:
                launches += time_launches(turn.peer, turn.call)
            except Exception as error:
                failures.append(f"{turn.peer}, launch by launch: {failure(error)}")
    return timings, launches, failures


# ---------------------------------------------------------------------------------------- launches


_Launch = tuple[str, int]
_Span = tuple[_Launch, torch.cuda.Event, torch.cuda.Event]


class _Recorded:
    """A program that records an event before and after each launch."""

    def __init__(self, program: Any, spans: list[_Span]) -> None:
        self._program = program
        self._spans = spans

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def launch(self, function: str, blocks: int, *rest: Any) -> None:
        start, end = event(), event()
        start.record()
        self._program.launch(function, blocks, *rest)
        end.record()
        self._spans.append(((function, blocks), start, end))


def time_launches(peer: str, call: Call) -> list[LaunchTime]:
    """Return the time of each kernel in a peer's call, the slowest first.

    Events keep launches apart: these times leave out the gaps between kernels, and each launch includes the
    time of an event (Limits.event_seconds).
    """
    calls = []
    for _ in range(LAUNCH_CALLS):
        spans: list[_Span] = []
        with _recording(cuda, spans), _recording(exact_cuda, spans):
            call()
            torch.cuda.synchronize()
        times: dict[_Launch, list[float]] = defaultdict(list)
        for key, start, end in spans:
            times[key].append(start.elapsed_time(end) / 1e3)
        calls.append(times)
    medians = {key: statistics.median(sum(times[key]) for times in calls) for key in calls[0]}
    total = sum(medians.values())
    launch_times = [
        LaunchTime(peer, *key, len(calls[0][key]), seconds, seconds / total)
        for key, seconds in medians.items()
    ]
    return sorted(launch_times, key=lambda launch: -launch.seconds)


def _recording(module: ModuleType, spans: list[_Span]) -> AbstractContextManager[Any]:
    """Return a context in which the launches of a module's programs are recorded."""
    plain: Callable[..., Any] = module.program_of
    return mock.patch.object(module, "program_of", lambda *key: _Recorded(plain(*key), spans))


# ------------------------------------------------------------------------------------------ memory


def memory_above_outputs(subject: Subject, batch: int) -> float:
    """Return the peak memory of P and its backward above inputs and outputs, as a multiple of P's size."""
    call = PEERS[P_GRAD][0].start(P_GRAD, subject, batch)
    call()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    size = 4 * batch * subject.n**2
    return (torch.cuda.max_memory_allocated() - before - size) / size
