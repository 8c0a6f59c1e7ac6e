"""The memory's bandwidth: the time of reading an array and writing the results of a selection, in order.

No line of memory is touched twice, and no line waits for another. A selection that takes as long is as quick
as memory.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.library import library

LINE = 16  # float32 values in a line of the cache


def reading_and_writing(x: npt.NDArray[Any], axis: int) -> Callable[[], object]:
    """Return a call that reads x, of float32, and writes new memory for a value of each sample."""
    lines = x.shape[axis]
    count = x.size // lines // LINE
    function = library("bandwidth.cpp").read_and_write
    function.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64]
    function.restype = None

    def call() -> object:
        results = np.empty(count * LINE, np.float32)
        function(x.ctypes.data, lines, results.ctypes.data, count)
        return results

    return call
