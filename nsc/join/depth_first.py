"""Depth-first search for a wrong input: a library for all networks, compiled once for a machine."""

from __future__ import annotations

import ctypes
from functools import partial

import numpy as np

from nsc.compiler.verify import Cases, Integers
from nsc.errors import ToolchainError
from nsc.runtime.build.cache import build
from nsc.runtime.build.loading import opened, used
from nsc.runtime.build.toolchain import find_toolchain
from nsc.version import VERSION

_SOURCE = "// The depth-first search of nsc's proofs.\n#include <nsc/verify/depth_first.h>\n"
# nsc::Found of nsc/verify/depth_first.h.
_NOTHING_YET, _NOTHING = 0, 1


class _Question(ctypes.Structure):
    """nsc::Question."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("wires", "size", "ranked")),
        *((name, ctypes.c_void_p) for name in ("comparators", "ranks")),
    )


class _Search:
    """nsc::DepthFirst, with the arrays that it reads."""

    def __init__(self, library: ctypes.CDLL, wires: int, comparators: Integers, ranks: Integers) -> None:
        self._library, self._comparators, self._ranks = library, comparators, ranks
        library.nsc_bytes.restype = ctypes.c_int64
        library.nsc_wrong_input.restype = ctypes.c_uint64
        self._memory = np.zeros(library.nsc_bytes(), dtype=np.uint8)
        self._place = ctypes.c_void_p(self._memory.ctypes.data)
        at = comparators.ctypes.data, ranks.ctypes.data
        library.nsc_begin(self._place, ctypes.byref(_Question(wires, len(comparators), len(ranks), *at)))
        self._found = _NOTHING_YET

    def look(self, cases: int) -> bool:
        self._found = self._library.nsc_look(self._place, ctypes.c_int64(cases))
        return self._found != _NOTHING_YET

    def wrong_input(self) -> int | None:
        if self._found in (_NOTHING_YET, _NOTHING):
            return None
        wrong: int = self._library.nsc_wrong_input(self._place)
        return wrong


def depth_first_search(wires: int, comparators: Integers, ranks: Integers) -> Cases | None:
    """Begin a search; see `nsc.compiler.verify.question.Searcher`.

    Raises:
        BuildError: the compiler failed.
    """
    try:
        library = used(partial(build, "depth_first", _SOURCE, find_toolchain(), VERSION), opened)
    except ToolchainError:
        return None
    return _Search(library, wires, comparators, ranks)
