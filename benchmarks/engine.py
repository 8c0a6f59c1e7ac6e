"""`python -m benchmarks.engine`: what a kernel's own build gives over the engine, and what it costs.

Writes results/engine.md. A ratio is the engine's time over that of the network's own kernel: the quickest
calls of both C functions, which take turns on one thread. First calls and builds have a process each, and a
cache that is empty but for the engine.
"""

from __future__ import annotations

import json
import os
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
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.runtime.relaxed import engine
from nsc.runtime.relaxed.engine import Engine

RESULTS = Path(__file__).parent / "results" / "engine.md"
SIZES = ((8, 200), (16, 100), (32, 100), (64, 16), (128, 16), (512, 2), (1024, 1))
ROUNDS = 5


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
    head = (
        f"`python -m benchmarks.engine` on {machine()}. Bitonic networks, float32, one thread. The first "
        "table has the engine's time over that of the network's own kernel. The second has what the first "
        "call of a network takes by the engine, behind its proof, and the build of its kernel: medians of "
        f"{ROUNDS} processes."
    )
    partial = RESULTS.with_suffix(".partial")
    partial.write_text("\n".join(["# The engine", "", paragraph(head), "", *lines, ""]), encoding="utf-8")
    os.replace(partial, RESULTS)


def ratios(n: int, batch: int) -> Iterator[float]:
    """Yield the engine's time over the kernel's of each function: of values, of P, and of a loss."""
    op = nsc.compile("bitonic", n)
    library = op.kernel.own_library()
    kinds = {"engine": engine_of(op).functions["float32"], "kernel": library.functions["float32"]}
    for work, parts in ((P, ("keys forward", "keys backward", "forward", "backward")), (LOSS, ("backward",))):
        turns = {
            (kind, part): call
            for kind, functions in kinds.items()
            for part, call in bound_calls(Case(work, "bitonic", n, batch), functions).items()
            if part in parts
        }
        quickest = quickest_in_turns(turns, batch)
        yield from (quickest["engine", part] / quickest["kernel", part] for part in parts)


def engine_of(op: nsc.Sorter) -> Engine:
    """Return the engine with an operator's network."""
    paths = {
        real: engine.build(op.kernel.sigmoid, source, op.kernel.manifest.nsc).binary
        for real, (_, source) in op.kernel.engine_sources.items()
    }
    return Engine(paths, NetworkTables.from_text(op.kernel.files[TABLES]))


def medians(n: int) -> tuple[float, float]:
    """Return the seconds of the first call of a network by the engine, and of its build."""
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
    """Print the seconds of a network's first call by the engine and of its build, as JSON."""
    other = nsc.compile("odd_even", 3)
    engine_of(other)
    other.kernel.build()
    other.sort(torch.randn(1, 3))  # torch's first call
    op, x = nsc.compile("bitonic", n), torch.randn(4, n)
    start = time.perf_counter()
    op.sort(x)
    first = time.perf_counter() - start
    op.kernel.build()  # waits for the thread
    print(json.dumps([first, time.perf_counter() - start]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        first_call(int(sys.argv[1]))
    else:
        main()
