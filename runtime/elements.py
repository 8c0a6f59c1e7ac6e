"""Kernels with a library for each type of values, built when it is first called; needs no torch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from nsc.contract.exact import ELEMENTS, for_element
from nsc.errors import PackageError
from nsc.runtime.build import cache
from nsc.runtime.build.loading import opened, used
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.locks import Lock


@dataclass(frozen=True)
class CFunction:
    """The C function of a kernel that does the work; beside it nsc_facts says what the kernel is.

    Attributes:
        name: its name.
        arguments: the types that it takes; it returns a Status.
    """

    name: str
    arguments: tuple[Any, ...]


class ElementLibraries:
    """The libraries of a source for types of values. A first line, which defines NSC_ELEMENT, chooses the
    type.

    Args:
        name: of the kernel, an identifier.
        version: of nsc.
        text: the source.
        facts: what a built library must state of itself.
        function: its C function.
    """

    def __init__(self, name: str, version: str, text: str, facts: str, function: CFunction) -> None:
        self.name = name
        self._version, self._text, self._facts, self._function = version, text, facts, function
        self._functions: dict[str, Callable[..., int]] = {}
        self._lock = Lock()

    def function(self, dtype: str) -> Callable[..., int]:
        """Return the C function for a type of values, built unless the cache has it.

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

    def build(self, dtype: str) -> cache.Artifact:
        """Return the library for a type of values; errors as in `function`."""
        return cache.build(*self._source(dtype), find_toolchain(), self._version)

    def _source(self, dtype: str) -> tuple[str, str]:
        return f"{self.name}_{ELEMENTS[dtype]}", for_element(self._text, dtype)

    def _load(self, element: str) -> Callable[..., int]:
        return used(partial(self.build, element), self._open)

    def _open(self, path: Path) -> Callable[..., int]:
        return open_function(path, self.name, self._facts, self._function)


def open_function(path: Path, name: str, facts: str, function: CFunction) -> Callable[..., int]:
    """Return the C function of a built library.

    Args:
        path: the library.
        name: of the kernel, for messages.
        facts: what the library must state of itself.
        function: the function.

    Raises:
        BuildError: it cannot be loaded.
        PackageError: it is another kernel.
    """
    library = opened(path, "nsc_facts", function.name)
    library.nsc_facts.restype = ctypes.c_char_p
    if library.nsc_facts().decode() != facts:
        raise PackageError(f"{path} is another kernel than {name}: remove it")
    found = library[function.name]
    found.argtypes, found.restype = list(function.arguments), ctypes.c_int32
    return found
