"""Combine the updates of clients, each in a file, in far less memory than the files take.

    python -m examples.updates --parameters 100000000

Eleven clients send an update of a large model. Three of them are wrong everywhere. The server takes the
median of each parameter, a part of the files at a time, and writes it to another file. The process limits
what it may keep in memory, so it fails if it needs more. Pages of files that the system caches do not count.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import click
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

import nsc

CLIENTS, WRONG = 11, 3
# Parameters that are read at a time.
STEP = 1 << 20

Values = NDArray[np.floating]


def write_updates(folder: Path, parameters: int, dtype: str) -> list[Path]:
    """Write a file for each client: what is right, which is 1, and noise; or what is wrong."""
    paths = [folder / f"client_{number}" for number in range(CLIENTS)]
    for number, path in enumerate(paths):
        random = np.random.default_rng(number)
        with path.open("wb") as file:
            for start in range(0, parameters, STEP):
                values = 1 + random.standard_normal(min(STEP, parameters - start), np.float32) / 10
                (-10 * values if number < WRONG else values).astype(dtype).tofile(file)
    return paths


def combine(paths: list[Path], result: Path, dtype: str) -> Values:
    """Write the median of each parameter to a file, and return its map."""
    updates = [np.memmap(path, dtype, "r") for path in paths]
    medians = np.memmap(result, dtype, "w+", shape=updates[0].shape)
    for start in range(0, len(medians), STEP):
        part = slice(start, start + STEP)
        nsc.numpy.median([update[part] for update in updates], axis=0, out=medians[part])
    return medians


def limit_memory(megabytes: int) -> None:
    """Let the process have so much memory beyond what it has."""
    lines = dict(line.split(":") for line in Path("/proc/self/status").read_text("ascii").splitlines())
    most = 1024 * int(lines["VmData"].split()[0]) + 1_000_000 * megabytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, resource.getrlimit(resource.RLIMIT_DATA)[1]))


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--parameters", type=click.IntRange(1), default=20_000_000, help="Of the model.")
@click.option("--dtype", type=click.Choice(["float16", "float32", "float64"]), default="float32")
@click.option("--memory", type=click.IntRange(1), default=200, help="Most megabytes.")
@click.option(
    "--folder",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="For the files, which are removed in the end. By default one for temporary files.",
)
def main(parameters: int, dtype: str, memory: int, folder: Path | None) -> None:
    """Take the median of each parameter over files of clients."""
    nsc.numpy.median(np.zeros((CLIENTS, 1), dtype), axis=0)  # its kernel is built
    limit_memory(memory)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        paths = write_updates(Path(name), parameters, dtype)
        begin = time.perf_counter()
        medians = combine(paths, Path(name) / "median", dtype)
        seconds = time.perf_counter() - begin
        size = sum(path.stat().st_size for path in paths)
        furthest = max(
            float(abs(medians[start : start + STEP] - 1).max()) for start in range(0, parameters, STEP)
        )
    say = Console(highlight=False, soft_wrap=True).print
    say(f"{CLIENTS} clients, {WRONG} of them wrong: {parameters:,} parameters, {size / 1e9:.2f} GB of files")
    say(f"medians: {seconds:.1f} s, {size / seconds / 1e9:.2f} GB/s, in at most {memory} MB of memory")
    say(f"the furthest median is {furthest:.2f} from what is right")


if __name__ == "__main__":
    main()
