"""Builds with an empty cache: prove, schedule, render and compile, in a process of its own."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from dataclasses import dataclass

import torch  # noqa: F401  imported here, so that the times exclude it

import nsc
from benchmarks.fresh import run_fresh

BUILDS = (("bitonic", 1024), ("odd_even", 1024))


@dataclass(frozen=True)
class Build:
    """Seconds from a network's name to a library on disk.

    Attributes:
        network, n: the family and its wires.
        text: seconds of the proof, the schedule and the C++ text, and of importing nsc but not torch.
        library: seconds of the C++ compiler.
    """

    network: str
    n: int
    text: float
    library: float


def build_name(network: str, n: int) -> str:
    """Return the name of the measurement, as --only matches it."""
    return f"build of {network} {n}"


def measure_build(network: str, n: int) -> Build:
    """Build with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = run_fresh("benchmarks.building", network, n, env={"NSC_CACHE_DIR": folder})
    return Build(network, n, seconds["text"], seconds["library"])


def main(network: str, n: str) -> None:
    """Print the seconds of both parts, as JSON."""
    start = time.perf_counter()
    op = nsc.compile(network, int(n))
    compiled = time.perf_counter()
    op.kernel.build()
    print(json.dumps({"text": compiled - start, "library": time.perf_counter() - compiled}))


if __name__ == "__main__":
    main(*sys.argv[1:])
