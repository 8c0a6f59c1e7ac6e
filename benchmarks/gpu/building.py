"""Compiles kernels in the background, in the order of the jobs, in processes that use no GPU."""

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
from nsc.runtime.relaxed import cubin

ART_LAMBDA = 0.25
# Cores that are left to the process that launches kernels, and to the system.
SPARE_CORES = 2
# The longest wait for a kernel: a process that was killed returns nothing.
BUILD_SECONDS = 400


@dataclass(frozen=True)
class Mixes:
    """The mixes of one sample.

    Attributes:
        comparators: size of the network.
        on_columns: comparators, each counted once for every column of P in its light cone.
    """

    comparators: int
    on_columns: int


@dataclass(frozen=True)
class Build:
    """Seconds from the name of a network to machine code.

    Attributes:
        network, n: the family and its wires.
        text: seconds of the schedule and the CUDA text.
        binary: seconds of NVRTC, near 0 if the cache has the binary.
    """

    network: str
    n: int
    text: float
    binary: float


@dataclass(frozen=True)
class Architecture:
    """The GPU that kernels are compiled for.

    Attributes:
        name: such as sm_90.
        shared_bytes: the most shared memory that a block may have.
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
    """Return the architecture of this machine's GPU, as the runtime finds it."""
    properties: Any = torch.cuda.get_device_properties(0)
    return Architecture(f"sm_{properties.major}{properties.minor}", properties.shared_memory_per_block_optin)


class Builds:
    """Builds in the background; a context that ends those that still run."""

    def __init__(self, networks: Iterable[tuple[str, int]], target: Architecture) -> None:
        self._pool = pool()
        self._results: dict[tuple[str, int], AsyncResult[Subject | str]] = {
            key: self._pool.apply_async(build, (*key, target)) for key in dict.fromkeys(networks)
        }
        self._subjects: dict[tuple[str, int], Subject] = {}

    def subject(self, network: str, n: int) -> Subject:
        """Wait for a compiled network, and return it.

        Raises:
            RuntimeError: it cannot be compiled; the message has the traceback of the other process.
            multiprocessing.TimeoutError: no result within BUILD_SECONDS.
        """
        if (network, n) not in self._subjects:
            result = self._results[network, n].get(BUILD_SECONDS)
            if isinstance(result, str):
                raise RuntimeError(f"{network} {n} is not built:\n{result}")
            self._subjects[network, n] = result
        return self._subjects[network, n]

    def __enter__(self) -> Builds:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.terminate()
        self._pool.join()


def pool() -> Any:
    """Return a pool, a process for each spare core; its processes ignore interrupts, which end this one."""
    # Not forked: CUDA does not survive a fork. Not threads: torch's launches would wait for Python's lock.
    cores = len(os.sched_getaffinity(0))
    context = multiprocessing.get_context("spawn")
    return context.Pool(max(1, cores - SPARE_CORES), signal.signal, (signal.SIGINT, signal.SIG_IGN))


def build(network: str, n: int, target: Architecture) -> Subject | str:
    """Return a compiled network, with its binary in the cache, or the traceback of an error.

    The error is text, because not every exception can be passed between processes.
    """
    try:
        start = time.perf_counter()
        op = nsc.compile(network, n, art_lambda=ART_LAMBDA, targets=("cuda",), unproved=True)
        compiled = time.perf_counter()
        cubin.build_all(op.kernel, target.name, target.shared_bytes)
        seconds = Build(network, n, compiled - start, time.perf_counter() - compiled)
        graph = family_network(network, n)
        cut = schedule(graph)
        in_blocks = work_on_permutation(n, cut.codelets, cut.straight_shapes).comparators
        on_columns = in_blocks * min(n, CONE_COLUMNS)
        return Subject(network, seconds, Mixes(graph.size, on_columns), dict(op.kernel.files))
    except Exception:
        return traceback.format_exc(limit=-4)
