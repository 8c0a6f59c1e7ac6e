"""Builds in threads. The process does not wait for them: at its end their compilers are killed."""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence

from nsc.runtime.build.notice import silence

# How long the end of a process waits for a thread whose compiler was killed, so that it removes the build's
# files, and for one without a compiler, which may wait for another process.
_KILLED_SECONDS, _OTHER_SECONDS = 10.0, 0.2


class _EndedError(Exception):
    """The process ends, so a build does."""


class _Build(threading.Thread):
    def __init__(self, name: str, work: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self._work = work
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._compiler: subprocess.Popen[str] | None = None
        self._ended = False

    def run(self) -> None:
        try:
            with silence():
                self._work()
        except _EndedError:
            pass
        finally:
            _builds.discard(self)

    def completed(self, command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
        with self._lock:
            if self._ended:
                raise _EndedError
            # A session of its own: a compiler's children are killed with it.
            self._compiler = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        try:
            output, log = self._compiler.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(self._compiler.pid, signal.SIGKILL)
            self._compiler.communicate()
            raise
        with self._lock:
            compiler, self._compiler = self._compiler, None
            if self._ended:
                raise _EndedError
        return subprocess.CompletedProcess(command, compiler.returncode, output, log)

    def end(self) -> None:
        # A forked process inherits this and has no such thread.
        if os.getpid() != self._process:
            return
        with self._lock:
            self._ended = True
            if self._compiler is not None and self._compiler.poll() is None:
                os.killpg(self._compiler.pid, signal.SIGKILL)
            seconds = _OTHER_SECONDS if self._compiler is None else _KILLED_SECONDS
        self.join(seconds)


_builds: set[_Build] = set()


def begin(name: str, work: Callable[[], None]) -> None:
    """Run the work of a build in a thread of that name."""
    build = _Build(name, work)
    _builds.add(build)
    build.start()


def completed(command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
    """Return what a compiler answered. If a thread of `begin` calls it, the end of the process kills it.

    Raises:
        OSError: it does not run.
        subprocess.TimeoutExpired: it took longer, and was killed.
    """
    thread = threading.current_thread()
    if isinstance(thread, _Build):
        return thread.completed(command, seconds)
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL)


@atexit.register
def _end_builds() -> None:
    for build in list(_builds):
        build.end()
