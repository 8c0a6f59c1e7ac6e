"""Libraries of a kernel, one for each type of values, built when a call first needs it; needs no torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsc.contract.exact import ELEMENTS, for_element
from nsc.runtime.build import cache
from nsc.runtime.build.toolchain import find_toolchain


@dataclass(frozen=True)
class CFunction:
    """The C function of a kernel that does the work.

    Attributes:
        name: its name.
        arguments: the types that it takes; it returns a Status.
    """

    name: str
    arguments: tuple[Any, ...]

    def of(self, library: Path) -> Callable[..., int]:
        """Return the function of a built library.

        Raises:
            BuildError: the library cannot be loaded.
        """
        found = cache.opened(library, self.name)[self.name]
        found.argtypes, found.restype = list(self.arguments), ctypes.c_int32
        return found


class ElementLibraries:
    """The libraries of a source for types of values.

    Args:
        name: of the kernel, an identifier.
        text: the source.
        function: its C function.
    """

    def __init__(self, name: str, text: str, function: CFunction) -> None:
        self._name, self._text, self._function = name, text, function
        self._functions: dict[tuple[str, int, bool], Callable[..., int]] = {}

    def function(self, dtype: str, channels: int = 1, may_miss: bool = False) -> Callable[..., int]:
        """Return the C function for a type of values, built unless the cache has it.

        Args:
            dtype: a key of ELEMENTS.
            channels: of a filter, the values of a pixel.
            may_miss: of a filter, whether values may be missing.

        Raises:
            ToolchainError: no compiler.
            BuildError: the compiler failed, or the library cannot be loaded.
        """
        key = ELEMENTS[dtype], channels, may_miss
        if key not in self._functions:
            # Threads that ask at the same time wait at the lock of the cache, and load the same library.
            self._functions[key] = self._function.of(self.build(dtype, channels, may_miss).binary)
        return self._functions[key]

    def build(self, dtype: str, channels: int = 1, may_miss: bool = False) -> cache.Artifact:
        """Return the library for a type of values; errors as in `function`."""
        name = f"{self._name}_{ELEMENTS[dtype]}" + (f"_{channels}_channels" if channels > 1 else "")
        return cache.build(name, for_element(self._text, dtype, channels, may_miss), find_toolchain())
