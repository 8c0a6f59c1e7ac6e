"""The engine: a built library of a relaxation, which runs any network from its tables.

It is built once for a machine, a relaxation and an arithmetic type. A network that it runs needs no build.
Its results have the bits of the network's own kernel, which the tests hold.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np

from nsc.contract.tables import NetworkTables
from nsc.runtime.build import cache
from nsc.runtime.build.loading import opened
from nsc.runtime.build.toolchain import find_toolchain
from nsc.runtime.relaxed.library import Functions, functions_of

_NARROW = np.dtype([("pattern", "u1"), ("rows", "u1", 4), ("slots", "i4", 4)], align=True)
# The tables of nsc::AnyNetwork, in order, with the type of a number.
_TABLES = {
    "codelets": "i4",
    "spreads": "u2",
    "shapes": "i4",
    "pairs": "u1",
    "flips": "u8",
    "shape_butterflies": "u1",
}


# Tables that plans read. A plan lives as long as the process: a call may still run when a kernel takes over.
_read: list[dict[str, np.ndarray]] = []


class _AnyNetwork(ctypes.Structure):
    """nsc::AnyNetwork of nsc/relaxed/network.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("wires", "comparators", "levels", "merge_levels", "slots")),
        *((name, ctypes.c_int64) for name in ("longest_codelet", "codelet_count", "butterfly_count")),
        ("narrow_count", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in (*_TABLES, "narrow_butterflies")),
    )


class Engine:
    """A network, run by the engines of its relaxation.

    Args:
        paths: the engine's library for each arithmetic type.
        tables: of the network.

    Attributes:
        functions: the functions of each arithmetic type.

    Raises:
        BuildError: a library cannot be loaded.
        MemoryError: too little memory for the network's tables.
    """

    def __init__(self, paths: Mapping[str, Path], tables: NetworkTables) -> None:
        arrays = {name: np.array(getattr(tables, name), kind) for name, kind in _TABLES.items()}
        narrow = np.zeros(len(tables.narrow_butterflies), _NARROW)
        rows = np.array(tables.narrow_butterflies, np.int64).reshape(-1, 9)
        narrow["pattern"], narrow["rows"], narrow["slots"] = rows[:, 0], rows[:, 1:5], rows[:, 5:]
        arrays["narrow_butterflies"] = narrow
        _read.append(arrays)
        self._network = _AnyNetwork(
            tables.wires,
            tables.comparators,
            tables.levels,
            tables.merge_levels,
            tables.slots,
            tables.longest_codelet,
            len(tables.codelets),
            tables.butterflies,
            len(tables.narrow_butterflies),
            *(array.ctypes.data for array in arrays.values()),
        )
        self.functions = {real: self._open(path, real) for real, path in paths.items()}

    def _open(self, path: Path, real: str) -> Functions:
        library = opened(path, "nsc_open")
        library.nsc_open.restype = ctypes.c_void_p
        plan = library.nsc_open(ctypes.byref(self._network))
        if not plan:
            raise MemoryError(f"not enough memory for the tables of {path.name}")
        handle = ctypes.c_void_p(plan)
        found = functions_of(library, real, has_handle=True)
        return Functions(*(partial(function, handle) for function in vars(found).values()))


def build(sigmoid: str, source: str, version: str) -> cache.Artifact:
    """Return an engine's library, compiled unless the cache has it.

    Raises:
        ToolchainError: no compiler.
        BuildError: the compiler failed.
    """
    return cache.build(engine_name(sigmoid), source, find_toolchain(relaxed=True), version)


def engine_name(sigmoid: str) -> str:
    """Return the name of an engine's files in the cache, which people can tell apart."""
    return f"engine_{sigmoid}"
