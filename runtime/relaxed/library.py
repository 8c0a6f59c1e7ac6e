"""Libraries: what runs networks, loaded: a network's own library, or the engine of its relaxation.

The engine runs any network from its tables. It is built once for a machine, a relaxation and an arithmetic
type, so a network that it runs needs no build. Its results have the bits of the network's own library, which
the tests hold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from nsc.contract.interface import FUNCTIONS, function_name
from nsc.contract.tables import NetworkTables, layout_of
from nsc.runtime.build import cache, prebuilt
from nsc.runtime.build.cache import opened
from nsc.runtime.build.toolchain import find_toolchain


@dataclass(frozen=True, eq=False)
class Functions:
    """The C functions for one arithmetic type; two of them are the same if they are one object.

    Attributes:
        forward, backward: each returns a `Status`.
    """

    forward: Callable[..., int]
    backward: Callable[..., int]


class Library:
    """A loaded shared library of a network.

    Args:
        path: the library.
        reals: the arithmetic types that it is compiled for.

    Attributes:
        functions: the functions of each arithmetic type.

    Raises:
        BuildError: it cannot be loaded.
        MemoryError: too little memory for its tables.
    """

    def __init__(self, path: Path, reals: Iterable[str]) -> None:
        library = opened(path, "nsc_prepare")
        library.nsc_prepare.restype = ctypes.c_int32
        if library.nsc_prepare():
            raise MemoryError(f"not enough memory for the tables of {path.name}")
        self.functions = {real: functions_of(library, real) for real in reals}


# All other parameters are pointers.
_NUMBERS: dict[str, Any] = {"int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64}


def functions_of(library: ctypes.CDLL, real: str, has_handle: bool = False) -> Functions:
    """Return a library's functions for an arithmetic type, with a handle in front if they have one."""
    functions = {}
    for name, parameters in FUNCTIONS.items():
        function = library[function_name(name, real)]
        types = [_NUMBERS.get(each.split()[0], ctypes.c_void_p) for each in parameters]
        function.argtypes = [ctypes.c_void_p, *types] if has_handle else types
        function.restype = ctypes.c_int32
        functions[name] = function
    return Functions(**functions)


# Tables that plans read. A plan lives as long as the process.
_read: list[list[np.ndarray]] = []


class _AnyNetwork(ctypes.Structure):
    """nsc::AnyNetwork of nsc/relaxed/network.h."""

    _fields_ = tuple(
        (each.name, ctypes.c_void_p if layout_of(each) else ctypes.c_int64) for each in fields(NetworkTables)
    )


class _Made(dict[str, Functions | None]):
    """Functions by their arithmetic type, made when they are first asked for."""

    def __init__(self, make: Callable[[str], Functions | None]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, real: str) -> Functions | None:
        return self.setdefault(real, self._make(real))


class Engine:
    """A network, run by the engines of its relaxation.

    Args:
        engine_of: returns the engine of an arithmetic type, built if it is not there; None: it cannot be.
        tables: the network's tables.

    Attributes:
        functions: the functions by arithmetic type, or None for a type without an engine. The first look-up
            of a type raises as `engine_of`, and MemoryError where there is too little memory for the tables.
    """

    def __init__(self, engine_of: Callable[[str], ctypes.CDLL | None], tables: NetworkTables) -> None:
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
        self.functions: dict[str, Functions | None] = _Made(self._functions)

    def _functions(self, real: str) -> Functions | None:
        library = self._engine_of(real)
        if library is None:
            return None
        library.nsc_open.restype = ctypes.c_void_p
        plan = library.nsc_open(ctypes.byref(self._network))
        if not plan:
            raise MemoryError("not enough memory for the tables of a network of this size")
        handle = ctypes.c_void_p(plan)
        found = functions_of(library, real, has_handle=True)
        return Functions(*(partial(function, handle) for function in vars(found).values()))


def engine_library(sigmoid: str, source: str) -> ctypes.CDLL:
    """Return a loaded engine, built unless it is prebuilt or the cache has it; raises as `build`."""
    return opened(build(sigmoid, source).binary, "nsc_open")


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
