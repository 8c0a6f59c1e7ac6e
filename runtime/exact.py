"""Exact kernels, built for each type of values on first use; needs no torch."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nsc.contract.exact import ELEMENTS, ExactSource
from nsc.contract.interface import Status
from nsc.errors import BuildError, PackageError
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain

_POINTER, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32
# x and its layout, values, indices, bytes of an index, whether the order descends, the pool of threads.
_SIGNATURE: list[Any] = [_POINTER, *[_LONG] * 5, _POINTER, _POINTER, _WORD, _WORD, _POINTER]


@dataclass(frozen=True)
class Layout:
    """Where the values of an array lie: value w of sample s of slab t is at t * slab + w * wire + s * sample.

    The stride `wire` or the stride `sample` is 1. Results have no gaps: they are (slabs, samples, outputs) if
    `wire` is 1, else (slabs, outputs, samples).

    Attributes:
        slabs, samples: how many slabs, and how many samples in each.
        slab, wire, sample: strides, in values.
    """

    slabs: int
    samples: int
    slab: int
    wire: int
    sample: int


class ExactKernel:
    """A network that sorts, or selects, values of any type of ELEMENTS.

    Args:
        source: what the compiler wrote.
    """

    def __init__(self, source: ExactSource) -> None:
        self.source = source
        self._functions: dict[str, Callable[..., int]] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"ExactKernel({self.source.name}: n={self.source.n}, outputs={self.source.outputs})"

    def function(self, dtype: str) -> Callable[..., int]:
        """Return the C function nsc_exact_sort for a type of values, built unless the cache has it.

        Args:
            dtype: a key of ELEMENTS.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        element = ELEMENTS[dtype]
        if element not in self._functions:
            with self._lock:
                if element not in self._functions:
                    self._functions[element] = self._load(element)
        return self._functions[element]

    def call(
        self,
        dtype: str,
        x: int,
        layout: Layout,
        values: int,
        indices: int | None,
        index_bytes: int,
        descending: bool,
        pool: int | None = None,
    ) -> None:
        """Sort.

        Args:
            dtype: a key of ELEMENTS.
            x, values, indices: addresses.
            layout: where the values of x lie.
            index_bytes: 8 or 4, or 0 for values alone, which leaves indices as they are.
            descending: whether the largest value comes first; only for a network that sorts.
            pool: the address of a parallel loop, as torch's; None: one thread.

        Raises:
            MemoryError: too little memory.
        """
        lies = (layout.slabs, layout.samples, layout.slab, layout.wire, layout.sample)
        status = self.function(dtype)(x, *lies, values, indices, index_bytes, descending, pool)
        if status != Status.OK:
            raise MemoryError(f"{self.source.name}: not enough memory for a group of samples")

    def _load(self, element: str) -> Callable[..., int]:
        source = self.source
        text = f"#define NSC_ELEMENT {element}\n{source.text}"
        path = cache.build(f"{source.name}_{element}", text, find_toolchain(), source.version).binary
        try:
            library = ctypes.CDLL(str(path))
            library.nsc_exact_facts.restype = ctypes.c_char_p
            function = library.nsc_exact_sort
        except (OSError, AttributeError) as error:
            raise BuildError(
                f"cannot load {path}: {error}. If its folder is mounted noexec, set NSC_CACHE_DIR to "
                "one that is not"
            ) from None
        if library.nsc_exact_facts().decode() != source.facts:
            raise PackageError(f"{path} is another kernel than {source.name}: remove it")
        function.argtypes, function.restype = _SIGNATURE, _WORD
        return function
