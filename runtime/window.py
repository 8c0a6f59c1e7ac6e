"""Filters, built for each type of pixels on first use; needs no torch."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass

from nsc.contract.interface import Status
from nsc.contract.windows import FilterManifest, Mode, WindowSource
from nsc.runtime.build import cache
from nsc.runtime.elements import ElementLibraries, Interface

_POINTER, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# x, its lengths and strides, values, the mode, the value outside, the pool of threads, the part and the
# number of parts.
_INTERFACE = Interface(
    "nsc_window_filter", "nsc_window_facts", (*[_POINTER] * 4, _WORD, _POINTER, _POINTER, _LONG, _LONG)
)


@dataclass(frozen=True)
class Images:
    """Where the pixels of some images lie; those of a row lie side by side. Results have no gaps.

    Attributes:
        lengths: how many images, and their planes, rows and columns.
        strides: from an image, a plane, a row to the next, in values.
    """

    lengths: tuple[int, int, int, int]
    strides: tuple[int, int, int]

    @classmethod
    def without_gaps(cls, shape: tuple[int, ...], axes: int) -> Images:
        """Return images that fill an array; its last two or three axes, `axes`, are those of an image."""
        *outer, rows, columns = shape
        planes = outer.pop() if axes == 3 else 1
        count = 1
        for length in outer:
            count *= length
        return cls((count, planes, rows, columns), (planes * rows * columns, rows * columns, columns))


class WindowKernel:
    """A filter for pixels of any type of ELEMENTS.

    Args:
        source: what the compiler wrote.
    """

    def __init__(self, source: WindowSource) -> None:
        self.source = source
        self._libraries = ElementLibraries(source.name, source.version, source.text, source.facts, _INTERFACE)

    def __repr__(self) -> str:
        return f"WindowKernel({self.source.name})"

    @classmethod
    def from_files(cls, manifest: FilterManifest, files: Mapping[str, str]) -> WindowKernel:
        """Return the kernel of a package.

        Raises:
            PackageError: a missing or changed file.
        """
        manifest.check_files(files)
        text = files[manifest.source]
        source = WindowSource(
            manifest.name, manifest.nsc, manifest.window, manifest.rank, manifest.stated, text
        )
        return cls(source)

    def load(self, dtype: str) -> None:
        """Build and load the library for a type of pixels, a key of ELEMENTS, unless it is loaded.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        self._libraries.function(dtype)

    def build(self, dtype: str) -> cache.Artifact:
        """Return the library for a type of pixels, a key of ELEMENTS; errors as in `load`."""
        self.load(dtype)
        return self._libraries.build(dtype)

    def call(
        self,
        dtype: str,
        x: int,
        images: Images,
        values: int,
        mode: Mode,
        outside: int | None,
        pool: int | None = None,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        """Filter, or do one of several equal parts of the work; they may run at the same time.

        Args:
            dtype: a key of ELEMENTS.
            x, values: addresses.
            images: where the pixels of x lie.
            mode: what stands outside of an image.
            outside: the address of the pixel that stands there, for the mode constant.
            pool: the address of a parallel loop, as torch's; None: one thread.
            part, parts: which part, from 0 on, and of how many.

        Raises:
            MemoryError: too little memory.
            ToolchainError, BuildError: as in `load`.
        """
        lengths, strides = (ctypes.c_int64 * 4)(*images.lengths), (ctypes.c_int64 * 3)(*images.strides)
        status = self._libraries.function(dtype)(
            x, lengths, strides, values, mode, outside, pool, part, parts
        )
        if status != Status.OK:
            raise MemoryError(f"{self.source.name}: not enough memory for a strip of an image")
