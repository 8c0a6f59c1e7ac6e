"""The process that runs jobs on the GPU. Another one asks it, so that one that hangs can be ended.

`python -m benchmarks.gpu.worker JOB` runs one job alone, for the tools that watch it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any
from unittest import mock

import torch

import nsc
from benchmarks.gpu import carried
from benchmarks.gpu.building import Architecture, Subject, build
from benchmarks.gpu.failing import failure
from benchmarks.gpu.jobs import JOB_OF, Job, Outcome
from benchmarks.gpu.limits import Limits
from nsc.runtime.exact import cuda as exact_cuda
from nsc.runtime.relaxed import cuda

COMMAND = (sys.executable, "-m", "benchmarks.gpu.worker")
BEGIN_SECONDS = 120
# What the runtime says of a binary that the driver refuses.
NOT_LOADED = "the driver does not load"


class NoAnswerError(Exception):
    """The worker has ended, or was ended because its time was up."""


@dataclass(frozen=True)
class Machine:
    """What a worker runs on.

    Attributes:
        device: the name of the GPU.
        architecture: of the GPU.
        versions: that build and run the kernels.
    """

    device: str
    architecture: Architecture
    versions: str


class Worker:
    """A worker's process, seen from the one that asks. It begins at a question if it does not run.

    Args:
        command: what begins it; the number of its end of the pipe comes last.
    """

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._machine: Machine | None = None

    def machine(self) -> Machine:
        """Return what it runs on, as it said when it first began.

        Raises:
            NoAnswerError: it cannot use a GPU; or as `ask`.
        """
        return self._machine or self._begin()

    def ask(self, job: Job, subjects: Sequence[Subject], limits: Limits | None, seconds: float) -> Outcome:
        """Return the outcome of a job.

        Raises:
            NoAnswerError: none came within some seconds, or the process ended. It is gone then.
        """
        if self._process is None:
            self._begin()
        with contextlib.suppress(ConnectionError):  # a process that ended since: the reply says so
            self._pipe.send((job.name, subjects, limits))
        reply = self._reply(seconds)
        assert isinstance(reply, _Answer)
        if not reply.goes_on:
            self.end()
        return reply.outcome

    def end(self) -> None:
        """End the process and those that it began."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _begin(self) -> Machine:
        self._pipe, end = Pipe()
        number = end.fileno()
        self._process = subprocess.Popen(
            [*self._command, f"--pipe={number}"], pass_fds=(number,), start_new_session=True
        )
        end.close()
        machine = self._reply(BEGIN_SECONDS)
        if isinstance(machine, str):
            self.end()
            raise NoAnswerError(machine)
        assert isinstance(machine, Machine)
        self._machine = machine
        return machine

    def _reply(self, seconds: float) -> Any:
        assert self._process is not None
        try:
            if self._pipe.poll(max(0, seconds)):
                return self._pipe.recv()
        except (EOFError, ConnectionError):
            code = self._process.wait()
            self.end()
            raise NoAnswerError(f"the process ended with {code}") from None
        self.end()
        raise NoAnswerError(f"no end within {seconds:.0f} s: the process was ended")


# ------------------------------------------------------------------------------------- in the process


@dataclass(frozen=True)
class _Answer:
    """The outcome of a job, and whether the GPU still answers behind it."""

    outcome: Outcome
    goes_on: bool


def serve(pipe: Connection) -> None:
    """Answer questions until the pipe is closed, or the GPU no longer answers."""
    try:
        pipe.send(machine())
    except Exception as error:
        pipe.send(f"torch sees no CUDA device: this benchmark is for machines with a GPU ({error})")
        return
    goes_on = True
    while goes_on:
        try:
            name, subjects, limits = pipe.recv()
        except EOFError:
            return
        outcome = run(JOB_OF[name], subjects, limits)
        if carried.is_used() and any(NOT_LOADED in text for text in outcome.failures):
            carried.leave_out()
            outcome = run(JOB_OF[name], subjects, limits)
        goes_on = _answers()
        pipe.send(_Answer(outcome, goes_on))


def machine() -> Machine:
    """Return what this process runs on."""
    properties: Any = torch.cuda.get_device_properties(0)
    architecture = Architecture(
        f"sm_{properties.major}{properties.minor}", properties.shared_memory_per_block_optin
    )
    cupy: Any = importlib.import_module("cupy")
    nvrtc = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    versions = f"torch {torch.__version__}, CuPy {cupy.__version__}, NVRTC {nvrtc}, nsc {nsc.__version__}"
    return Machine(torch.cuda.get_device_name(), architecture, versions)


def run(job: Job, subjects: Sequence[Subject], limits: Limits | None) -> Outcome:
    """Return the outcome of a job; a failure names the kernels that were launched last."""
    assert job.run is not None
    start, launched = time.perf_counter(), list[str]()
    with _noting(cuda, launched), _noting(exact_cuda, launched):
        try:
            subject, *variants = subjects or (None,)
            outcome = job.run(subject, limits, variants)  # type: ignore[arg-type]  # limits need no network
        except Exception as error:
            outcome = Outcome(job.name, (failure(error),))
    if outcome.failures:
        kernels = ", ".join(dict.fromkeys(launched[-8:])) or "none"
        outcome = replace(outcome, failures=(*outcome.failures, f"kernels launched last: {kernels}"))
    return replace(outcome, seconds=time.perf_counter() - start)


class _Noted:
    """A program that notes the name of each function that it launches."""

    def __init__(self, program: Any, launched: list[str]) -> None:
        self._program, self._launched = program, launched

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def launch(self, function: str, *rest: Any) -> None:
        self._launched.append(function)
        self._program.launch(function, *rest)


@contextlib.contextmanager
def _noting(module: ModuleType, launched: list[str]) -> Iterator[None]:
    plain = module.program_of
    with mock.patch.object(module, "program_of", lambda *key: _Noted(plain(*key), launched)):
        yield


def _answers() -> bool:
    """Free memory that nothing uses; say whether the GPU still answers.

    After an access to a wrong address every call fails.
    """
    try:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
    except Exception:
        return False
    return True


def main(word: str) -> None:
    """Serve a pipe, or run one job and end with 1 if it fails."""
    carried.use()
    if word.startswith("--pipe="):
        serve(Connection(int(word.removeprefix("--pipe="))))
        return
    job, target = JOB_OF[word], machine().architecture
    subjects = [build(form, job.exact, target) for form in job.forms]
    assert all(isinstance(subject, Subject) for subject in subjects), subjects
    outcome = run(job, subjects, None)  # type: ignore[arg-type]
    sys.exit("\n".join(outcome.failures) or 0)


if __name__ == "__main__":
    main(sys.argv[1])
