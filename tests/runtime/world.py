"""Processes that form a process group, and run functions together."""

from __future__ import annotations

import datetime
import os
import traceback
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch


class World:
    """Some processes, each with a rank of one gloo group. Use it as a context.

    Args:
        size: how many.
        folder: where they find each other.
        seconds: how long one waits for the others.
    """

    def __init__(self, size: int, folder: Path, seconds: float = 120) -> None:
        spawn = get_context("spawn")
        self._pipes, self.processes = [], []
        for rank in range(size):
            here, there = spawn.Pipe()
            self._pipes.append(here)
            arguments = there, rank, size, folder / f"world-{size}", seconds
            self.processes.append(spawn.Process(target=_serve, args=arguments, daemon=True))

    def __enter__(self) -> World:
        for process in self.processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            with suppress(OSError):  # it died
                pipe.send(None)
        for process in self.processes:
            process.join(10)
            process.kill()

    def run(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Return what the processes return of a function of a test file.

        Raises:
            AssertionError: one of them fails; it has the traceback.
        """
        for pipe in self._pipes:
            pipe.send((function, args))
        answers = [pipe.recv() for pipe in self._pipes]
        for rank, (_, error) in enumerate(answers):
            assert error is None, f"rank {rank}: {error}"
        return [result for result, _ in answers]


def _serve(pipe: Any, rank: int, size: int, meeting: Path, seconds: float) -> None:
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.distributed.init_process_group(
        "gloo",
        init_method=meeting.as_uri(),
        rank=rank,
        world_size=size,
        timeout=datetime.timedelta(seconds=seconds),
    )
    while (task := pipe.recv()) is not None:
        function, args = task
        try:
            pipe.send((function(*args), None))
        except BaseException:
            pipe.send((None, traceback.format_exc()))
    torch.distributed.destroy_process_group()
