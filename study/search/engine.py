"""The engine of a search: a library for all networks, compiled once for a machine."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial

import numpy as np
import numpy.typing as npt

from nsc import library
from nsc.errors import NetworkError
from nsc.runtime.build.cache import build, opened, used
from nsc.runtime.build.toolchain import find_toolchain
from nsc.study.search import Comparators, Effort, Outcome, Problem, Round, Standing, run_round
from nsc.wording import count

_SOURCE = "// The engine of nsc search.\n#include <nsc/search/walk.h>\n"
MOST_COMPARATORS = int(library.constant("most_comparators", "search/comparators.h"))
_NONE, _NO_NETWORK, _NO_MEMORY = -1, -1, -2


class _Comparators(ctypes.Structure):
    """nsc::search::Comparators."""

    _fields_ = (("count", ctypes.c_int64), ("at", ctypes.c_uint8 * (2 * MOST_COMPARATORS)))


class _Problem(ctypes.Structure):
    """nsc::search::Problem."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("wires", "symmetric", "objective", "most_layers")),
        *((name, ctypes.c_int64) for name in ("prefix_count", "behind_count", "outputs", "blocks")),
        *((name, ctypes.c_void_p) for name in ("prefix", "behind", "output_wires", "rows")),
    )


class _Standing(ctypes.Structure):
    """nsc::search::Standing."""

    _fields_ = (
        *((name, _Comparators) for name in ("current", "best", "origin")),
        ("best_cost", ctypes.c_uint64),
        ("since", ctypes.c_int64),
    )


class _Effort(ctypes.Structure):
    """nsc::search::Effort."""

    _fields_ = (
        ("seed", ctypes.c_uint64),
        *((name, ctypes.c_int64) for name in ("candidates", "patience", "stops_at_gain")),
    )


class SearchEngine:
    """The compiled engine.

    Raises:
        ToolchainError: no compiler.
        BuildError: the compiler failed.
    """

    def __init__(self) -> None:
        library = used(partial(build, "search", _SOURCE, find_toolchain()), opened)
        self._search, self._removable = library.nsc_search, library.nsc_removable
        self._search.restype = self._removable.restype = ctypes.c_int64

    def search(self, problem: Problem, standing: Standing, effort: Effort) -> tuple[int, Standing]:
        """Return how many candidates were tried, and the state of the search after them.

        Raises:
            NetworkError: no network passes the pool.
        """
        stated, kept = _problem(problem)
        lists = (_listed(standing.current), _listed(standing.best), _listed(standing.origin))
        place = _Standing(*lists, standing.best_cost, standing.since)
        counts = _Effort(effort.seed, effort.candidates, effort.patience, effort.stops_at_gain)
        tried = self._search(ctypes.byref(stated), ctypes.byref(place), ctypes.byref(counts))
        del kept
        _check_memory(tried)
        if tried == _NO_NETWORK:
            raise NetworkError(f"a search has room for {count(MOST_COMPARATORS // 2, 'comparator')}, too few")
        after = Standing(
            _read(place.current), _read(place.best), standing.origin, place.best_cost, place.since
        )
        return tried, after

    def removable(
        self, problem: Problem, comparators: Comparators, places: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.bool_]:
        """Return for each row of places (first, second) whether the pool passes without these comparators."""
        stated, kept = _problem(problem)
        found, listed = np.zeros(len(places), bool), _listed(comparators)
        status = self._removable(
            ctypes.byref(stated),
            ctypes.byref(listed),
            ctypes.c_void_p(places.ctypes.data),
            ctypes.c_int64(len(places)),
            ctypes.c_void_p(found.ctypes.data),
        )
        del kept
        _check_memory(status)
        return found


@cache
def search_engine() -> SearchEngine:
    """Return the engine of this process."""
    return SearchEngine()


def work(round_: Round) -> Outcome:
    """Do a round in this process."""
    return run_round(round_, search_engine())


def _problem(problem: Problem) -> tuple[_Problem, list[npt.NDArray[np.generic]]]:
    """Return a problem for the library, and the arrays that it points to, which must outlive the call."""
    goal = problem.goal
    prefix, behind = (np.array(pairs, np.uint8).reshape(-1, 2) for pairs in (goal.prefix, goal.behind))
    outputs = np.array(list(goal.ranks), np.uint8)
    arrays: list[npt.NDArray[np.generic]] = [prefix, behind, outputs, problem.rows]
    stated = _Problem(
        goal.n,
        goal.symmetric,
        goal.objective.value,
        goal.depth or 0,
        len(prefix),
        len(behind),
        len(outputs),
        len(problem.rows),
        *(array.ctypes.data for array in arrays),
    )
    return stated, arrays


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
