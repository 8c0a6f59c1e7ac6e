"""The client of a Dask cluster that the user has started."""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import asyncio
import logging
import pickle
import threading
from collections.abc import Callable
from functools import cache
from queue import SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Client
    from tornado.ioloop import IOLoop

# Seconds to wait for a scheduler's answer.
PATIENCE = 10


def connect(scheduler: str) -> Client:
    """Return a client of the scheduler at an address.

    Raises:
        ImportError: Dask is not installed.
        ConnectionError: no scheduler answers.
    """
    from distributed import Client

    # It logs the tracebacks of a lost connection, which is told as one error.
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
    """Return a function that calls what a parcel holds: a pickled function and its argument.

    Dask sends a function inside a function as code, others by the name of their module. So the scheduler need
    not import what does the work, and a worker that cannot import it reports an error instead of leaving the
    cluster.
    """

    def opened(parcel: bytes) -> object:
        function, each = pickle.loads(parcel)
        return function(each)

    return opened
