"""The pool: torch's own threads, which C++ kernels run on."""

from __future__ import annotations

import ctypes
import functools
import sys
from pathlib import Path

import torch


@functools.cache
def thread_pool() -> int | None:
    """Return the address of torch's own parallel loop (torch >= 2.10), or None: one thread."""
    name = {"darwin": "libtorch_cpu.dylib", "win32": "torch_cpu.dll"}.get(sys.platform, "libtorch_cpu.so")
    try:
        library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / name))
        return ctypes.cast(library.torch_parallel_for, ctypes.c_void_p).value
    except (OSError, AttributeError):
        return None
