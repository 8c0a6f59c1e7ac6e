"""The arithmetic limit: the time of a relaxed comparator's arithmetic alone."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nsc.compiler.schedule import CONE_COLUMNS
from nsc.runtime.build.toolchain import find_toolchain

SOURCE = Path(__file__).with_name("arithmetic.cpp")
ROUNDS = 15
ROUND_SECONDS = 0.01


@dataclass(frozen=True)
class Arithmetic:
    """The arithmetic limit of this machine, one thread.

    Attributes:
        lanes: float32 values in a register.
        forward: nanoseconds per comparator on CONE_COLUMNS columns: two products and a sum for each wire.
        backward: the same for the backward pass, which runs forward again, then mixes the gradients.
    """

    lanes: int
    forward: float
    backward: float

    def seconds(self, comparators: float) -> float:
        """Return the seconds of that many comparators on CONE_COLUMNS columns, forward and backward."""
        return comparators * (self.forward + self.backward) * 1e-9

    def or_better(self, other: Arithmetic) -> Arithmetic:
        """Return the quicker figures of two measurements."""
        return Arithmetic(self.lanes, min(self.forward, other.forward), min(self.backward, other.backward))


def measure_arithmetic() -> Arithmetic:
    """Build arithmetic.cpp as kernels are built, and return the times of its quickest rounds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "arithmetic.so"
        subprocess.run([*find_toolchain().command, str(SOURCE), "-o", str(file)], check=True)
        library = ctypes.CDLL(str(file))
    library.prepare()
    lanes = ctypes.c_int32.in_dll(library, "lane_count").value
    comparators = ctypes.c_int32.in_dll(library, "comparator_count").value
    share = lanes / CONE_COLUMNS  # of the columns, in one register

    def nanoseconds(run: Callable[[ctypes.c_int64], object]) -> float:
        return _quickest(run) / comparators / share * 1e9

    return Arithmetic(lanes, nanoseconds(library.run_forward), nanoseconds(library.run_backward))


def _quickest(run: Callable[[ctypes.c_int64], object]) -> float:
    """Return the seconds of one repeat in the quickest round."""

    def seconds(repeats: int) -> float:
        start = time.perf_counter()
        run(ctypes.c_int64(repeats))
        return time.perf_counter() - start

    once = seconds(1000) / 1000
    repeats = max(1000, int(ROUND_SECONDS / max(once, 1e-9)))
    return min(seconds(repeats) for _ in range(ROUNDS)) / repeats
