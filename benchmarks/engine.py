"""`python -m benchmarks.engine`: what serves a first call, what it costs, and how quick it is.

Writes results/engine.md: the engine beside the network's own library. Ratios are of the quickest calls of C
functions, which take turns on one thread. First calls and builds have a process each.
"""

from __future__ import annotations

import itertools
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import torch

import nsc
from benchmarks.cases import LOSS, Case, P
from benchmarks.fresh import run_fresh
from benchmarks.kernels import bound_calls, quickest_in_turns
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.join import prebuilding
from nsc.runtime.build import prebuilt
from nsc.runtime.build.cache import opened
from nsc.runtime.build.prebuilt import LEVELS
from nsc.runtime.build.system import machine as architecture
from nsc.runtime.relaxed.library import Engine

RESULTS = Path(__file__).parent / "results" / "engine.md"
SIZES = ((8, 200), (16, 100), (32, 100), (64, 16), (128, 16), (512, 2), (1024, 1))
ROUNDS = 3
CASES = (("bitonic", 32), ("odd_even", 16), ("bitonic", 20))
WORDS = [f"{family} {n}" for family, n in CASES]


def main() -> None:
    """Measure, and write the page."""
    torch.set_num_threads(1)
    lines = [
        "| n | batch | values | gradient of values | P | gradient of P | cross entropy |",
        f"|---:|{'---:|' * 6}",
    ]
    for n, batch in SIZES:
        cells = [f"{ratio:.2f}" for ratio in ratios(n, batch)]
        lines.append(f"| {n} | {batch} | {' | '.join(cells)} |")
        print(lines[-1], flush=True)
    lines += ["", "| n | first call by the engine, ms | build, s |", "|---:|---:|---:|"]
    for n, _ in SIZES:
        first, build = medians(n)
        lines.append(f"| {n} | {first * 1e3:.0f} | {build:.1f} |")
        print(lines[-1], flush=True)
    lines += ["", f"| level | {' | '.join(WORDS)} |", f"|:---|{'---:|' * len(WORDS)}"]
    here = prebuilt.level_here()
    for level in itertools.dropwhile(lambda level: level != here, LEVELS[architecture()]):
        lines.append(f"| {level} | {' | '.join(f'{ratio:.2f}' for ratio in level_ratios(level))} |")
        print(lines[-1], flush=True)
    head = (
        f"`python -m benchmarks.engine` on {machine()}. Bitonic networks, float32, one thread. The first "
        "table has the engine's time over the own library's time. The second has what the first "
        "call of a network takes by an engine that is built, behind its proof, and the build of its own "
        f"library: medians of {ROUNDS} processes. The third has the time of a cross entropy and its gradient "
        "by the engine of a level of processors, as the package sortnets-kernels has them, over that by the "
        "engine that is built here."
    )
    write_whole(RESULTS, "\n".join(["# The engine", "", paragraph(head), "", *lines, ""]))


def ratios(n: int, batch: int) -> Iterator[float]:
    """Yield the engine's time over the own library's time: of values, of P, and of a loss."""
    kernel = nsc.compile("bitonic", n).kernel
    kinds = {
        "engine": kernel.engine().functions["float32"],
        "library": kernel.own_library().functions["float32"],
    }
    for work, parts in ((P, ("keys forward", "keys backward", "forward", "backward")), (LOSS, ("backward",))):
        turns = {
            (kind, part): call
            for kind, functions in kinds.items()
            for part, call in bound_calls(Case(work, "bitonic", n, batch), functions).items()
            if part in parts
        }
        quickest = quickest_in_turns(turns, batch)
        yield from (quickest["engine", part] / quickest["library", part] for part in parts)


def level_ratios(level: str) -> Iterator[float]:
    """Yield the time by the engine of a level over that by the engine of this machine."""
    source = nsc.compile(*CASES[0]).kernel.engine_sources["float32"]
    platform = prebuilding.PLATFORMS[f"manylinux_2_17_{architecture()}"]
    with tempfile.TemporaryDirectory() as folder:
        path = prebuilding.write("engine_logistic", source, platform, level, Path(folder))
        for family, n in CASES:
            kernel = nsc.compile(family, n).kernel
            tables = NetworkTables.from_text(kernel.files[TABLES])
            kinds = {"level": Engine({"float32": opened(path)}.__getitem__, tables), "here": kernel.engine()}
            turns = {
                (kind, "loss"): bound_calls(Case(LOSS, family, n, 4096 // n), engine.functions["float32"])[
                    "backward"
                ]
                for kind, engine in kinds.items()
            }
            quickest = quickest_in_turns(turns, 4096 // n)
            yield quickest["level", "loss"] / quickest["here", "loss"]


def medians(n: int) -> tuple[float, float]:
    """Return the seconds of a network's first call by the engine, and of the build of its library."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        run_fresh("benchmarks.engine", "2", env={"NSC_CACHE_DIR": folder})
        for _ in range(ROUNDS):
            for path in Path(folder).glob("bitonic_*"):
                path.unlink()
            found.append(run_fresh("benchmarks.engine", n, env={"NSC_CACHE_DIR": folder}))
    first, build = zip(*found, strict=True)
    return median(first), median(build)


def first_call(n: int) -> None:
    """Print the seconds of a network's first call by the engine and of a build of its own, as JSON."""
    nsc.compile("odd_even", 3).sort(torch.randn(1, 3))  # torch's first call
    op, x = nsc.compile("bitonic", n), torch.randn(4, n)
    start = time.perf_counter()
    op.sort(x)
    first = time.perf_counter()
    op.kernel.build()
    print(json.dumps([first - start, time.perf_counter() - first]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        first_call(int(sys.argv[1]))
    else:
        main()
