"""NVRTC of any version by its C interface: what CuPy calls, without CuPy's own version."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path


class NvrtcLibrary:
    """An NVRTC; several versions can be loaded at a time.

    Attributes:
        version: such as 13.5.
    """

    def __init__(self, folder: Path) -> None:
        """Load the library of a folder.

        Raises:
            AssertionError: there is none.
        """
        libraries = [path for path in folder.glob("libnvrtc.so.*") if "alt" not in path.name]
        assert libraries, f"no libnvrtc.so in {folder}: run make .venv/test.stamp"
        for path in folder.glob("libnvrtc-builtins.so.*"):
            ctypes.CDLL(str(path), ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(str(libraries[0]))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"

    def ptx(self, text: str, options: Sequence[str]) -> str:
        """Return the PTX of a text.

        Raises:
            AssertionError: with the compiler's log.
        """
        # NVRTC 12 leaves its thread in the locale C, in which Python takes texts for ASCII.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(self._ptx, text, options).result()

    def _ptx(self, text: str, options: Sequence[str]) -> str:
        program = ctypes.c_void_p()
        create = self._library.nvrtcCreateProgram
        assert create(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None) == 0
        try:
            given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
            failed = self._library.nvrtcCompileProgram(program, len(options), given)
            assert not failed, self._text("ProgramLog", program)[:4000]
            return self._text("PTX", program)
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _text(self, name: str, program: ctypes.c_void_p) -> str:
        size = ctypes.c_size_t()
        assert self._library[f"nvrtcGet{name}Size"](program, ctypes.byref(size)) == 0
        buffer = ctypes.create_string_buffer(size.value)
        assert self._library[f"nvrtcGet{name}"](program, buffer) == 0
        return buffer.value.decode()
