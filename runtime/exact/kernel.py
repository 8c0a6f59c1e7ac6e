"""Exact kernels, built for each type of values on first use; needs no torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from nsc.contract.exact import ExactSource
from nsc.contract.interface import Status
from nsc.runtime.build.cache import Artifact
from nsc.runtime.build.elements import CFunction, ElementLibraries

_POINTER, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# x and its layout, values, indices, bytes of an index, the order, the pool of threads, the part and the
# number of parts.
_FUNCTION = CFunction(
    "nsc_exact_sort",
    (_POINTER, *[_LONG] * 5, _POINTER, _POINTER, _WORD, _WORD, _POINTER, _LONG, _LONG),
)
# Least samples side by side that are sorted where they lie; fewer are copied to rows first.
LEAST_COLUMNS = 16


class Layout(NamedTuple):
    """Where the values of an array lie: value w of sample s of slab t is at t * slab + w * wire + s * sample.

    A slab is a block of samples. At least one of the strides `wire` and `sample` is 1.

    The kernel writes its results without gaps. Their shape is (slabs, samples, outputs) if `wire` is 1, else
    (slabs, outputs, samples).

    Attributes:
        slabs, samples: how many slabs, and how many samples in each.
        slab, wire, sample: strides, in values.
    """

    slabs: int
    samples: int
    slab: int
    wire: int
    sample: int


def layout_of(outer: int, n: int, inner: int, least_columns: int = LEAST_COLUMNS) -> Layout | None:
    """Return the layout of an array in C order with a sorted axis; None: bring that axis to the end first.

    Args:
        outer, inner: how many values lie in front of the axis, and behind it.
        n: how many lie along it.
        least_columns: least samples side by side that are sorted where they lie.
    """
    if inner == 1:
        return Layout(1, outer, 0, 1, n)
    # An empty array is read by no kernel.
    return Layout(outer, inner, n * inner, inner, 1) if inner >= least_columns or inner == 0 else None


def places_fit(n: int, value_bytes: int) -> bool:
    """Return whether the places of n values fit beside keys of so many bytes.

    Where they do not, values of one byte are sorted as numbers of two.
    """
    return value_bytes > 1 or n <= 1 << 8


@dataclass(frozen=True)
class ExactFunction:
    """An exact kernel for one type of values, built and loaded.

    Attributes:
        source: the kernel.
        function: the C function.
    """

    source: ExactSource
    function: Callable[..., int]

    def call(
        self,
        x: int,
        layout: Layout,
        values: int,
        indices: int | None,
        index_bytes: int,
        order: int,
        pool: int | None = None,
        part: int = 0,
        parts: int = 1,
    ) -> None:
        """Sort, or do one of several equal parts of the work; they may run at the same time.

        Args:
            x, values, indices: addresses.
            layout: where the values of x lie.
            index_bytes: 8 or 4, or 0 for values alone, which leaves indices as they are.
            order: ASCENDING, DESCENDING or NAN_LAST.
            pool: the address of a parallel loop, as torch's; None: one thread.
            part, parts: which part, from 0 on, and of how many.

        Raises:
            MemoryError: too little memory.
        """
        status = self.function(x, *layout, values, indices, index_bytes, order, pool, part, parts)
        if status != Status.OK:
            raise MemoryError(f"{self.source.name}: not enough memory for a group of samples")


def function_of(source: ExactSource, library: Path) -> ExactFunction:
    """Return the kernel of a built library.

    Args:
        source: what the kernel is; its texts may be missing.
        library: the file.

    Raises:
        BuildError: it cannot be loaded.
    """
    return ExactFunction(source, _FUNCTION.of(library))


class ExactKernel:
    """A network that sorts, or selects, values of any type of ELEMENTS.

    Args:
        source: what the compiler wrote.
    """

    def __init__(self, source: ExactSource) -> None:
        self.source = source
        self._libraries = ElementLibraries(source.name, source.texts["cpu"], _FUNCTION)

    def __repr__(self) -> str:
        return f"ExactKernel({self.source.name}: n={self.source.n}, outputs={self.source.outputs})"

    def function(self, dtype: str) -> ExactFunction:
        """Return the kernel for a type of values, a key of ELEMENTS, built unless the cache has it.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        return ExactFunction(self.source, self._libraries.function(dtype))

    def build(self, dtype: str) -> Artifact:
        """Return the library for a type of values; errors as in `function`."""
        return self._libraries.build(dtype)
