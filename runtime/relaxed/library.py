"""Library: a built C++ kernel, loaded, and its functions with their C signatures."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nsc.contract.interface import FUNCTIONS, function_name
from nsc.runtime.build.cache import opened


@dataclass(frozen=True, eq=False)
class Functions:
    """The C functions for one arithmetic type; two of them are the same if they are one object.

    Attributes:
        kept: returns how many reals `forward` can keep for `backward`.
        forward, backward: each returns a `Status`.
    """

    kept: Callable[[int, int], int]
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
    for name, declared in FUNCTIONS.items():
        function = library[function_name(name, real)]
        types = [_NUMBERS.get(each.split()[0], ctypes.c_void_p) for each in declared.parameters]
        function.argtypes = [ctypes.c_void_p, *types] if has_handle else types
        function.restype = _NUMBERS[declared.result]
        functions[name] = function
    return Functions(**functions)
