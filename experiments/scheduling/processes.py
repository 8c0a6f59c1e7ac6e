"""Runs in processes of this machine; a process does one run after another."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from experiments.run import Result, Run
from experiments.scheduling.outcomes import AGAIN, Events, Failure, Work, attempt
from nsc.runtime.devices.threads import cores

# Seconds until a process that is asked to end is forced.
_GRACE = 2


def here(work: Work, runs: list[Run]) -> Events:
    """Do runs in this process."""
    for run in runs:
        yield run
        yield attempt(work, run)


def in_processes(work: Work, runs: list[Run], jobs: int) -> Events:
    """Do runs in processes; closing the generator ends them.

    Each process has its share of the cores, however few runs there are: a run depends on its threads.
    The run of a process that dies is done again after all that wait: a run that kills processes does not
    hold up the others.
    """
    waiting = deque(runs)
    deaths: Counter[str] = Counter()
    workers: dict[Connection, _Worker] = {}
    try:
        while waiting or workers:
            while waiting and len(workers) < jobs:
                worker = _start(work, waiting.popleft(), jobs)
                workers[worker.connection] = worker
                yield worker.run
            for worker in _ready(workers):
                outcome = worker.answer()
                if outcome is not None:
                    yield outcome
                if outcome is not None and waiting:
                    yield worker.take(waiting.popleft())
                    continue
                del workers[worker.connection]
                _end([worker])
                if outcome is None:
                    deaths[worker.run.key] += 1
                    if deaths[worker.run.key] <= AGAIN:
                        waiting.append(worker.run)
                    else:
                        yield Failure(worker.run, _death(worker.process))
    finally:
        _end(workers.values())


@dataclass
class _Worker:
    """A process and the run that it has."""

    process: SpawnProcess
    connection: Connection
    run: Run

    def take(self, run: Run) -> Run:
        """Give the process a run. If the process is dead, `answer` will tell."""
        self.run = run
        with suppress(OSError):
            self.connection.send(run)
        return run

    def answer(self) -> Result | Failure | None:
        """Return what came of the run; None if the process died."""
        try:
            outcome: Result | Failure = self.connection.recv()
        except (EOFError, OSError):
            return None
        return outcome


def _ready(workers: dict[Connection, _Worker]) -> list[_Worker]:
    """Wait for answers and deaths: the connection of a dead process ends."""
    ready = set(wait(list(workers)))
    return [worker for connection, worker in workers.items() if connection in ready]


def _start(work: Work, run: Run, jobs: int) -> _Worker:
    process, connection = started(_answer, work, max(1, cores() // jobs))
    worker = _Worker(process, connection, run)
    worker.take(run)
    return worker


def _end(workers: Collection[_Worker]) -> None:
    for worker in workers:
        worker.connection.close()
    end([worker.process for worker in workers])


def _death(process: SpawnProcess) -> str:
    code = process.exitcode or 0
    how = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    return f"its process died {AGAIN + 1} times, at last {how}; if memory ran out, use fewer jobs"


def _answer(work: Work, threads: int, run: Run) -> Result | Failure:
    """Do a run in this process, which has some threads."""
    _limit_threads(threads)
    return attempt(work, run)


def _limit_threads(threads: int) -> None:
    if "OMP_NUM_THREADS" in os.environ:
        return
    # For a torch that the work imports later; one that is here has read the variable already.
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)


def started(answer: Callable[..., object], *given: object) -> tuple[SpawnProcess, Connection]:
    """Start a process, and return it with a connection.

    The process sends answer(*given, each) for each object that comes. It ends when this process has ended,
    even in the middle of an answer. Ctrl-C does not reach it.

    Args:
        answer: a function of a module; an error that it raises ends the process.
        given: its first arguments.
    """
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, answer, given), daemon=True)
    # Ctrl-C goes to every process of a terminal. The new process would print a traceback, so it inherits a
    # mask that blocks the signal, and this process ends it. Python's resource tracker starts with the first
    # process and would unblock the signal again, so it is started before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def end(processes: Collection[SpawnProcess]) -> None:
    """End processes; force those that do not end by themselves."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(_GRACE)
        process.kill()
        process.join()


def _serve(connection: Connection, answer: Callable[..., object], given: tuple[object, ...]) -> None:
    """Answer each object that comes: the main function of a process."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, OSError):  # the parent is gone
        while True:
            connection.send(answer(*given, connection.recv()))


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
