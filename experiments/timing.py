"""Time and memory of every loss, of sorted values, and of P itself: the paper's table 4 (section 5.5).

A loss is timed forward and backward. P of a sorting network is timed with the gradient of scores for a dense
gradient of P, as the paper times it; sorted values are timed likewise. All works on one n take turns, so that
a change of the machine's speed affects all of them. Memory is measured in a process of its own for each work,
on one thread: Linux only.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

import nsc
from benchmarks.fresh import run_fresh
from experiments.errors import ExperimentError
from experiments.methods import METHODS, Truth, depth, find
from experiments.user_files import in_a_line
from nsc.operators.sorter import Sorter
from nsc.wording import count

SIZES = (4, 16, 32, 128, 1024, 16384)
# Works on a family of networks; each other work is the loss of a method.
MATRIX, VALUES, PEER = "P of ", "values of ", "diffsort's P of "
WORKS = (
    *(f"{part}{family}" for part in (VALUES, MATRIX, PEER) for family in ("odd_even", "bitonic")),
    *METHODS,
)
# A work is left out if a call takes more seconds, or would take more by what it took at a smaller n.
LIMIT = 20.0
# So is one that would take more than this share of the machine's memory.
MOST_MEMORY = 0.4
# From this n on time and memory grow as they do on larger n.
LEAST_TELLING = 128
# Items of a call: all works on one n have the same batch. As in the paper's table of large n.
ITEMS = 4096
ROUNDS = 9
# A quick work repeats its call in each round, for so many seconds.
ROUND_SECONDS = 0.05
# A work takes no more rounds after so many seconds of its own, but at least LEAST_ROUNDS.
WORK_SECONDS = 2.0
LEAST_ROUNDS = 3
# The system counts memory by pages and in batches. Samples are added until a call takes this much.
LEAST_BYTES = 16 << 20
# The first batch whose memory is measured has this many entries in all its matrices P.
FIRST_ENTRIES = 1 << 20
MOST_BATCH = 1 << 20
# Freed blocks of this size and above go back to the system. Otherwise a call could take memory again that was
# freed before it, and its peak would not show.
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}

Call = Callable[[], object]


@dataclass(frozen=True)
class Timing:
    """Time and memory of a work on samples of n.

    Attributes:
        work: "P of FAMILY", "values of FAMILY", "diffsort's P of FAMILY", or the name of a method.
        title: for tables.
        n: items of a sample.
        threads: of torch and of nsc.
        batch: samples of a timed call.
        seconds: the median time of a call over its samples; None if the work was left out.
        bytes: peak memory of a call above its inputs, over its samples; None if it was not measured.
        reason: why the work was left out; "" if it was not.
        memory_reason: why the memory of this work could not be measured; "" otherwise.
    """

    work: str
    title: str
    n: int
    threads: int
    batch: int
    seconds: float | None
    bytes: float | None
    reason: str
    memory_reason: str = ""


def measure(
    works: Sequence[str],
    sizes: Sequence[int],
    threads: Sequence[int] = (1,),
    report: Callable[[str], None] = lambda work: None,
) -> list[Timing]:
    """Return a timing of each work on each size, for each number of threads.

    Memory is measured where the system can. A work that is left out on some size is left out on larger ones.

    Args:
        works: names of methods, and works on families.
        sizes: the n of samples.
        threads: their numbers. Memory is measured on one thread.
        report: is told what is measured next.

    Raises:
        ExperimentError: an unknown method, a work on a family that is none, both before anything is measured;
            or a work that fails.
    """
    for work in works:
        _check(work)
    timings: list[Timing] = []
    for n in sorted(sizes):
        reasons = {work: _reason(work, n, timings) for work in works}
        for number in threads:
            turns = [_Turn(work, n, number, reason=reasons[work]) for work in works]
            with _threads(number):
                for turn in turns:
                    if not turn.reason:
                        report(f"{title_of(turn.work)}, n = {n}, {count(number, 'thread')}")
                        turn.prepare()
                _take_turns([turn for turn in turns if not turn.reason])
            for turn in turns:
                peak, why = None, ""
                if can_measure_memory() and not turn.reason and number == threads[0]:
                    report(f"memory of {title_of(turn.work)}, n = {n}")
                    peak, why = _memory(turn.work, n)
                timings.append(turn.timing(peak, why))
    return timings


def _reason(work: str, n: int, timings: Sequence[Timing]) -> str:
    """Return why a work is left out before it is tried; "" if it is not."""
    if work.startswith(PEER) and importlib.util.find_spec("diffsort") is None:
        return "the package diffsort is not installed"
    available = MOST_MEMORY * os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for smaller in timings:
        if smaller.work != work:
            continue
        if smaller.reason:
            return f"it was left out at n = {smaller.n}"
        if smaller.n < max(LEAST_TELLING, timings[-1].n):  # the largest tells most
            continue
        try:
            growth = _batch(n) * _growth(work, smaller.n, n)
        except ExperimentError as error:  # no network on n wires
            return str(error)
        by = f"by what it took at n = {smaller.n}"
        if smaller.seconds is not None and smaller.seconds * growth > LIMIT:
            return f"a call would take {smaller.seconds * growth:.3g} s, {by}, the limit is {LIMIT:g} s"
        if smaller.bytes is not None and smaller.bytes * growth > available:
            return f"a call would take {smaller.bytes * growth / 1e9:.3g} GB, {by}"
    return ""


def _growth(work: str, smaller: int, n: int) -> float:
    """Return how many times as much as `smaller` a sample of n takes, at most.

    It grows as n², and of networks as n²·depth: diffsort has a matrix for each layer.

    Raises:
        ExperimentError: there is no such network on n wires.
    """
    _, name = _parts(work)
    is_network = find(name).is_network
    deeper = depth(name, n) / depth(name, smaller) if is_network else 1
    return (n / smaller) ** 2 * deeper


def _batch(n: int) -> int:
    """Return the samples of a call on samples of n."""
    return max(1, ITEMS // n)


def _parts(work: str) -> tuple[str, str]:
    """Return what is taken of a family, "" for the loss of a method, and the name of the family or method."""
    for part in (PEER, MATRIX, VALUES):
        if work.startswith(part):
            return part, work.removeprefix(part)
    return "", work


def _check(work: str) -> None:
    """Refuse a work that is unknown, or one on a family that is something else."""
    part, name = _parts(work)
    is_network = find(name).is_network
    if part and (not is_network or "+" in name):
        raise ExperimentError(
            f"{work!r}: {name!r} is not a sorting network without options, and only that has values and a P "
            f"to measure: name one, such as {WORKS[0]!r}"
        )


@contextmanager
def _named(work: str, n: int) -> Iterator[None]:
    """Name the work in an error that it raises; a user's method may raise anything."""
    try:
        yield
    except (ExperimentError, nsc.NscError) as error:
        raise ExperimentError(f"{work}, n = {n}: {error}") from None
    except (Exception, SystemExit) as error:
        raise ExperimentError(f"{work}, n = {n}: it raises {in_a_line(error)}") from None


def _memory(work: str, n: int) -> tuple[float | None, str]:
    """Return the peak memory of a work, measured in a process of its own; or why there is none."""
    try:
        found = run_fresh("experiments.timing", work, n, env=MALLOC)
    except subprocess.CalledProcessError as error:
        return None, f"the process that measures memory ended with status {error.returncode}"
    except ValueError:  # it printed something else
        return None, "the process that measures memory printed no number"
    return (None, found) if isinstance(found, str) else (float(found), "")


def title_of(work: str) -> str:
    """Return the title of a work for tables, such as "P of Bitonic"."""
    part, name = _parts(work)
    return part + find(name).title


def start(work: str, n: int, batch: int) -> Call:
    """Return a call that does a work once, on scores that are drawn here."""
    scores = torch.randn(batch, n, requires_grad=True)
    part, name = _parts(work)
    if part:
        upstream = torch.randn((batch, n) if part == VALUES else (batch, n, n))
        output = _output_of(part, name, n)
        return lambda: torch.autograd.grad(output(scores), scores, upstream)
    values = torch.rand(batch, n)
    truth = Truth(values.argsort(-1).argsort(-1), values)
    loss = find(work).start(n, None, torch.Generator().manual_seed(0))
    return lambda: torch.autograd.grad(loss(scores, truth), scores)


def _output_of(part: str, family: str, n: int) -> Callable[[Tensor], Tensor]:
    """Return what takes scores, (batch, n), and returns sorted values, (batch, n), or P, (batch, n, n)."""
    op = _operator(family, n)
    if part == VALUES:
        return op.sort
    if part == MATRIX:
        return lambda scores: op.sort_with_permutation(scores)[1]
    import diffsort  # a package for comparison, which users need not have

    sorter = diffsort.DiffSortNet(
        family, n, steepness=op.default_steepness, art_lambda=0.25, distribution="logistic_phi"
    )
    return lambda scores: sorter(scores)[1]


@cache
def _operator(family: str, n: int) -> Sorter:
    return nsc.compile(family, n, build=True)


@dataclass
class _Turn:
    """A work on one n, and the seconds of its rounds so far."""

    work: str
    n: int
    threads: int
    repeats: int = 1
    call: Call | None = None
    rounds: list[float] = field(default_factory=list)
    reason: str = ""

    @property
    def batch(self) -> int:
        """Samples of a call."""
        return _batch(self.n)

    @property
    def is_over(self) -> bool:
        """Whether it takes no more rounds."""
        took = sum(self.rounds) * self.repeats
        return len(self.rounds) >= (LEAST_ROUNDS if took > WORK_SECONDS else ROUNDS)

    def prepare(self) -> None:
        """Warm the work up, and set how often a round repeats its call.

        If one call takes longer than LIMIT, set `reason` instead: the work is left out.
        """
        torch.manual_seed(0)
        with _named(self.work, self.n):
            call = start(self.work, self.n, self.batch)
            call()  # builds the kernel
            seconds = _time(call, 1)
        if seconds > LIMIT:
            self.reason = f"a call takes {seconds:.3g} s, the limit is {LIMIT:g} s"
            return
        self.call, self.repeats = call, max(1, int(ROUND_SECONDS / seconds))

    def take(self) -> None:
        """Take one round."""
        assert self.call is not None
        with _named(self.work, self.n):
            if self.repeats > 1:
                self.call()  # refills caches and allocator after the previous work, outside the timing
            self.rounds.append(_time(self.call, self.repeats))

    def timing(self, peak: float | None, why: str) -> Timing:
        """Return what the rounds and the memory say; `why` if memory could not be measured."""
        shares = [seconds / self.batch for seconds in self.rounds]
        return Timing(
            work=self.work,
            title=title_of(self.work),
            n=self.n,
            threads=self.threads,
            batch=self.batch,
            seconds=statistics.median(shares) if shares else None,
            bytes=peak,
            reason=self.reason,
            memory_reason=why,
        )


def _take_turns(turns: Sequence[_Turn]) -> None:
    while left := [turn for turn in turns if not turn.is_over]:
        for turn in left:
            turn.take()


def _time(call: Call, repeats: int) -> float:
    begin = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - begin) / repeats


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def can_measure_memory() -> bool:
    """Return whether this system tells the peak of a process, and lets it be reset."""
    try:
        _reset_peak()
    except OSError:
        return False
    return True


def peak_of(work: str, n: int) -> float:
    """Return the peak memory of a call above its inputs, in bytes a sample.

    Samples are added until the peak is far above what the system rounds. A small call runs first, so that
    torch's one-time setup does not count.
    """
    torch.manual_seed(0)
    torch.set_num_threads(1)
    try:
        start(work, 4, 1)()
    except (ExperimentError, nsc.NscError):  # a network file serves one n
        start(work, n, 1)()
    batch = max(1, FIRST_ENTRIES // n**2)
    while True:
        call = start(work, n, batch)
        gc.collect()
        before = _reset_peak()
        call()
        peak = _status("VmHWM") - before
        if peak >= LEAST_BYTES or batch >= MOST_BATCH:
            return peak / batch
        batch *= 4


def _reset_peak() -> int:
    """Reset the peak of the process to its present memory, and return that in bytes."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    return _status("VmHWM")


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(key)) * 1024


if __name__ == "__main__":
    try:
        answer: float | str = peak_of(sys.argv[1], int(sys.argv[2]))
    except (Exception, SystemExit) as error:  # the process that asked shows it in a line
        answer = in_a_line(error)
    print(json.dumps(answer))
