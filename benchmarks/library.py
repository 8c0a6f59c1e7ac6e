"""C++ of the benchmarks' own, built as kernels are built."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from nsc.runtime.build.toolchain import find_toolchain


def library(source: str) -> ctypes.CDLL:
    """Return a source of this folder, built and loaded; built once for each set of flags."""
    return _library(source, find_toolchain().command)


@cache
def _library(source: str, command: tuple[str, ...]) -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{source}.so"
        subprocess.run([*command, str(Path(__file__).with_name(source)), "-o", str(file)], check=True)
        return ctypes.CDLL(str(file))
