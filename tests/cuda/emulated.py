"""Runs kernels in CUDA C++ on the CPU, by emulation.h."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

HEADER = Path(__file__).with_name("emulation.h")
# An optimiser would take as long again as all else, and the kernels are small.
COMMAND = (
    "g++",
    "-std=c++17",
    "-O0",
    "-shared",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unknown-pragmas",
)
# Makes misaligned accesses trap, as they do on a GPU; the compiler takes a third longer.
ALIGNED = ("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 2}
SHARED = "extern __shared__ __align__(16) unsigned char shared_memory[];"
KERNEL = re.compile(r'extern "C" __global__ void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)')

Dim3 = tuple[int, int, int]


class EmulationError(Exception):
    """A kernel did something that CUDA forbids."""


class Emulated:
    """The kernels of a CUDA source; `options` are further options of the compiler, such as ALIGNED."""

    def __init__(self, text: str, folder: Path, options: tuple[str, ...] = ()) -> None:
        source, library = folder / "kernels.cpp", folder / "kernels.so"
        assert text.count(SHARED) <= 1
        text = text.replace(SHARED, "")  # emulation.h defines it
        exports = "".join(f"EMULATED({name})\n" for name in KERNEL.findall(text))
        source.write_text(f'#include "{HEADER}"\n{text}\n{exports}', encoding="utf-8")
        done = subprocess.run(
            [*COMMAND, *options, source, "-o", library], capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stderr[:4000]
        self._library = ctypes.CDLL(str(library))

    def launch(
        self,
        kernel: str,
        grid: Dim3,
        block: Dim3,
        arguments: Sequence[Tensor | ctypes._SimpleCData | None],
        shared_bytes: int = 0,
        order: str = "ascending",
        seed: int = 0,
    ) -> None:
        """Run a kernel; tensors are passed as their addresses.

        Raises:
            EmulationError: threads at different barriers, a shuffle with lanes that have left, an access
                outside shared memory; with ALIGNED, a misaligned access.
        """
        function = self._library[f"emulated_{kernel}"]
        function.restype = ctypes.c_char_p
        c_arguments = [
            ctypes.c_void_p(None if a is None else a.data_ptr()) if a is None or isinstance(a, Tensor) else a
            for a in arguments
        ]
        addresses = (ctypes.c_void_p * len(c_arguments))(*map(ctypes.addressof, c_arguments))
        message = function(
            (ctypes.c_uint * 3)(*grid),
            (ctypes.c_uint * 3)(*block),
            ctypes.c_size_t(shared_bytes),
            addresses,
            ORDERS[order],
            ctypes.c_uint64(seed),
        )
        if message is not None:
            raise EmulationError(message.decode())
