"""Choosing the temperatures of methods, by one rule for all: the best on the validation part wins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from experiments.run import Result, Run
from experiments.tables.plan import Tempered, Tuning
from experiments.training import WATCHED
from experiments.writing.records import Tuned

# How often the grid of a method is made wider, where the best lies at its edge.
MOST_WIDER = 4

Scores = dict[float, float | None]
"""The best score of each temperature on the validation part; None where training failed."""


def choose(tuning: Tuning, do: Callable[[Iterable[Run]], Mapping[Run, Result]]) -> dict[str, Tuned]:
    """Return the choice for each method, by its name.

    Where the best lies at an edge of the grid, the next temperature beyond it is tried, up to MOST_WIDER
    times.

    Args:
        tuning: the runs of the grids.
        do: returns the results of runs.
    """
    tried: dict[Tempered, dict[float, Run]] = {}
    for (method, temperature), run in tuning.items():
        tried.setdefault(method, {})[temperature] = run
    results: dict[Run, Result] = {}
    while missing := [run for runs in tried.values() for run in runs.values() if run not in results]:
        results |= do(missing)
        for method, runs in tried.items():
            beyond = beyond_edge(_scores(runs, results), len(method.grid) + MOST_WIDER)
            if beyond is not None:
                runs[beyond] = replace(next(iter(runs.values())), temperature=beyond)
    return {method.name: _choice(method, runs, results) for method, runs in tried.items()}


def beyond_edge(scores: Scores, most: int) -> float | None:
    """Return the temperature to try beyond the edge of a grid at which the best lies, in the ratio of the two
    at that edge; None: the best lies inside, all failed, or `most` were tried.

    >>> beyond_edge({1.0: 0.2, 2.0: 0.3}, 5), beyond_edge({1.0: 0.3, 3.0: 0.3, 6.0: None}, 5)
    (4.0, 0.33)
    >>> beyond_edge({1.0: 0.1, 2.0: 0.3, 4.0: None}, 5) is beyond_edge({1.0: 0.2, 2.0: 0.3}, 2) is None
    True
    """
    ordered, best = sorted(scores), _best(scores)
    if best is None or len(ordered) >= most or len(ordered) == 1 or best not in (ordered[0], ordered[-1]):
        return None
    return _next(*(ordered[1::-1] if best == ordered[0] else ordered[-2:]))


def possible(grid: tuple[float, ...]) -> list[float]:
    """Return all temperatures that a method may get."""
    ordered = sorted(grid)
    for _ in range(MOST_WIDER if len(ordered) > 1 else 0):
        ordered = [_next(ordered[1], ordered[0]), *ordered, _next(*ordered[-2:])]
    return ordered


def _next(inner: float, edge: float) -> float:
    return float(f"{edge * edge / inner:.2g}")


def _scores(runs: Mapping[float, Run], results: Mapping[Run, Result]) -> Scores:
    found = {temperature: results[run] for temperature, run in runs.items()}
    return {
        t: None if each.failure else max(score for _, score in each.validations) for t, each in found.items()
    }


def _best(scores: Scores) -> float | None:
    """Return the temperature of the best score, of equal ones the first; None: there is none."""
    known = {temperature: score for temperature, score in scores.items() if score is not None}
    return max(known, key=lambda temperature: known[temperature]) if known else None


def _choice(method: Tempered, runs: Mapping[float, Run], results: Mapping[Run, Result]) -> Tuned:
    """Return the best; if training fails with all, the middle one, whose failures the table then shows."""
    scores = _scores(runs, results)
    best, grid = _best(scores), sorted(scores)
    return Tuned(
        row=method.title,
        column="",
        temperature=method.temperature,
        metric=WATCHED[next(iter(runs.values())).task],
        grid=tuple(grid),
        scores=tuple(scores[temperature] for temperature in grid),
        chosen=grid[len(grid) // 2] if best is None else best,
    )
