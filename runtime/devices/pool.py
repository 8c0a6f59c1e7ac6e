"""The pool: torch's own threads, which C++ kernels run on."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

import torch

from nsc.runtime.build.system import system


@functools.cache
def thread_pool() -> int | None:
    """Return the address of torch's own parallel loop (torch >= 2.10), or None: one thread."""
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / f"libtorch_cpu{system().suffix}"))
        return ctypes.cast(library.torch_parallel_for, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
