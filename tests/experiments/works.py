"""A run for tests, and what other processes do with runs; without torch, so that processes start quickly."""

from __future__ import annotations

import os
import signal
import time
import uuid
from functools import partial
from pathlib import Path

import click

from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.scheduling import execute

_busy = False


def run_of(seed: int) -> Run:
    """Return a run with its seed and the smallest counts; tests replace what matters to them."""
    return Run(
        task="ranking",
        data="digits",
        data_digest="0123456789ab",
        side=None,
        model="cnn",
        method="odd_even",
        temperature=None,
        n=5,
        batch=1,
        steps=1,
        learning_rate=0.1,
        one_cycle=False,
        noise=0.0,
        validations=1,
        validation=1,
        test=1,
        seed=seed,
    )


def graded(run: Run) -> Result:
    """Return the one result that a run has here, at once."""
    return Result(run, "", {"em": 1 / (3 + run.seed)}, {}, ((1, 0.5),), (), float(run.seed), "a machine")


def grade(folder: Path, run: Run) -> Result:
    """Return a run's result after a short while, and leave a file for this attempt."""
    global _busy
    if _busy:
        raise RuntimeError("two runs at once in one process")
    _busy = True
    try:
        (folder / f"{run.seed}-{uuid.uuid4().hex}").write_text(str(os.getpid()))
        time.sleep(0.05)
        return graded(run)
    finally:
        _busy = False


def attempts(folder: Path) -> dict[int, int]:
    """Return how often each seed was begun."""
    seeds = [int(path.name.split("-")[0]) for path in folder.glob("*-*")]
    return {seed: seeds.count(seed) for seed in sorted(set(seeds))}


def process_of(folder: Path, seed: int) -> int:
    """Wait until a seed has begun, and return its process."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for path in folder.glob(f"{seed}-*"):
            if text := path.read_text():
                return int(text)
        time.sleep(0.01)
    raise TimeoutError(f"seed {seed} does not begin")


def wait_at_first(folder: Path, seed: int, run: Run) -> Result:
    """Grade, but never return from the first attempt at one seed."""
    first = seed not in attempts(folder)
    result = grade(folder, run)
    if run.seed == seed and first:
        time.sleep(600)
    return result


def die_at_first(folder: Path, seed: int, run: Run) -> Result:
    """Grade, but kill this process in the first attempt at one seed."""
    first = seed not in attempts(folder)
    result = grade(folder, run)
    if run.seed == seed and first:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def die_always(folder: Path, seed: int, run: Run) -> Result:
    """Grade, but kill this process in every attempt at one seed."""
    result = grade(folder, run)
    if run.seed == seed:
        os.kill(os.getpid(), signal.SIGKILL)
    return result


def fail(folder: Path, seeds: tuple[int, ...], run: Run) -> Result:
    """Grade, but raise for some seeds: for seed 0 an error that the user can mend."""
    result = grade(folder, run)
    if run.seed in seeds:
        raise ExperimentError("no images at all") if run.seed == 0 else ValueError("a wrong shape")
    return result


def threads(run: Run) -> Result:
    """Return the threads that this process is to use, as the machine."""
    return Result(run, "", {}, {}, (), (), 0.0, os.environ["OMP_NUM_THREADS"])


@click.command()
@click.argument("folder", type=Path)
def command(folder: Path) -> None:
    """Do four runs, of which seed 1 never ends, and print the finished ones."""
    execute(
        partial(wait_at_first, folder, 1),
        [run_of(seed) for seed in range(4)],
        jobs=2,
        scheduler=None,
        done=lambda result: print(result.run.seed, flush=True),
    )
