"""`python -m benchmarks.calls`: sixty calls that people make of NumPy, SciPy, pandas and bottleneck, in a
fresh process.

A line is measured in processes of its own: each peer, and nsc with an empty cache ("first") and with the
kernels that `nsc.numpy.prepare` built before ("kept"). Times are processor seconds of so many calls in a row,
from the first one on, compilers counted and imports not, the least of three processes. The last column has
the least times of warm calls, in turns in one process, with kept kernels.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from benchmarks.machine import machine

_PREPARATION = """
import json, resource, time, warnings
import numpy as np
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
"""
# What the expressions of peers name.
_IMPORTS = {
    "np.": "",
    "nd.": "import scipy.ndimage as nd",
    "stats.": "import scipy.stats as stats",
    "bn.": "import bottleneck as bn",
    "pd.": "import pandas as pd",
}
_TIMING = """
def spent():
    compilers = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + compilers.ru_utime + compilers.ru_stime
def elapsed(call, count):
    begin = spent()
    for _ in range(count):
        call()
    return spent() - begin
first = [elapsed(call, {count}) for call in calls[:1]]
for call in calls:
    call()
warm = [[] for _ in calls]
repeats = [max(1, min(2000, int(0.01 / elapsed(call, 1)))) for call in calls]
for _ in range(9):
    for call, count, times in zip(calls, repeats, warm):
        times.append(elapsed(call, count) / count)
print(json.dumps([first[0], *map(min, warm)]))
"""


# Processes of each kind, of which the least time counts.
_TIMES = range(3)


@dataclass(frozen=True)
class Line:
    """A call, and what people call in its place.

    Attributes:
        name: what it does.
        data: statements that make its arguments.
        nsc: the call of nsc.numpy, as nn.
        peers: other calls, by the name of the library.
        count: how many calls a fresh process makes.
        prepares: whether kernels are built for it.
    """

    name: str
    data: str
    nsc: str
    peers: Mapping[str, str] = field(default_factory=dict)
    count: int = 10
    prepares: bool = True


def _frame(rows: int, columns: int) -> str:
    return f"x = rng.random(({rows}, {columns}))"


def _numbers(*shape: int, dtype: str = "float32") -> str:
    if dtype.startswith("float"):
        return f"x = rng.random({shape}, dtype=np.float32).astype(np.{dtype})"
    return f"x = rng.integers(0, 250, {shape}).astype(np.{dtype})"


def _rolled(name: str, window: int, bottleneck: str, rows: int = 50_000, columns: int = 20) -> Line:
    return Line(
        f"rolling({window}).{name} of {rows:,} × {columns}",
        f"{_frame(rows, columns)}; frame = None",
        f"nn.rolling(x, {window}, axis=0).{name}()",
        {
            "bottleneck": f"bn.{bottleneck}(x, {window}, axis=0)",
            "pandas": f"pd.DataFrame(x).rolling({window}).{name}().to_numpy()",
        },
        count=3,
    )


def _along(name: str, data: str, nsc: str, numpy: str, count: int = 10, **more: str) -> Line:
    return Line(name, data, nsc, {"NumPy": numpy} | more, count)


def _never(name: str, data: str, nsc: str, numpy: str, count: int = 10) -> Line:
    """Return a line that no kernel serves."""
    return Line(name, data, nsc, {"NumPy": numpy}, count, prepares=False)


_TOP = "(lambda i: np.take_along_axis(i, np.take_along_axis(x, i, -1).argsort(-1), -1)[..., ::-1])"

LINES = (
    # Small calls.
    _along("median of a list of 10", "x = rng.random(10).tolist()", "nn.median(x)", "np.median(x)", 1000),
    _along("median of 10", _numbers(10), "nn.median(x)", "np.median(x)", 1000),
    _along("sort 10", _numbers(10), "nn.sort(x)", "np.sort(x)", 1000),
    _along("argsort 10", _numbers(10), "nn.argsort(x)", "np.argsort(x, kind='stable')", 1000),
    _along(
        "percentiles 25, 75 of 10",
        _numbers(10),
        "nn.percentile(x, [25, 75])",
        "np.percentile(x, [25, 75])",
        300,
    ),
    _along("nanmedian of 10", _numbers(10), "nn.nanmedian(x)", "np.nanmedian(x)", 300),
    _along("top 3 of 10", _numbers(10), "nn.topk(x, 3)", f"{_TOP}(np.argpartition(x, -3)[-3:])", 1000),
    _along("sort 1,000", _numbers(1000), "nn.sort(x)", "np.sort(x)", 300),
    _along("median of 1,000", _numbers(1000), "nn.median(x)", "np.median(x)", 300),
    _along(
        "percentiles 25, 75 of 1,000",
        _numbers(1000),
        "nn.percentile(x, [25, 75])",
        "np.percentile(x, [25, 75])",
        100,
    ),
    _along(
        "top 10 of 1,000", _numbers(1000), "nn.topk(x, 10)", f"{_TOP}(np.argpartition(x, -10)[-10:])", 300
    ),
    _along("median of 20 rows of 9", _numbers(20, 9), "nn.median(x, axis=1)", "np.median(x, axis=1)", 100),
    _along(
        "median of 20 rows of 100", _numbers(20, 100), "nn.median(x, axis=1)", "np.median(x, axis=1)", 100
    ),
    _along(
        "median of 20 rows of 300", _numbers(20, 300), "nn.median(x, axis=1)", "np.median(x, axis=1)", 100
    ),
    _along(
        "median of 20 rows of 500", _numbers(20, 500), "nn.median(x, axis=1)", "np.median(x, axis=1)", 100
    ),
    Line(
        "medians of 100 × 11 … 30, each once",
        "xs = [rng.random((100, n)) for n in range(11, 31)]",
        "[nn.median(x, axis=1) for x in xs]",
        {"NumPy": "[np.median(x, axis=1) for x in xs]"},
        1,
        prepares=False,
    ),
    Line(
        "medians of 40 groups of 100 … 139",
        "xs = [rng.random(n) for n in range(100, 140)]",
        "[nn.median(x) for x in xs]",
        {"NumPy": "[np.median(x) for x in xs]"},
        prepares=False,
    ),
    _along(
        "median of columns of 1,000 × 3", _frame(1000, 3), "nn.median(x, axis=0)", "np.median(x, axis=0)", 100
    ),
    # Many short samples: networks pay.
    _along("sort 100,000 rows of 8", _numbers(100_000, 8), "nn.sort(x)", "np.sort(x)"),
    _along("sort 20,000 rows of 32", _numbers(20_000, 32), "nn.sort(x)", "np.sort(x)"),
    _along("sort 10,000 rows of 100", _numbers(10_000, 100), "nn.sort(x)", "np.sort(x)"),
    _along(
        "argsort 20,000 rows of 32", _numbers(20_000, 32), "nn.argsort(x)", "np.argsort(x, kind='stable')"
    ),
    _along(
        "top 8 of 20,000 rows of 64",
        _numbers(20_000, 64),
        "nn.topk(x, 8)",
        f"{_TOP}(np.argpartition(x, -8)[:, -8:])",
    ),
    _along(
        "median of 11 frames of 500 × 500",
        _numbers(11, 500, 500),
        "nn.median(x, axis=0)",
        "np.median(x, axis=0)",
    ),
    _along(
        "median of 25 frames of 1,000 × 1,000, uint16",
        _numbers(25, 1000, 1000, dtype="uint16"),
        "nn.median(x, axis=0)",
        "np.median(x, axis=0)",
        3,
    ),
    _along(
        "nanmedian of 11 frames of 500 × 500, 1 % NaN",
        f"{_numbers(11, 500, 500)}; x[rng.random(x.shape) < 0.01] = np.nan",
        "nn.nanmedian(x, axis=0)",
        "np.nanmedian(x, axis=0)",
        3,
        bottleneck="bn.nanmedian(x, axis=0)",
    ),
    _along(
        "quantiles 0.25, 0.75 of 20 frames of 300 × 300",
        _numbers(20, 300, 300),
        "nn.quantile(x, [0.25, 0.75], axis=0)",
        "np.quantile(x, [0.25, 0.75], axis=0)",
    ),
    Line(
        "trimmed mean of 20 frames of 300 × 300",
        _numbers(20, 300, 300),
        "nn.trimmed_mean(x, 0.1, axis=0)",
        {"SciPy": "stats.trim_mean(x, 0.1, axis=0)"},
    ),
    _along(
        "weighted median of 20 frames of 300 × 300",
        f"{_numbers(20, 300, 300)}; w = rng.random(20)",
        "nn.median(x, axis=0, weights=w)",
        "np.quantile(x, 0.5, axis=0, weights=w, method='inverted_cdf')",
        3,
    ),
    _along(
        "median of 200,000 rows of 20", _frame(200_000, 20), "nn.median(x, axis=1)", "np.median(x, axis=1)", 3
    ),
    # Long samples: networks never pay.
    _never("sort 500 rows of 512", _numbers(500, 512), "nn.sort(x)", "np.sort(x)"),
    _never("sort 500 rows of 777", _numbers(500, 777), "nn.sort(x)", "np.sort(x)"),
    _never("sort 500 rows of 1,000, int32", _numbers(500, 1000, dtype="int32"), "nn.sort(x)", "np.sort(x)"),
    _never("sort 1,000 along axis 0 of 500", _numbers(1000, 500), "nn.sort(x, axis=0)", "np.sort(x, axis=0)"),
    _never(
        "500 medians of 1,024, axis 0", _numbers(1024, 500), "nn.median(x, axis=0)", "np.median(x, axis=0)"
    ),
    _never(
        "500 medians of 1,025, axis 0", _numbers(1025, 500), "nn.median(x, axis=0)", "np.median(x, axis=0)"
    ),
    _never("sort a million", _numbers(1_000_000), "nn.sort(x)", "np.sort(x)"),
    _never("median of a million", _numbers(1_000_000), "nn.median(x)", "np.median(x)"),
    _never("argsort a million", _numbers(1_000_000), "nn.argsort(x)", "np.argsort(x, kind='stable')"),
    _never(
        "argsort 1,000 rows of 5,000",
        _numbers(1000, 5000),
        "nn.argsort(x)",
        "np.argsort(x, kind='stable')",
        3,
    ),
    _never(
        "top 10 of a million", _numbers(1_000_000), "nn.topk(x, 10)", f"{_TOP}(np.argpartition(x, -10)[-10:])"
    ),
    _never(
        "top 5 of 64 rows of 50,000",
        _numbers(64, 50_000),
        "nn.topk(x, 5)",
        f"{_TOP}(np.argpartition(x, -5)[:, -5:])",
    ),
    _never(
        "top 10 of 256 rows of 2,000",
        _numbers(256, 2000),
        "nn.topk(x, 10)",
        f"{_TOP}(np.argpartition(x, -10)[:, -10:])",
    ),
    _never(
        "ranks 0 … 999 of a million",
        _numbers(1_000_000),
        "nn.select(x, range(1000))",
        "np.sort(np.partition(x, 999)[:1000])",
    ),
    _never("quantile 0.3 of a million", _numbers(1_000_000), "nn.quantile(x, 0.3)", "np.quantile(x, 0.3)"),
    _never(
        "percentiles 2, 98 of a 4K image, uint8",
        _numbers(2160, 3840, dtype="uint8"),
        "nn.percentile(x, [2, 98])",
        "np.percentile(x, [2, 98])",
        3,
    ),
    _never(
        "percentiles 2, 98 of a 4K image, float32",
        _numbers(2160, 3840),
        "nn.percentile(x, [2, 98])",
        "np.percentile(x, [2, 98])",
        3,
    ),
    _never(
        "weighted median of a million",
        f"{_numbers(1_000_000)}; w = rng.random(1_000_000)",
        "nn.median(x, weights=w)",
        "np.quantile(x, 0.5, weights=w, method='inverted_cdf')",
        3,
    ),
    _never("median of 10^8, uint8", _numbers(100_000_000, dtype="uint8"), "nn.median(x)", "np.median(x)", 1),
    # Windows.
    Line(
        "2,000 × rolling(5).median of 20 values",
        "xs = [rng.random(20) for _ in range(2000)]",
        "[nn.rolling(x, 5).median() for x in xs]",
        {"pandas": "[pd.Series(x).rolling(5).median().to_numpy() for x in xs]"},
        1,
    ),
    Line(
        "rolling(5).median of 2,000 × 20, axis 1",
        _frame(2000, 20),
        "nn.rolling(x, 5).median()",
        {
            "bottleneck": "bn.move_median(x, 5, axis=1)",
            "pandas": "pd.DataFrame(x.T).rolling(5).median().to_numpy()",
        },
    ),
    _rolled("median", 20, "move_median"),
    _rolled("median", 250, "move_median"),
    _rolled("median", 1000, "move_median"),
    _rolled("max", 1000, "move_max"),
    _rolled("max", 5, "move_max"),
    Line(
        "rolling(101).median of 100,000, one NaN",
        "x = rng.random(100_000); x[500] = np.nan",
        "nn.rolling(x, 101).median()",
        {"bottleneck": "bn.move_median(x, 101)"},
    ),
    Line(
        "median filter 3 × 3 of 512 × 512",
        _numbers(512, 512),
        "nn.median_filter(x, 3)",
        {"SciPy": "nd.median_filter(x, 3)"},
    ),
    Line(
        "median filter 7 × 7 of 1,000 × 1,000, uint8",
        _numbers(1000, 1000, dtype="uint8"),
        "nn.median_filter(x, 7)",
        {"SciPy": "nd.median_filter(x, 7)"},
        3,
    ),
    Line(
        "erosion 15 × 15 of 1,000 × 1,000, uint8",
        _numbers(1000, 1000, dtype="uint8"),
        "nn.rank_filter(x, 0, 15)",
        {"SciPy": "nd.minimum_filter(x, 15)"},
    ),
    Line(
        "median filter 3 of 10 values",
        _numbers(10),
        "nn.median_filter(x, 3)",
        {"SciPy": "nd.median_filter(x, 3)"},
        300,
    ),
)


def _measured(line: Line, calls: Sequence[str], cache: str, prepared: bool = False) -> list[float]:
    """Return the seconds of the first calls, and the least of a warm one of each, in a process of its own."""
    text = "\n".join(calls)
    imports = [text_ for prefix, text_ in _IMPORTS.items() if prefix in text]
    imports += ["import nsc.numpy as nn"] if "nn." in text else []
    body = (
        f"with nn.prepare():\n    {calls[0]}\nprint('[]')" if prepared else _TIMING.format(count=line.count)
    )
    made = f"calls = [{', '.join(f'lambda: {call}' for call in calls)}]"
    program = "\n".join([_PREPARATION, *imports, line.data, made, body])
    environment = {**os.environ, "NSC_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    found: list[float] = json.loads(done.stdout)
    return found


def _without_kernels(line: Line) -> float:
    """Return the seconds of the first calls of nsc with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        return _measured(line, [line.nsc], cache)[0]


def _row(line: Line) -> str:
    """Measure a line, and return its row."""
    first = {name: min(_measured(line, [call], "")[0] for _ in _TIMES) for name, call in line.peers.items()}
    peer = min(first, key=first.__getitem__)
    of_nsc = min(_without_kernels(line) for _ in _TIMES)
    with tempfile.TemporaryDirectory() as cache:
        if line.prepares:
            _measured(line, [line.nsc], cache, prepared=True)
        every = [_measured(line, [line.nsc, *line.peers.values()], cache) for _ in _TIMES]
    kept, mine, *others = map(min, zip(*every, strict=True))
    ratios = f"{of_nsc / first[peer]:.2f} | {kept / first[peer]:.2f} | {min(others) / mine:.2f}"
    return (
        f"| {line.name} | {line.count} | {peer} | {first[peer] * 1e3:.3g} | {of_nsc * 1e3:.3g} | {ratios} |"
    )


@click.command()
@click.option(
    "--only", default="", metavar="TEXT", help="Lines whose name contains TEXT; nothing is written."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(__file__).parent / "results/calls.md",
)
def main(only: str, out: Path) -> None:
    """Measure the lines on one thread, and write a table."""
    columns = ("call", "calls", "best peer", "peer, ms", "nsc first, ms", "first / peer", "kept / peer")
    head = f"| {' | '.join((*columns, 'peer / nsc, warm'))} |\n|---|---:|---|---:|---:|---:|---:|---:|"
    rows = []
    click.echo(head)
    for line in LINES:
        if only in line.name:
            rows.append(_row(line))
            click.echo(rows[-1])
    if not only:
        title = f"# Sixty calls in a fresh process\n\n{__doc__}\n{machine()}, one thread.\n"
        text = "\n".join([title, head, *rows])
        out.write_text(f"{text}\n", encoding="utf-8")
        click.echo(f"wrote {out}")


if __name__ == "__main__":
    main()
