"""Compiles kernels in the background, in the order of the jobs, in processes that use no GPU.

A variant is a form of the kernels that is not shipped: another choice of a constant.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import traceback
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.pool import AsyncResult
from types import TracebackType
from typing import Any
from unittest import mock

import torch

from benchmarks.gpu import carried
from nsc.compiler.driver import compile_network
from nsc.compiler.families import family_network
from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import levels
from nsc.compiler.request import Request
from nsc.compiler.schedule import CONE_COLUMNS, schedule, work_on_permutation
from nsc.compiler.selection import top_k
from nsc.join.on_demand import exact_kernel
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter
from nsc.runtime.devices.launches import exact_launches
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cubin
from nsc.runtime.relaxed.kernel import register_kernel

ART_LAMBDA = 0.25
# Cores that are left to the process that launches kernels, and to the system.
SPARE_CORES = 2
# The longest wait for a kernel: a process that was killed returns nothing.
BUILD_SECONDS = 400
SHIPPED = ""
# By the names of variants, what stands in for attributes.
VARIANTS: dict[str, tuple[tuple[object, str, object], ...]] = {
    "64 wires a warp": ((levels, "WIRES_PER_WARP", 64),),
    "256 wires a warp": ((levels, "WIRES_PER_WARP", 256),),
    "no merge apart": ((levels, "MOST_PARTED", 0),),
    "forward of 512 threads": ((levels, "FORWARD_THREADS_OF_WARP_TILES", 512),),
    "forward of 384 threads": ((levels, "FORWARD_THREADS", 384),),
}


@dataclass(frozen=True)
class Mixes:
    """The mixes of one sample.

    Attributes:
        comparators: size of the network.
        on_columns: comparators, each counted once for every column of P in its light cone.
        for_loss: the mixes that the cross entropy runs, which may take a last merge apart.
    """

    comparators: int
    on_columns: int
    for_loss: int


@dataclass(frozen=True)
class Form:
    """What is compiled.

    Attributes:
        network, n: the family and its wires.
        real: the arithmetic type.
        variant: a key of VARIANTS, or SHIPPED.
        top_k: how many of the largest values are selected; 0: all are sorted.
    """

    network: str
    n: int
    real: str = "float32"
    variant: str = SHIPPED
    top_k: int = 0

    def __str__(self) -> str:
        real, top = "" if self.real == "float32" else self.real, f"top {self.top_k}" if self.top_k else ""
        return ", ".join(filter(None, (f"{self.network} {self.n}", real, self.variant, top)))


@dataclass(frozen=True)
class Build:
    """Seconds from the name of a network to machine code.

    Attributes:
        form: what was compiled.
        text: seconds of the schedule and the CUDA text.
        binary: seconds of NVRTC, near 0 if the cache has the binary.
    """

    form: Form
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

    build: Build
    mixes: Mixes
    files: Mapping[str, str]

    @cached_property
    def sorter(self) -> Sorter:
        return Sorter(self.files)

    @cached_property
    def selector(self) -> Selector:
        return Selector(self.files)

    @property
    def network(self) -> str:
        return self.build.form.network

    @property
    def n(self) -> int:
        return self.build.form.n

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.build.form.real)
        return dtype


class Builds:
    """Builds in the background; a context that ends those that still run."""

    def __init__(self, forms: Mapping[Form, Collection[str]], target: Architecture) -> None:
        """Begin to build.

        Args:
            forms: what is built, each with the types that its exact kernel is built for.
            target: what it is built for.
        """
        self._pool = pool()
        self._results: dict[Form, AsyncResult[Subject | str]] = {
            form: self._pool.apply_async(build, (form, sorted(exact), target))
            for form, exact in forms.items()
        }
        self._subjects: dict[Form, Subject] = {}

    def subject(self, form: Form, seconds: float = BUILD_SECONDS) -> Subject:
        """Wait for a compiled network for some seconds at most, and return it.

        Raises:
            RuntimeError: it cannot be compiled; the message has the traceback of the other process.
            multiprocessing.TimeoutError: no result within that time.
        """
        if form not in self._subjects:
            result = self._results[form].get(seconds)
            if isinstance(result, str):
                raise RuntimeError(f"{form} is not built:\n{result}")
            self._subjects[form] = result
        return self._subjects[form]

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
    return context.Pool(max(1, cores - SPARE_CORES), _begin)


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    carried.use()


def build(form: Form, exact: Iterable[str], target: Architecture) -> Subject | str:
    """Return a compiled network, with its binaries in the cache, or the traceback of an error.

    The error is text, because not every exception can be passed between processes.
    """
    try:
        start = time.perf_counter()
        with contextlib.ExitStack() as stack:
            for place in VARIANTS[form.variant] if form.variant else ():
                stack.enter_context(mock.patch.object(*place))
            request = Request(
                form.network,
                form.n,
                Relaxation(art_lambda=ART_LAMBDA),
                (form.real,),
                ("cuda",),
                unproved=True,
                select=top_k(form.top_k) if form.top_k else None,
            )
            kernel = register_kernel(compile_network(request).package.files)
        compiled = time.perf_counter()
        if not form.top_k:
            cubin.build_all(kernel, target.name, target.shared_bytes)
        if exact:
            source = exact_kernel(form.n, kernel.outputs and kernel.outputs.places).source
            for dtype in exact:
                value_bytes = getattr(torch, dtype).itemsize
                launches = exact_launches(source, value_bytes, target.shared_bytes)
                exact_cuda.build(source, dtype, target.name, launches)
        seconds = Build(form, compiled - start, time.perf_counter() - compiled)
        return Subject(seconds, _mixes(form, kernel.launch.merge_layers), dict(kernel.files))
    except Exception:
        return traceback.format_exc(limit=-4)


def _mixes(form: Form, merge_layers: int) -> Mixes:
    network = family_network(form.network, form.n)

    def on_columns(part: Network) -> int:
        cut = schedule(part)
        work = work_on_permutation(form.n, cut.codelets)
        return work.comparators * min(form.n, CONE_COLUMNS)

    whole = on_columns(network)
    front = on_columns(network[:-merge_layers]) if merge_layers else whole
    return Mixes(network.size, whole, front)
