"""The engine of a search: a library for all networks, compiled once for a machine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc import library
from nsc.compiler.families import Comparator
from nsc.errors import NetworkError
from nsc.runtime.build.cache import build, opened
from nsc.runtime.build.toolchain import find_toolchain
from nsc.study.search.goal import Goal
from nsc.wording import count

Comparators = tuple[Comparator, ...]
# (blocks, n + outputs, 8) words: of 512 patterns the value of each wire, then the right value of each output,
# in the order of `goal.ranks`. Where ranks may be off: the least right values, then the most right ones.
Rows = npt.NDArray[np.uint64]

_SOURCE = "// The engine of nsc search.\n#include <nsc/search/walk.h>\n"
MOST_COMPARATORS = int(library.constant("most_comparators", "search/comparators.h"))
_NONE, _NO_NETWORK, _NO_MEMORY = -1, -1, -2
_NO_COST = (1 << 64) - 1


@dataclass(frozen=True)
class Standing:
    """Where a search stands. With symmetry a list has one of each comparator and its mirror image.

    Attributes:
        current: comparators behind the prefix that pass the pool; None before the first start.
        best: the comparators of least cost since the search began.
        origin: those that each start begins with; None: random ones.
        best_cost: the least cost since the last start, as the engine writes it.
        since: candidates tried since then without a gain.
    """

    current: Comparators | None = None
    best: Comparators | None = None
    origin: Comparators | None = None
    best_cost: int = _NO_COST
    since: int = 0


class _Comparators(ctypes.Structure):
    """nsc::search::Comparators."""

    _fields_ = (("count", ctypes.c_int64), ("at", ctypes.c_uint8 * (2 * MOST_COMPARATORS)))


class _Problem(ctypes.Structure):
    """nsc::search::Problem, and the arrays that it points to."""

    arrays: tuple[npt.NDArray[Any], ...]
    _fields_ = (
        *((name, ctypes.c_int64) for name in ("wires", "symmetric", "objective", "most_layers")),
        *((name, ctypes.c_int64) for name in ("prefix_count", "behind_count", "outputs", "blocks")),
        *((name, ctypes.c_void_p) for name in ("prefix", "behind", "output_wires", "rows")),
        ("has_most", ctypes.c_int64),
    )


class _Standing(ctypes.Structure):
    """nsc::search::Standing."""

    _fields_ = (
        *((name, _Comparators) for name in ("current", "best", "origin")),
        ("best_cost", ctypes.c_uint64),
        ("since", ctypes.c_int64),
    )


@cache
def engine() -> ctypes.CDLL:
    """Return the library, which a first call of this process opens and the first on a machine builds.

    Raises:
        ToolchainError: no compiler.
        BuildError: the compiler failed.
    """
    library = opened(build("search", _SOURCE, find_toolchain()).binary)
    library.nsc_search.restype = library.nsc_removable.restype = ctypes.c_int64
    return library


def walk(
    goal: Goal,
    rows: Rows,
    standing: Standing,
    seed: int,
    candidates: int,
    patience: int,
    stops_at_gain: bool = False,
) -> tuple[int, Standing]:
    """Try candidates, and return how many, and the state of the search after them.

    Args:
        goal, rows: what is searched, and the pool.
        standing: where the search stands.
        seed: of the random numbers, below 2^64.
        candidates: how many are tried.
        patience: candidates without a gain after which the search starts anew.
        stops_at_gain: whether it ends where `best` is improved.

    Raises:
        NetworkError: no network passes the pool.
    """
    stated = _problem(goal, rows)
    lists = (_listed(standing.current), _listed(standing.best), _listed(standing.origin))
    place = _Standing(*lists, standing.best_cost, standing.since)
    numbers = (ctypes.c_int64(number) for number in (candidates, patience, stops_at_gain))
    tried = engine().nsc_search(ctypes.byref(stated), ctypes.byref(place), ctypes.c_uint64(seed), *numbers)
    _check_memory(tried)
    if tried == _NO_NETWORK:
        raise NetworkError(f"a search has room for {count(MOST_COMPARATORS // 2, 'comparator')}, too few")
    after = Standing(_read(place.current), _read(place.best), standing.origin, place.best_cost, place.since)
    return tried, after


def removable(
    goal: Goal, rows: Rows, comparators: Comparators, places: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Return for each row of places (first, second) whether the pool passes without these comparators."""
    stated = _problem(goal, rows)
    found, listed = np.zeros(len(places), bool), _listed(comparators)
    status = engine().nsc_removable(
        ctypes.byref(stated),
        ctypes.byref(listed),
        ctypes.c_void_p(places.ctypes.data),
        ctypes.c_int64(len(places)),
        ctypes.c_void_p(found.ctypes.data),
    )
    _check_memory(status)
    return found


def _problem(goal: Goal, rows: Rows) -> _Problem:
    prefix, behind = (np.array(pairs, np.uint8).reshape(-1, 2) for pairs in (goal.prefix, goal.behind))
    outputs = np.array(list(goal.ranks), np.uint8)
    arrays = (prefix, behind, outputs, rows)
    stated = _Problem(
        goal.n,
        goal.symmetric,
        goal.objective.value,
        goal.depth or 0,
        len(prefix),
        len(behind),
        len(outputs),
        len(rows),
        *(array.ctypes.data for array in arrays),
        goal.wanted.off_by > 0,
    )
    stated.arrays = arrays
    return stated


def _listed(comparators: Comparators | None) -> _Comparators:
    if comparators is None:
        return _Comparators(_NONE)
    if len(comparators) > MOST_COMPARATORS // 2:
        raise NetworkError(
            f"a search takes up to {count(MOST_COMPARATORS // 2, 'comparator')} behind the first layers, "
            f"got {len(comparators):,}"
        )
    flat = [wire for pair in comparators for wire in pair]
    return _Comparators(len(comparators), (ctypes.c_uint8 * (2 * MOST_COMPARATORS))(*flat))


def _read(listed: _Comparators) -> Comparators | None:
    if listed.count == _NONE:
        return None
    flat: Sequence[int] = listed.at[: 2 * listed.count]
    return tuple(zip(flat[::2], flat[1::2], strict=True))


def _check_memory(status: int) -> None:
    if status == _NO_MEMORY:
        raise MemoryError("not enough memory for the pool of a search")
