"""Workers: a function is applied to many inputs: here, in processes of this machine, or on a Dask cluster.

If a worker is killed, nothing is lost: its input is given to another worker. The user starts a cluster, on
machines where nsc is installed:

    dask scheduler
    dask worker ADDRESS --nthreads 1 --nworkers N
"""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context, parent_process, resource_tracker
from typing import Any, TypeVar

from nsc.errors import NscError, WorkerError
from nsc.wording import count

Input = TypeVar("Input")
Result = TypeVar("Result")
Map = Callable[[Sequence[Input]], list[Result]]

# How often inputs are given to new workers after the last ones died.
_AGAIN = 3
# Seconds to wait for a scheduler's answer, and until the client of a cluster has ended.
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
        with _cluster(scheduler) as client:
            yield partial(_on_cluster, client, work)
    elif jobs > 1:
        pools = [_pool(jobs)]
        try:
            yield partial(_in_processes, pools, jobs, work)
        finally:
            pools[-1].shutdown(cancel_futures=True)
    else:
        yield lambda inputs: [work(each) for each in inputs]


def _pool(jobs: int) -> Executor:
    return ProcessPoolExecutor(jobs, get_context("spawn"), _watch_parent)


def _watch_parent() -> None:
    """End this process when its parent has ended, even in the middle of its work."""

    def wait() -> None:
        parent = parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _in_processes(
    pools: list[Executor], jobs: int, work: Callable[[Input], Result], inputs: Sequence[Input]
) -> list[Result]:
    """Return the results of a pool of processes: of the last one in the list, or of new ones behind it."""
    results: dict[int, Result] = {}
    for _ in range(_AGAIN + 1):
        futures: dict[int, Future[Result]] = {}
        with suppress(BrokenProcessPool), _without_interrupts():
            for k, each in enumerate(inputs):
                if k not in results:
                    futures[k] = pools[-1].submit(work, each)
        for k, future in futures.items():
            with suppress(BrokenProcessPool):
                results[k] = future.result()
        if len(results) == len(inputs):
            return [results[k] for k in range(len(inputs))]
        pools.append(_pool(jobs))
    raise WorkerError(
        f"a process of the search died {count(_AGAIN + 1, 'time')}; if memory ran out, use fewer jobs"
    )


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Let processes that start here inherit a mask against Ctrl-C, which all of a terminal get."""
    resource_tracker.ensure_running()  # as it starts with the first process, and would unblock the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _cluster(scheduler: str) -> Iterator[Any]:
    """Yield a client of the scheduler at an address."""
    try:
        from distributed import Client
    except ImportError:
        raise WorkerError("a scheduler needs Dask: pip install distributed") from None
    # Dask logs tracebacks of a lost connection, which nsc reports as one error.
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise WorkerError(
            f"no Dask scheduler answers at {scheduler} within {PATIENCE} seconds ({error}); start one with "
            "`dask scheduler`, and workers with `dask worker ADDRESS`"
        ) from None
    try:
        yield client
    finally:
        with suppress(TimeoutError):  # a slow end is no error: the results are there
            client.close(timeout=GRACE)


def _on_cluster(client: Any, work: Callable[[Input], Result], inputs: Sequence[Input]) -> list[Result]:
    from distributed import KilledWorker

    futures = [client.submit(work, each, pure=False) for each in inputs]
    results: list[Result] = []
    for future, each in zip(futures, inputs, strict=True):
        for _ in range(_AGAIN + 1):
            try:
                results.append(future.result())
                break
            except KilledWorker:  # Dask has tried it on several workers already
                future = client.submit(work, each, pure=False)
            except NscError:
                raise
            except CancelledError:
                raise WorkerError("the Dask scheduler is lost; the search can go on from its state") from None
            except Exception as error:
                raise WorkerError(
                    f"a worker of the Dask cluster fails: {type(error).__name__}: {error}; start scheduler "
                    "and workers where the same nsc is installed"
                ) from None
        else:
            raise WorkerError(f"workers of the Dask cluster died {count(_AGAIN + 1, 'time')} at one round")
    return results
