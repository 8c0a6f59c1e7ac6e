"""Kernels, compiled in the background by processes that see no GPU, in the order in which they are wanted."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.pool import AsyncResult
from types import TracebackType
from typing import Any

import torch

import nsc
from nsc.compiler.families import family_network
from nsc.compiler.schedule import CONE_COLUMNS, schedule, work_on_permutation
from nsc.operators.sorter import Sorter
from nsc.runtime.devices import cubin

ART_LAMBDA = 0.25
# Left to the process that launches kernels, and to the system.
SPARE_CORES = 2
# A process that was killed returns nothing.
BUILD_SECONDS = 400


@dataclass(frozen=True)
class Mixes:
    """What a network does to a sample.

    Attributes:
        comparators: of the network.
        on_columns: its comparators times the columns of P in their light cones.
    """

    comparators: int
    on_columns: int


@dataclass(frozen=True)
class Build:
    """How long a kernel took from its name to machine code.

    Attributes:
        network, n: what was built.
        text: seconds to its CUDA text: the schedule, the templates.
        binary: seconds of NVRTC, next to nothing where the cache has the binary.
    """

    network: str
    n: int
    text: float
    binary: float


@dataclass(frozen=True)
class Architecture:
    """What kernels are compiled for.

    Attributes:
        name: such as sm_90.
        shared_bytes: shared memory that a block may ask for.
    """

    name: str
    shared_bytes: int


@dataclass(frozen=True)
class Subject:
    """A compiled network, ready to be checked and timed."""

    network: str
    build: Build
    mixes: Mixes
    files: Mapping[str, str]

    @cached_property
    def operator(self) -> Sorter:
        return Sorter(self.files)

    @property
    def n(self) -> int:
        return self.build.n


def architecture() -> Architecture:
    """Return what kernels for this machine's GPU are compiled for, as the runtime finds it."""
    properties: Any = torch.cuda.get_device_properties(0)
    return Architecture(f"sm_{properties.major}{properties.minor}", properties.shared_memory_per_block_optin)


class Builds:
    """Builds under way; a context that ends what is left of them."""

    def __init__(self, wanted: Iterable[tuple[str, int]], target: Architecture) -> None:
        self._pool = pool()
        self._results: dict[tuple[str, int], AsyncResult[Subject | str]] = {
            key: self._pool.apply_async(build, (*key, target)) for key in dict.fromkeys(wanted)
        }
        self._subjects: dict[tuple[str, int], Subject] = {}

    def subject(self, network: str, n: int) -> Subject:
        """Return a compiled network, once it is there.

        Raises:
            RuntimeError: it cannot be compiled; the message is the traceback of the other process.
            multiprocessing.TimeoutError: nothing came within BUILD_SECONDS.
        """
        if (network, n) not in self._subjects:
            found = self._results[network, n].get(BUILD_SECONDS)
            if isinstance(found, str):
                raise RuntimeError(f"{network} {n} is not built:\n{found}")
            self._subjects[network, n] = found
        return self._subjects[network, n]

    def __enter__(self) -> Builds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.terminate()
        self._pool.join()


def pool() -> Any:
    """Return as many processes as there are cores to spare, which leave an interrupt to this one."""
    # Not forked: CUDA does not outlive a fork. Not threads: torch's launches would wait for Python's lock.
    cores = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    return context.Pool(max(1, cores - SPARE_CORES), signal.signal, (signal.SIGINT, signal.SIG_IGN))


def build(network: str, n: int, target: Architecture) -> Subject | str:
    """Return a compiled network, its binary left in the cache, or the traceback of what went wrong.

    An error is text because not every exception survives the way between processes.
    """
    try:
        start = time.perf_counter()
        op = nsc.compile(network, n, art_lambda=ART_LAMBDA, targets=("cuda",), unproved=True)
        compiled = time.perf_counter()
        cubin.build(op.kernel, target.name, target.shared_bytes)
        seconds = Build(network, n, compiled - start, time.perf_counter() - compiled)
        graph = family_network(network, n)
        cut = schedule(graph)
        in_blocks = work_on_permutation(n, cut.codelets, cut.straight_shapes).comparators
        on_columns = in_blocks * min(n, CONE_COLUMNS)
        return Subject(network, seconds, Mixes(graph.size, on_columns), dict(op.kernel.files))
    except Exception:
        return traceback.format_exc(limit=-4)
