"""Temperatures: the best of a grid that is made wider where the best lies at its edge."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.choosing import MOST_WIDER, choose, possible
from experiments.methods import find
from experiments.profiles import PROFILES
from experiments.run import Result
from experiments.tables import TABLES
from experiments.tables.plan import Settings

SETTINGS = Settings(PROFILES["quick"], (("digits", "0" * 12),), 1, ("soft_sort",), (5,))
GRID = find("soft_sort").grid


def chosen(score, grid=GRID):
    """Return the choice for a method whose score is a function of the temperature; None: training fails."""
    tried = []

    def do(runs):
        tried.extend(run.temperature for run in runs)
        found = {run: score(run.temperature) for run in runs}
        return {
            run: Result(run, "" if value is not None else "failed", {}, {}, ((1, value),), (), 0.0, "")
            for run, value in found.items()
        }

    tuning = {
        (replace(method, grid=grid), temperature): replace(run, temperature=temperature)
        for (method, _), run in list(TABLES["mnist"].tuning(SETTINGS).items())[:1]
        for temperature in grid
    }
    choice = choose(tuning, do)["soft_sort"]
    assert sorted(tried) == sorted(choice.grid)
    assert set(tried) <= set(possible(grid))
    return choice


def near(peak):
    return lambda temperature: -abs(math.log(temperature / peak))


@pytest.mark.parametrize(
    ("peak", "found"),
    [
        (1.0, (0.5, 1.0, 2.0)),
        (4.0, (0.5, 1.0, 2.0, 4.0, 8.0)),
        (0.25, (0.12, 0.25, 0.5, 1.0, 2.0)),
        (1e9, (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)),
        (1e-9, (0.031, 0.062, 0.12, 0.25, 0.5, 1.0, 2.0)),
    ],
)
def test_a_grid_is_made_wider_until_the_best_lies_inside(peak, found):
    choice = chosen(near(peak), (0.5, 1.0, 2.0))
    assert choice.grid == pytest.approx(found, rel=0.1)
    assert len(choice.grid) <= 3 + MOST_WIDER
    assert bool(choice.edge) == (peak in (1e9, 1e-9))
    assert choice.chosen == max(choice.grid, key=near(peak))


def test_where_training_fails_is_beyond_the_best():
    assert chosen(lambda t: None if t > 2 else t, (0.5, 1.0, 2.0)).chosen == 2.0
    assert chosen(lambda t: None, (0.5, 1.0, 2.0)).chosen == 1.0
    assert chosen(lambda t: 0.5, (2.0,)).grid == (2.0,)
