"""Work that imports torch, as a training does."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from experiments.making import do
from experiments.run import Result, Run


def train_after_a_death(folder: Path, run: Run) -> Result:
    """Train a run; the first time that a run is begun, its process dies in the middle of the training."""
    is_first = not (folder / str(run.seed)).exists()
    (folder / str(run.seed)).touch()

    def die(what: str, step: int, steps: int) -> None:
        if is_first and run.seed == 1 and step == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    return do(run, None, "cpu", None, die)
