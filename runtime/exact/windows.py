"""Filters, built for each type of pixels on first use; needs no torch."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from nsc.contract.interface import Status
from nsc.contract.manifest import FilterManifest
from nsc.contract.windows import FilterSource, Folded, Mode, Tables, Window
from nsc.runtime.build import cache
from nsc.runtime.build.elements import CFunction, ElementLibraries

_POINTER, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# x, its lengths and strides, what of a window lies before its pixel, values, the mode, the value outside,
# the pool of threads, the part and the number of parts, what is missing.
_FUNCTION = CFunction("nsc_filter", (*[_POINTER] * 5, _WORD, _POINTER, _POINTER, _LONG, _LONG, _POINTER))


class Missing(ctypes.Structure):
    """Which values of windows do not count, and what results are made of; nsc/windows/missing.h has the same.

    The tables have an entry for each number of values that a window may lack.
    """

    _fields_ = (
        ("mask", _POINTER),
        *((name, _POINTER) for name in ("low", "high", "share", "rest", "none")),
        *((name, _WORD) for name in ("nan_is_missing", "is_least", "is_mean")),
    )

    @classmethod
    def of(cls, tables: Tables, mask: int | None, none: int, nan_is_missing: bool) -> Missing:
        """Return what a kernel is told.

        Args:
            tables: which values results are made of.
            mask: the address of a byte for each pixel, not 0 for missing ones; None: no pixel is masked.
            none: the address of the value of a window without a result.
            nan_is_missing: whether NaN does not count.
        """
        bytes_, doubles = ctypes.c_uint8 * len(tables.low), ctypes.c_double * len(tables.low)
        kept = bytes_(*tables.low), bytes_(*tables.high), doubles(*tables.share), doubles(*tables.rest)
        addresses = (ctypes.addressof(each) for each in kept)
        missing = cls(mask, *addresses, none, nan_is_missing, tables.is_least, tables.is_mean)
        missing.kept = kept  # as long as their addresses
        return missing


@dataclass(frozen=True)
class Images:
    """Where the pixels of some images lie. Pixels of a row lie side by side. Results have no gaps.

    Attributes:
        lengths: how many images, and their planes, rows and columns.
        strides: from an image, a plane, a row to the next, in values.
        channels: the values of a pixel, which lie side by side and are filtered each for itself.
        before: how many planes, rows and columns a window begins before its pixel.
    """

    lengths: tuple[int, int, int, int]
    strides: tuple[int, ...]
    channels: int
    before: tuple[int, int, int]

    @classmethod
    def of(cls, shape: Sequence[int], folded: Folded) -> Images:
        """Return the images that fill an array without gaps, for a window."""
        place = len(shape) - folded.behind
        axes, channels = [*shape[:place]], math.prod(shape[place:])
        if folded.is_column:
            axes, channels = [*axes, channels], 1
        *outer, planes, rows, columns = [1] * (3 - len(axes)) + axes
        row = columns * channels
        lengths = (math.prod(outer), planes, rows, columns)
        return cls(lengths, (planes * rows * row, rows * row, row), channels, folded.before)


@dataclass(frozen=True)
class FilterFunction:
    """A filter for one type of values and one number of channels, built and loaded.

    Attributes:
        name: of the filter.
        function: the C function.
    """

    name: str
    function: Callable[..., int]

    @classmethod
    def of_library(cls, name: str, library: Path) -> FilterFunction:
        """Return the filter of a built library.

        Raises:
            BuildError: it cannot be loaded.
        """
        return cls(name, _FUNCTION.of(library))

    def call(
        self,
        x: int,
        images: Images,
        values: int,
        mode: Mode,
        outside: int,
        missing: Missing | None = None,
        pool: int | None = None,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        """Filter, or do one of several equal parts of the work; they may run at the same time.

        Args:
            x, values: addresses.
            images: where the pixels of x lie.
            mode: what stands outside of an image.
            outside: the address of the pixel that stands there, for the mode constant.
            missing: for a kernel whose values may be missing.
            pool: the address of a parallel loop, as torch's; None: one thread.
            part, parts: which part, from 0 on, and of how many.

        Raises:
            MemoryError: too little memory.
        """
        lengths, strides = (ctypes.c_int64 * 4)(*images.lengths), (ctypes.c_int64 * 3)(*images.strides)
        before = (ctypes.c_int64 * 3)(*images.before)
        told = None if missing is None else ctypes.addressof(missing)
        status = self.function(x, lengths, strides, before, values, mode, outside, pool, part, parts, told)
        if status != Status.OK:
            raise MemoryError(f"{self.name}: not enough memory for a strip of an image")


class FilterKernel:
    """A filter for pixels of any type of ELEMENTS.

    Args:
        source: what the compiler wrote.
    """

    def __init__(self, source: FilterSource) -> None:
        self.source = source
        self._libraries = ElementLibraries(source.name, source.text, _FUNCTION)

    def __repr__(self) -> str:
        return f"FilterKernel({self.source.name})"

    @classmethod
    def of_package(cls, manifest: FilterManifest, files: Mapping[str, str]) -> FilterKernel:
        """Return the kernel of a package's files, whose manifest was read from them."""
        text = files[manifest.sources["cpu"]]
        return cls(FilterSource(manifest.name, Window.of_key(manifest.window), text))

    def function(self, dtype: str, channels: int = 1, may_miss: bool = False) -> FilterFunction:
        """Return the filter for a type of values, built unless the cache has it.

        Args:
            dtype: the type, a key of ELEMENTS.
            channels: the values of a pixel.
            may_miss: whether values may be missing.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        return FilterFunction(self.source.name, self._libraries.function(dtype, channels, may_miss))

    def build(self, dtype: str, channels: int = 1, may_miss: bool = False) -> cache.Artifact:
        """Return the library for a type of pixels; errors as in `function`."""
        return self._libraries.build(dtype, channels, may_miss)
