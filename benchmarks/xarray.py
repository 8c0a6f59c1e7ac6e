"""`python -m benchmarks.xarray`: the recipes of docs/xarray.md beside xarray's own calls, and numbagg alone.

Writes results/xarray.md. xarray and Dask call NumPy alone, or numbagg too, or bottleneck too. All take turns,
and the functions are those that the page defines.
"""

from __future__ import annotations

import ast
import importlib
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import dask
import numpy as np
import torch
import xarray as xr
from dask.array import reductions

import nsc.numpy
from benchmarks.exact import ARRAYS, CASES, measure_exact
from benchmarks.machine import machine
from benchmarks.peers import importable
from benchmarks.report import paragraph
from nsc.atomic import write_whole

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "xarray.md", ROOT / "benchmarks" / "results" / "xarray.md"
SHAPE, CHUNK = (60, 200, 200), 100
# A line ends after this time, but not before LEAST_ROUNDS rounds.
LINE_SECONDS, LEAST_ROUNDS, ROUNDS = 20.0, 3, 9
# What xarray and Dask call: NumPy alone, or a module too.
MODULES = ALONE, NUMBAGG, BOTTLENECK = "NumPy", "numbagg", "bottleneck"


@dataclass(frozen=True)
class Line:
    """A call of xarray, and the page's recipe for it.

    Attributes:
        own: xarray's call.
        recipe: the call with nsc.numpy.
        modules: what xarray is measured with.
    """

    own: str
    recipe: str
    modules: tuple[str, ...] = (ALONE, NUMBAGG)


LINES = (
    Line('scenes.median("time")', 'median(scenes, "time")', MODULES),
    Line('scenes.quantile(0.95, "time")', 'scenes.reduce(nsc.numpy.nanquantile, "time", q=0.95)'),
    Line(
        'scenes.quantile([0.05, 0.5, 0.95], "time")',
        'quantiles(scenes, [0.05, 0.5, 0.95], "time").transpose("quantile", ...)',
    ),
    Line('lazy.median("time").compute()', 'median(lazy, "time").compute()'),
    Line(
        'lazy.quantile(0.95, "time").compute()',
        'lazy.reduce(nsc.numpy.nanquantile, "time", q=0.95).compute()',
    ),
    Line(
        "scenes.rolling(time=5, min_periods=1).median()",
        'rolling_median(scenes, "time", 5, min_periods=1)',
        MODULES,
    ),
    Line(
        "lazy.rolling(time=5, min_periods=1).median().compute()",
        'rolling_median(lazy, "time", 5, min_periods=1).compute()',
        MODULES,
    ),
    Line("filled.rolling(y=5, x=5, center=True).median()", "median_filter(filled, y=5, x=5)"),
)


def names(shape: tuple[int, int, int], chunk: int) -> dict[str, Any]:
    """Return the names that lines have: arrays of a shape, and the page's functions."""
    cells = re.findall(r"^```\{code-cell\}\n(.*?)^```$", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    statements = [statement for cell in cells for statement in ast.parse(cell).body]
    kept: list[ast.stmt] = [each for each in statements if isinstance(each, ast.Import | ast.FunctionDef)]
    found: dict[str, Any] = {}
    exec(compile(ast.Module(kept, []), str(PAGE), "exec"), found)
    random = np.random.default_rng(0)
    values = random.standard_normal(shape, dtype=np.float32)
    values[random.random(shape) < 0.1] = np.nan
    scenes = xr.DataArray(values, dims=("time", "y", "x"))
    lazy = scenes.chunk(time=-1, y=chunk, x=chunk)
    return found | {"scenes": scenes, "lazy": lazy, "filled": scenes.fillna(0)}


@contextmanager
def calling(module: str) -> Iterator[None]:
    """Let xarray and Dask call NumPy alone, or a module too, on one thread."""
    options: dict[str, Any] = {f"use_{each}": each == module for each in (NUMBAGG, BOTTLENECK)}
    with (
        xr.set_options(**options),
        patch.object(reductions, "HAS_NUMBAGG", module == NUMBAGG),
        dask.config.set(scheduler="synchronous"),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, about samples of NaN alone
        yield


def calls_of(line: Line, named: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the calls of a line: nsc's recipe, and xarray's call by the module that it uses."""

    def own(module: str) -> Callable[[], Any]:
        def call() -> Any:
            with calling(module):
                return eval(line.own, named)

        return call

    def recipe() -> Any:
        with calling(ALONE):
            return eval(line.recipe, named)

    present = [module for module in line.modules if module == ALONE or importable(module)]
    return {"nsc": recipe} | {module: own(module) for module in present}


def _least(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Return the least seconds of the processor of each call, in turns, the first of which compiles."""
    seconds = dict.fromkeys(calls, np.inf)
    start = time.perf_counter()
    for number in range(ROUNDS):
        if number >= LEAST_ROUNDS and time.perf_counter() - start > LINE_SECONDS:
            break
        for name, call in calls.items():
            begin = time.process_time()
            call()
            seconds[name] = min(seconds[name], time.process_time() - begin)
    return seconds


def _lines(only: str) -> Iterator[tuple[str, ...]]:
    """Yield the milliseconds of lines that have a text."""
    named = names(SHAPE, CHUNK)
    for line in (line for line in LINES if only in line.own):
        seconds = _least(calls_of(line, named))
        ours = seconds.pop("nsc")
        ratios = dict.fromkeys(_ratio(each(seconds.values()) / ours) for each in (min, max))
        cells = (_short(seconds[each] * 1e3) if each in seconds else "" for each in MODULES)
        yield f"`{line.own}`", *cells, _short(ours * 1e3), " … ".join(ratios)


def _against_numbagg(only: str) -> Iterator[tuple[str, ...]]:
    """Yield the nanoseconds of a sample of nsc and numbagg, and the ratios on one thread and on two."""
    counts = sorted({1, min(2, torch.get_num_threads())})
    for case in CASES:
        for target in case.targets:
            if target.peer.startswith(NUMBAGG) and only in target.peer:
                timed = measure_exact(replace(case, targets=(target,)), counts)
                times = {(each.peer, each.threads): each.per_sample(each.rounds.low) for each in timed}
                pairs = [(times[ARRAYS, count], times[target.peer, count]) for count in counts]
                ratios = (_ratio(theirs / ours) for ours, theirs in pairs)
                yield f"`{target.peer}`, {case.dtype}, {case.n} values", *map(_short, pairs[0]), *ratios


def _ratio(value: float) -> str:
    return f"{value:,.{1 if value < 10 else 0}f}×"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    rules = ("---", *("---:" for _ in columns[1:]))
    return "\n".join(f"| {' | '.join(row)} |" for row in (columns, rules, *rows))


@click.command()
@click.option("--only", default="", metavar="TEXT", help="Lines that have TEXT; nothing is written.")
def main(only: str) -> None:
    """Measure on one thread, numbagg on two as well, and write both tables."""
    importlib.import_module("numba").set_num_threads(1)
    threads = nsc.numpy.get_num_threads()
    nsc.numpy.set_num_threads(1)
    with nsc.numpy.prepare():
        rows = [*_lines(only)]
    nsc.numpy.set_num_threads(threads)
    calls = _table(("xarray's call", *(f"{each}, ms" for each in MODULES), "nsc, ms", "nsc is faster"), rows)
    titles = ("numbagg's call", "nsc, ns", "numbagg, ns", "nsc is faster", "on two threads")
    peers = _table(titles, [*_against_numbagg(only)])
    click.echo(f"{calls}\n\n{peers}")
    if only:
        return
    versions = ", ".join(f"{each} {version(each)}" for each in ("xarray", "dask", "numpy", *MODULES[1:]))
    head = (
        f"`python -m benchmarks.xarray` on {machine()}, {versions}. The recipes of "
        "[xarray](../../docs/xarray.md) beside xarray's own calls, which compute by NumPy, or by numbagg or "
        f"bottleneck where it can. `scenes` is {' × '.join(map(str, SHAPE))} (time, y, x), float32, a tenth "
        f"of it NaN; `lazy` is in chunks of {CHUNK} × {CHUNK} pixels; `filled` has no NaN. Times are "
        "processor milliseconds on one thread, the least of rounds in which all take turns, with kernels "
        "that are built already."
    )
    tail = (
        "Nanoseconds a sample by the clock, the least of rounds in which both take turns. Values lie along "
        "the first axis, as times do. A tenth is NaN. numbagg computes in float64, and gets an eighth of the "
        "samples."
    )
    parts = ("# xarray and numbagg", paragraph(head), calls, "## numbagg", paragraph(tail), peers)
    write_whole(RESULTS, "\n\n".join(parts) + "\n")
    click.echo(f"wrote {RESULTS}")


if __name__ == "__main__":
    main()
