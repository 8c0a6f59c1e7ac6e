"""Runs kernels in CUDA C++ on the CPU, by emulation.h."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from filelock import FileLock
from torch import Tensor

import nsc.library

HEADER = Path(__file__).with_name("emulation.h")
# An optimiser would take as long again as all else, and the kernels are small.
COMMAND = (
    "g++",
    "-std=c++17",
    "-O0",
    "-fPIC",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unknown-pragmas",
    "-D__CUDACC__",
)
# Makes misaligned accesses trap, as they do on a GPU; the compiler takes a third longer.
ALIGNED = ("-fsanitize=alignment", "-fsanitize-undefined-trap-on-error")
ORDERS = {"ascending": 0, "descending": 1, "shuffled": 2}
SHARED = "extern __shared__ __align__(16) unsigned char shared_memory[];"
# Also in a macro, whose lines end in a backslash.
KERNEL = re.compile(r'extern "C" __global__ void[\s\\]+(?:__launch_bounds__\([^)]*\)[\s\\]*)?(\w+)')

Dim3 = tuple[int, int, int]


def _built(text: str, options: tuple[str, ...]) -> Path:
    """Return the library of a text; all tests and workers of a run build it once.

    A third of the time would go into reading emulation.h, so it is precompiled once for each set of options.
    """
    root = Path(os.environ["NSC_CACHE_DIR"]).with_name("emulated")
    header = root / _digest(HEADER.read_text(encoding="utf-8"), *COMMAND, *options) / HEADER.name
    kept, library = header.with_name(f"{header.name}.gch"), root / f"{_digest(text, header.parent.name)}.so"
    root.mkdir(parents=True, exist_ok=True)
    with FileLock(root / "header.lock"):
        if not kept.exists():
            header.parent.mkdir(exist_ok=True)
            header.write_text(f'#include "{HEADER}"\n', encoding="utf-8")
            _compile(*options, "-x", "c++-header", header, result=kept)
    with FileLock(library.with_suffix(".lock")):
        if not library.exists():
            source = library.with_suffix(".cpp")
            source.write_text(text, encoding="utf-8")
            _compile(*options, "-shared", "-Winvalid-pch", "-include", header, source, result=library)
    return library


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def _compile(*arguments: str | Path, result: Path) -> None:
    part = result.with_suffix(".part")
    done = subprocess.run([*COMMAND, *arguments, "-o", part], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[:4000]
    part.rename(result)


class EmulationError(Exception):
    """A kernel did something that CUDA forbids."""


class Emulated:
    """The kernels of a CUDA source; `options` are further options of the compiler, such as ALIGNED.

    The folder gets a copy of the library: the loader knows libraries by their paths, so emulations of one
    text in several folders share no state.
    """

    def __init__(self, text: str, folder: Path, options: tuple[str, ...] = ()) -> None:
        text = nsc.library.expanded(text)
        assert text.count(SHARED) <= 1
        text = text.replace(SHARED, "")  # emulation.h defines it
        exports = "".join(f"EMULATED({name})\n" for name in KERNEL.findall(text))
        library = shutil.copyfile(_built(f"{text}\n{exports}", options), folder / "kernels.so")
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
