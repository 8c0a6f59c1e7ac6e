"""Workers: a function is applied to many inputs: here, in processes of this machine, or on a Dask cluster.

If a worker is killed, nothing is lost: its input is given to another worker. The user starts a cluster, on
machines where nsc is installed:

    dask scheduler
    dask worker ADDRESS --nthreads 1 --nworkers N
"""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import logging
import os
import pickle
import signal
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from multiprocessing import get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from nsc.errors import NscError, WorkerError
from nsc.wording import count

if TYPE_CHECKING:
    from distributed import Client
    from tornado.ioloop import IOLoop

Input = TypeVar("Input")
Result = TypeVar("Result")
Map = Callable[[Sequence[Input]], list[Result]]

# How often an input is given to a new worker after the last one died.
_AGAIN = 3
# More, because Dask also counts a worker's death against inputs that were only waiting there.
_AGAIN_ON_CLUSTER = 10
# Seconds to wait for a scheduler's answer, and until a process, or the client of a cluster, has ended.
PATIENCE, GRACE = 10, 2


@contextmanager
def workers(
    work: Callable[[Input], Result], jobs: int = 1, scheduler: str | None = None
) -> Iterator[Map[Input, Result]]:
    """Yield a function that takes inputs and returns the results of the work, in the order of the inputs.

    Args:
        work: a function of a module.
        jobs: processes of this machine; 1: this process.
        scheduler: the address of a Dask scheduler, whose cluster replaces the processes; None: no cluster.

    Raises:
        WorkerError: no Dask, no scheduler that answers, or a worker that dies again and again. Errors of nsc
            in a worker are raised here.
    """
    if scheduler is not None:
        with _cluster(work, scheduler) as on_cluster:
            yield on_cluster
    elif jobs > 1:
        processes = [_Process(work) for _ in range(jobs)]
        try:
            yield lambda inputs: _in_processes(processes, inputs)
        finally:
            for process in processes:
                process.end()
    else:
        yield lambda inputs: [work(each) for each in inputs]


class _Process(Generic[Input, Result]):
    """A process that works on one input after another. It starts with the first, and again after a death."""

    def __init__(self, work: Callable[[Input], Result]) -> None:
        self.work = work
        self.process: SpawnProcess | None = None
        self.connection: Connection

    def take(self, each: Input) -> None:
        if self.process is None:
            self.process, self.connection = started(_attempt, self.work)
        with suppress(OSError):  # the process is dead, which `answer` notices
            self.connection.send(each)

    def answer(self, each: Input) -> Result:
        """Return the result for the input that `take` received.

        Raises:
            WorkerError: the process dies again and again.
        """
        for attempt in range(_AGAIN + 1):
            if attempt:
                self.take(each)
            try:
                result: Result | NscError = self.connection.recv()
            except (EOFError, OSError):
                self.end()
                continue
            if isinstance(result, BaseException):
                raise result
            return result
        raise WorkerError(
            f"a process of the search died {count(_AGAIN + 1, 'time')}; if memory ran out, use fewer jobs"
        )

    def end(self) -> None:
        if self.process is not None:
            self.connection.close()
            end([self.process])
            self.process = None


def _in_processes(processes: Sequence[_Process[Input, Result]], inputs: Sequence[Input]) -> list[Result]:
    results: list[Result] = []
    for start in range(0, len(inputs), len(processes)):
        pairs = list(zip(processes, inputs[start : start + len(processes)], strict=False))
        for process, each in pairs:
            process.take(each)
        results += [process.answer(each) for process, each in pairs]
    return results


def _attempt(work: Callable[[Any], object], each: object) -> object:
    try:
        return work(each)
    except NscError as error:
        return error
    except Exception as error:  # the other side may not be able to read its type
        return WorkerError(f"a worker failed: {type(error).__name__}: {error}")


@contextmanager
def _cluster(work: Callable[[Input], Result], scheduler: str) -> Iterator[Map[Input, Result]]:
    try:
        client = connect(scheduler)
    except ImportError:
        raise WorkerError("a scheduler needs Dask: pip install distributed") from None
    except ConnectionError as error:
        raise WorkerError(
            f"{error}; start one with `dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from None
    try:
        yield lambda inputs: _on_cluster(client, work, inputs)
    finally:
        with suppress(TimeoutError):  # a slow end is no error: the results are there
            client.close(timeout=GRACE)


def _on_cluster(client: Any, work: Callable[[Input], Result], inputs: Sequence[Input]) -> list[Result]:
    from concurrent.futures import CancelledError

    from distributed import KilledWorker

    def send(each: Input) -> Any:
        return client.submit(opener(), pickle.dumps((partial(_attempt, work), each)), pure=False)

    futures = [send(each) for each in inputs]
    results: list[Result] = []
    for future, each in zip(futures, inputs, strict=True):
        for _ in range(_AGAIN_ON_CLUSTER):
            try:
                result = future.result()
                break
            except KilledWorker:
                future = send(each)
            except CancelledError:
                raise WorkerError("the Dask scheduler is lost; the search can go on from its state") from None
            except Exception as error:
                raise WorkerError(
                    f"a worker of the Dask cluster cannot begin: {type(error).__name__}: {error}; start "
                    "workers where the same nsc is installed"
                ) from None
        else:
            raise WorkerError(f"workers of the Dask cluster died {_AGAIN_ON_CLUSTER} times at one round")
        if isinstance(result, BaseException):
            raise result
        results.append(result)
    return results


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
        process.join(GRACE)
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


def connect(scheduler: str) -> Client:
    """Return a client of the scheduler at an address.

    Raises:
        ImportError: Dask is not installed.
        ConnectionError: no scheduler answers.
    """
    from distributed import Client

    # Dask logs tracebacks of a lost connection, which nsc reports as one error.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        return Client(scheduler, loop=_loop(), timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        why = f"no Dask scheduler answers at {scheduler} within {PATIENCE} seconds ({error})"
        raise ConnectionError(why) from None


@cache
def _loop() -> IOLoop:
    """Return an event loop that a thread runs until the process ends.

    A client without one starts its own and waits 10 seconds until the thread begins. On a busy machine that
    can be too short, and ends in a bare AssertionError.
    """
    from tornado.ioloop import IOLoop

    begun: SimpleQueue[IOLoop] = SimpleQueue()

    async def run() -> None:
        begun.put(IOLoop.current())
        await asyncio.Event().wait()

    threading.Thread(target=asyncio.run, args=[run()], name="Dask's event loop", daemon=True).start()
    return begun.get()


def opener() -> Callable[[bytes], object]:
    """Return a function that opens a parcel, a pickled function and its argument, and calls the function.

    Dask sends an inner function as code, other functions by the name of their module. So the scheduler need
    not import the module that does the work, and a worker that cannot import it reports an error instead of
    leaving the cluster.
    """

    def opened(parcel: bytes) -> object:
        function, each = pickle.loads(parcel)
        return function(each)

    return opened
