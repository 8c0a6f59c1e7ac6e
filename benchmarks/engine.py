"""`python -m benchmarks.engine`: what serves a first call, what it costs, and how quick it is.

Writes results/engine.md: the engine and prebuilt libraries beside the network's own kernel. Ratios are of the
quickest calls of C functions, which take turns on one thread. First calls and builds have a process each.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import torch

import nsc
from benchmarks.cases import LOSS, Case, P
from benchmarks.fresh import ROOT, run_fresh
from benchmarks.kernels import bound_calls, quickest_in_turns
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc import prebuilding
from nsc.contract.manifest import TABLES
from nsc.contract.tables import NetworkTables
from nsc.runtime.build import prebuilt
from nsc.runtime.build.prebuilt import LEVELS
from nsc.runtime.relaxed import engine
from nsc.runtime.relaxed.engine import Engine
from nsc.runtime.relaxed.library import Library

RESULTS = Path(__file__).parent / "results" / "engine.md"
SIZES = ((8, 200), (16, 100), (32, 100), (64, 16), (128, 16), (512, 2), (1024, 1))
ROUNDS = 5
# The last has no prebuilt kernel: the engine runs it.
PREBUILT = (("bitonic", 32), ("odd_even", 16), ("bitonic", 20))
WORDS = [f"{family} {n}" for family, n in PREBUILT]
SAMPLES = 64


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
    for level in itertools.dropwhile(lambda level: level != here, LEVELS):
        lines.append(f"| {level} | {' | '.join(f'{ratio:.2f}' for ratio in level_ratios(level))} |")
        print(lines[-1], flush=True)
    lines += ["", f"| ms | {' | '.join(WORDS)} |", f"|:---|{'---:|' * len(WORDS)}"]
    for words, times in first_losses().items():
        lines.append(f"| {words} | {' | '.join(times)} |")
        print(lines[-1], flush=True)
    head = (
        f"`python -m benchmarks.engine` on {machine()}. Bitonic networks, float32, one thread. The first "
        "table has the engine's time over that of the network's own kernel. The second has what the first "
        "call of a network takes by the engine, behind its proof, and the build of its kernel: medians of "
        f"{ROUNDS} processes. The third has the time of a cross entropy and its gradient by a library of a "
        "level of x86-64, as the package sortnets-kernels has them, over that by the kernel that is built "
        "here. The last has the first cross entropy and gradient of a process, behind the proof, and then a "
        f"later one, of {SAMPLES} samples, with an empty cache: medians of {ROUNDS} processes."
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


def level_ratios(level: str) -> Iterator[float]:
    """Yield the time by a library of a level over that by the network's own kernel."""
    with tempfile.TemporaryDirectory() as folder:
        for family, n in PREBUILT:
            kernel = nsc.compile(family, n).kernel
            path = prebuilding.write(kernel.name, kernel.sources["cpu"], level, Path(folder))
            kinds = {
                "level": Library(path, kernel.manifest.stated("cpu"), kernel.reals),
                "own": kernel.own_library(),
            }
            turns = {
                (kind, "loss"): bound_calls(Case(LOSS, family, n, 4096 // n), library.functions["float32"])[
                    "backward"
                ]
                for kind, library in kinds.items()
            }
            quickest = quickest_in_turns(turns, 4096 // n)
            yield quickest["level", "loss"] / quickest["own", "loss"]


def first_losses() -> dict[str, list[str]]:
    """Return the milliseconds of a first loss and of a later one, of each network, by what serves it."""
    with tempfile.TemporaryDirectory() as path, tempfile.TemporaryDirectory() as empty:
        package, level = Path(path) / prebuilt.PACKAGE, prebuilt.level_here()
        package.mkdir()
        (package / "__init__.py").touch()
        for name, source in prebuilding.sources():
            if level and name in {"engine_logistic", *(f"{family}_{n}" for family, n in PREBUILT[:2])}:
                prebuilding.write(name, source, level, package)
        ways = {
            "g++ builds the kernel": {},
            "prebuilt": {"PYTHONPATH": os.pathsep.join((str(ROOT), path))},
            "prebuilt, no compiler": {"PYTHONPATH": os.pathsep.join((str(ROOT), path)), "PATH": empty},
            "neither": {"PATH": empty},
        }
        return {words: [_first_and_later(*case, env) for case in PREBUILT] for words, env in ways.items()}


def _first_and_later(family: str, n: int, env: dict[str, str]) -> str:
    times = []
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as cache:
            times.append(run_fresh("benchmarks.engine", family, n, env={**env, "NSC_CACHE_DIR": cache}))
    return ", ".join(_milliseconds(median(each)) for each in zip(*times, strict=True))


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}" if seconds < 0.01 else f"{seconds * 1e3:,.0f}"


def first_loss(family: str, n: int) -> None:
    """Print the seconds of a process's first cross entropy and gradient, and of a later one, as JSON."""
    torch.set_num_threads(1)
    sys.modules["ziglang"] = None  # type: ignore[assignment]
    warnings.simplefilter("ignore")
    op = nsc.compile(family, n)
    x, ranks = torch.randn(SAMPLES, n).requires_grad_(), torch.randn(SAMPLES, n).argsort(-1).argsort(-1)
    seconds: list[float] = []
    while len(seconds) < 2 or sum(seconds[1:]) < 0.5:
        start = time.perf_counter()
        torch.autograd.grad(op.cross_entropy(x, ranks), x)
        seconds.append(time.perf_counter() - start)
    print(json.dumps([seconds[0], min(seconds[1:])]))


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
    if len(sys.argv) > 2:
        first_loss(sys.argv[1], int(sys.argv[2]))
    elif len(sys.argv) > 1:
        first_call(int(sys.argv[1]))
    else:
        main()
