"""Runs on a Dask cluster that the user has started.

    python -m dask scheduler
    python -m dask worker ADDRESS --nthreads 1 --nworkers N

Workers are started in a checkout of the repository: `python -m` lets them import `experiments` from there.
"""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.scheduling.outcomes import AGAIN, Events, Failure, Work, attempt, reason

if TYPE_CHECKING:
    from distributed import Client, Future
    from tornado.ioloop import IOLoop

WORKERS = "python -m dask worker ADDRESS --nthreads 1 --nworkers N"
IN_CHECKOUT = "in a checkout of the repository"
# Seconds to wait for a scheduler's answer, and until a client has ended.
PATIENCE, GRACE = 10, 2
# How often Dask may blame a run that was only waiting at a worker that died.
BLAMES = 10


def on_cluster(work: Work, runs: list[Run], scheduler: str) -> Events:
    """Do runs on the workers of a scheduler; closing the generator takes back those that have not begun.

    Dask gives the runs of a worker that dies to another one, a few times. Then it gives up all of them, also
    those that were only waiting there; these are sent again. Without workers, runs wait for one.

    Raises:
        ExperimentError: Dask is not installed, the scheduler does not answer or is lost, or a worker has
            several threads.
    """
    client = _connect(scheduler)
    # The keys of runs that begin, and futures that have ended. Threads of the client put them in.
    events: SimpleQueue[str | Future[Any]] = SimpleQueue()
    topic = f"nsc-{uuid.uuid4().hex}"
    sent: dict[Any, tuple[Future[Any], Run]] = {}

    def send(runs: list[Run]) -> None:
        parcels = [pickle.dumps((partial(_on_worker, work, topic), run)) for run in runs]
        for future, run in zip(client.map(opener(), parcels, pure=False), runs, strict=True):
            sent[future.key] = future, run  # Dask drops the work of a future that nobody holds
            future.add_done_callback(events.put)

    try:
        _check_threads(client)
        if not client.nthreads():
            click.echo(
                f"waits for workers of {scheduler}: start them {IN_CHECKOUT} with `{WORKERS}`", err=True
            )
        client.subscribe_topic(topic, lambda event: events.put(event[1]))
        send(runs)
        unfinished = {run.key: run for run in runs}
        begun: Counter[str] = Counter()
        blamed: Counter[str] = Counter()
        while unfinished:
            event = events.get()
            if isinstance(event, str):
                if event in unfinished:
                    begun[event] += 1
                    yield unfinished[event]
                continue
            _, run = sent.pop(event.key)
            outcome = _outcome(event, run, scheduler)
            if outcome is None:
                blamed[run.key] += 1
                if begun[run.key] <= AGAIN and blamed[run.key] <= BLAMES:
                    send([run])
                    continue
                why = f"its worker died {begun[run.key] or 'many'} times; the workers' logs say how"
                outcome = Failure(run, why)
            del unfinished[run.key]
            yield outcome
    finally:
        with suppress(TimeoutError):  # a slow goodbye is no error: the results are there
            client.close(timeout=GRACE)


def _connect(scheduler: str) -> Client:
    try:
        return connect(scheduler)
    except ImportError:
        raise ExperimentError("a scheduler needs Dask: pip install -e '.[cluster]'") from None
    except ConnectionError as error:
        raise ExperimentError(
            f"{error}; start one with `python -m dask scheduler`, and workers {IN_CHECKOUT} with `{WORKERS}`"
        ) from None


def _check_threads(client: Client) -> None:
    for worker, threads in client.nthreads().items():
        if threads > 1:
            raise ExperimentError(
                f"the worker {worker} has {threads} threads, but a run needs a process of its own; start "
                f"workers with `{WORKERS}`"
            )


# Runs seed the generators of their process. A worker with several threads can still come later.
_alone = threading.Lock()


def _on_worker(work: Work, topic: str, run: Run) -> Result | Failure:
    from distributed import get_worker

    with _alone:
        get_worker().log_event(topic, run.key)
        return attempt(work, run)


def _outcome(future: Future[Any], run: Run, scheduler: str) -> Result | Failure | None:
    """Return what came of a run; None if Dask gave it up because workers died.

    Raises:
        ExperimentError: the scheduler is lost.
    """
    from distributed import KilledWorker

    if future.cancelled():
        raise ExperimentError(
            f"the scheduler at {scheduler} is lost; finished results are kept, start again for the others"
        )
    error = future.exception()
    if isinstance(error, KilledWorker):
        return None
    if error is not None:
        why = f"a worker cannot begin it: {reason(error)}; start workers {IN_CHECKOUT} with `{WORKERS}`"
        return Failure(run, why)
    outcome: Result | Failure = future.result()
    return outcome


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
