"""The engine: a built library of a relaxation, which runs any network from its tables.

It is built once for a machine, a relaxation and an arithmetic type. A network that it runs needs no build.
Its results have the bits of the network's own library, which the tests hold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import fields
from functools import partial

import numpy as np

from nsc.contract.tables import NetworkTables, layout_of
from nsc.runtime.build import cache, prebuilt
from nsc.runtime.build.cache import opened, used
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.library import Functions, functions_of

# Tables that plans read. A plan lives as long as the process.
_read: list[list[np.ndarray]] = []


class _AnyNetwork(ctypes.Structure):
    """nsc::AnyNetwork of nsc/relaxed/network.h."""

    _fields_ = tuple(
        (each.name, ctypes.c_void_p if layout_of(each) else ctypes.c_int64) for each in fields(NetworkTables)
    )


class _Made(dict[str, Functions]):
    """Functions by their arithmetic type, made when they are first asked for."""

    def __init__(self, make: Callable[[str], Functions]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, real: str) -> Functions:
        return self.setdefault(real, self._make(real))


class Engine:
    """A network, run by the engines of its relaxation.

    Args:
        engine_of: returns the engine of an arithmetic type, built if it is not there.
        tables: of the network.

    Attributes:
        functions: the functions of each arithmetic type. Taking those of a type for the first time raises
            as `engine_of`, and MemoryError where there is too little memory for the tables.
    """

    def __init__(self, engine_of: Callable[[str], ctypes.CDLL], tables: NetworkTables) -> None:
        arrays, members = [], []
        for each in fields(tables):
            value = getattr(tables, each.name)
            if layout := layout_of(each):
                arrays.append(np.array(list(value), np.dtype(layout.numbers, align=True)))
                value = arrays[-1].ctypes.data
            members.append(value)
        _read.append(arrays)
        self._network = _AnyNetwork(*members)
        self._engine_of = engine_of
        self.functions: dict[str, Functions] = _Made(self._functions)

    def _functions(self, real: str) -> Functions:
        library = self._engine_of(real)
        library.nsc_open.restype = ctypes.c_void_p
        plan = library.nsc_open(ctypes.byref(self._network))
        if not plan:
            raise MemoryError("not enough memory for the tables of a network of this size")
        handle = ctypes.c_void_p(plan)
        found = functions_of(library, real, has_handle=True)
        return Functions(*(partial(function, handle) for function in vars(found).values()))


def engine_library(sigmoid: str, source: str) -> ctypes.CDLL:
    """Return a loaded engine, built unless it is prebuilt or the cache has it; raises as `build`."""
    return used(partial(build, sigmoid, source), lambda path: opened(path, "nsc_open"))


def build(sigmoid: str, source: str) -> cache.Artifact:
    """Return an engine's library, compiled unless it is prebuilt or the cache has it.

    Raises:
        ToolchainError: no compiler.
        BuildError: the compiler failed, or the library cannot be loaded.
    """
    name = engine_name(sigmoid)
    if path := prebuilt.find(name, source):
        return cache.Artifact(path, (), cached=True)
    return cache.build(name, source, find_toolchain(relaxed=True))


def engine_name(sigmoid: str) -> str:
    """Return the name of an engine's files in the cache, which people can tell apart."""
    return f"engine_{sigmoid}"
