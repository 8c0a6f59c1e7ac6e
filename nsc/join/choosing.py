"""Which serves a call of arrays or tensors: a peer such as NumPy, or a kernel once its build has paid.

The rule is one for all exact functions. The peer serves at first. The time that calls of a kind take beyond
what a kernel would take is added up. When the sum reaches the time of a build, the kernel is built. So a
program never takes more than twice the time of the best choice in hindsight. A kernel that is kept on disk
is loaded by the same rule, which then counts milliseconds.

Source of the rule: A. R. Karlin, M. S. Manasse, L. Rudolph and D. D. Sleator, "Competitive snoopy caching",
Algorithmica 3 (1988), section 2.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Generic, TypeVar

from nsc.errors import BuildError, ToolchainError, UnprovedError
from nsc.runtime.build import prebuilt
from nsc.runtime.devices.threads import Lock

Kernel = TypeVar("Kernel")
Result = TypeVar("Result")

# Seconds that it takes to look for a kept kernel and to load it.
_LOADING = 0.01
# Fewer samples, or fewer values, are the peer's: they do not fill a kernel's registers, or the way to it
# takes longer than the work.
LEAST_SAMPLES, LEAST_VALUES = 16, 2048
# Calls of a kernel that are timed before it is left for being slow: the first ones may be slow by chance, or
# because its code is not in the caches.
_TRIALS = 3
# The share of the samples of a large call on which the peer is timed, if the call is of a new kind.
_PROBE = 1 / 32

# Has an entry for each block of `prepare` that is open. Threads change a list without a lock, but no count.
_prepared: list[None] = []


@contextmanager
def prepare() -> Iterator[None]:
    """Build kernels for the calls in a `with` statement, whatever they save.

    Inside, a kernel serves each call that one can serve, in all threads of the process. Afterwards the
    kernels are loaded, and serve where they are faster. Calls inside raise ToolchainError where there is no
    compiler, and BuildError if it fails.

    >>> import nsc
    >>> with nsc.numpy.prepare():
    ...     nsc.numpy.median([[3, 1, 2]] * 100, axis=1)[0]
    np.float64(2.0)
    """
    _prepared.append(None)
    try:
        yield
    finally:
        _prepared.pop()


def is_prepared() -> bool:
    """Return whether a block of `prepare` is open."""
    return bool(_prepared)


class Kind(Generic[Kernel]):
    """The calls that one kernel can serve, and what is known of their time.

    Args:
        kept: returns the kernel if it is kept on disk, else None.
        built: returns it, built.
        build_seconds: how long a build takes, about.
        factor: how many times as fast as the peer the kernel is, about; this is taken until it is measured.
    """

    def __init__(
        self,
        kept: Callable[[], Kernel | None],
        built: Callable[[], Kernel],
        build_seconds: float,
        factor: float,
    ) -> None:
        self._kept, self._built, self._factor = kept, built, factor
        self._build_seconds = build_seconds
        self._kernel: Kernel | None = None
        self._lock = Lock()
        # Least seconds of a sample, and how often the kernel was timed.
        self._by_peer = self._by_kernel = math.inf
        self._trials = 0
        # Seconds that a kernel would have saved, and their sum at which the next step is taken.
        self._lost, self._limit = 0.0, _LOADING

    def chosen(self, samples: int, by_peer: Callable[[float], int]) -> Kernel | None:
        """Return the kernel that serves a call; None: the peer does. Arguments as in `serve`."""
        if _prepared:
            with suppress(UnprovedError):
                return self.build()
            return None
        if self._by_peer == math.inf:
            if samples * _PROBE < LEAST_SAMPLES:
                return None  # this call is timed
            begin = time.perf_counter()
            count = by_peer(_PROBE)
            self._by_peer = (time.perf_counter() - begin) / count
        by_kernel = self._by_peer / self._factor if self._trials < _TRIALS else self._by_kernel
        saved = samples * (self._by_peer - by_kernel)
        if saved <= 0:
            return None
        if self._kernel is None:
            self._pay(saved)
        return self._kernel

    def build(self) -> Kernel:
        """Return the kernel, built now unless it is kept on disk.

        Raises:
            ToolchainError, BuildError, UnprovedError: it cannot be built.
        """
        if self._kernel is None:
            with self._lock:
                if self._kernel is None:
                    self._kernel = self._kept() or self._built()
        return self._kernel

    def _pay(self, saved: float) -> None:
        """Note what a kernel would save; load it, or build it, if that has paid."""
        self._lost += saved
        if self._lost >= self._limit == _LOADING:
            self._limit = max(_LOADING, self._build_seconds)
            with self._lock:  # another thread may build it
                self._kernel = self._kernel or self._kept()
        if self._lost >= self._limit and self._kernel is None:
            self._limit = math.inf
            try:
                self.build()
            except UnprovedError:
                pass
            except ToolchainError as error:
                # Who installs prebuilt libraries, and names no compiler, has chosen to be without one.
                if not prebuilt.serve():
                    _warn(str(error))
            except BuildError as error:
                _warn(str(error))

    def note(self, kernel: Kernel | None, seconds: float) -> None:
        """Note how long a sample took, by the kernel or by the peer."""
        if kernel is None:
            self._by_peer = min(self._by_peer, seconds)
        else:
            self._by_kernel = min(self._by_kernel, seconds)
            self._trials += 1


def serve(
    find: Callable[[], Kind[Kernel] | None],
    samples: int,
    values: int,
    call: Callable[[Kernel | None], Result],
    by_peer: Callable[[float], int],
) -> Result:
    """Return the result of a call, by its kernel or by the peer.

    Args:
        find: returns the call's kind; None: no kernel can serve it.
        samples, values: how many the call has.
        call: does the work by a kernel, or by the peer if that is None.
        by_peer: runs the peer on about this share of the samples, and returns their number.
    """
    is_large = samples >= LEAST_SAMPLES and values >= LEAST_VALUES
    kind = find() if is_large or _prepared else None
    if kind is None:
        return call(None)
    kernel = kind.chosen(samples, by_peer)
    begin = time.perf_counter()
    result = call(kernel)
    kind.note(kernel, (time.perf_counter() - begin) / samples)
    return result


@cache
def _warn(error: str) -> None:
    """Warn once for each reason."""
    warnings.warn(
        f"nsc: {error}. Until then NumPy and torch serve the calls that kernels would, with the same results",
        RuntimeWarning,
        stacklevel=2,
    )
