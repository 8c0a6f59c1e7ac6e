"""One run, from its seed to its result.

Batches, noise and methods that draw share one generator, whose state is part of a checkpoint. So a resumed
run gives the same bits as one that was not interrupted.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import click
import torch
from torch import Tensor, nn

from benchmarks.machine import machine
from experiments.classification import Classification
from experiments.data import Data, fingerprint, load, pooled
from experiments.errors import ExperimentError
from experiments.models import MODELS
from experiments.ranking import Ranking
from experiments.run import Result, Run
from nsc.wording import count

CHECKPOINT_SECONDS = 30.0
LOSS_POINTS = 200

Progress = Callable[[int, float], None]
"""Called after each step, with the number of steps done and the loss."""


class Task(Protocol):
    """What a model learns and how it is measured."""

    @property
    def watched(self) -> str:
        """The metric that validates; larger is better."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of an image, (c, h, w)."""

    @property
    def outputs(self) -> int:
        """Outputs of the model for an image."""

    def loss(self, model: nn.Module) -> Tensor:
        """Draw a batch of the training part and return its loss."""

    def measure(self, model: nn.Module, part: str) -> dict[str, float]:
        """Return the metrics on "training", "validation" or "test"; the same items on every call."""


TASKS: dict[str, Callable[[Run, Data, torch.device, torch.Generator], Task]] = {
    "ranking": Ranking,
    "topk": Classification,
}
WATCHED = {"ranking": Ranking.watched, "topk": Classification.watched}
"""The metric that validates, of each task."""


class Training:
    """The state of a run: all that changes from step to step, and all that a checkpoint keeps."""

    def __init__(self, run: Run, data: Data, device: torch.device) -> None:
        self.run = run
        self.device = device
        self.generator = torch.Generator().manual_seed(run.seed)
        self.task = TASKS[run.task](run, data, device, self.generator)
        # Layers are initialised from torch's own generator, which belongs to the caller.
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            self.model = MODELS[run.model](self.task.shape, self.task.outputs).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), run.learning_rate)
        self.schedule: torch.optim.lr_scheduler.LRScheduler | None = None
        if run.one_cycle:
            # A rate that starts at its peak can leave every ReLU dead: all scores equal, no gradient.
            self.schedule = torch.optim.lr_scheduler.OneCycleLR(
                self.optimizer, run.learning_rate, total_steps=run.steps
            )
        self.best = -1.0
        self.best_state: dict[str, Tensor] = {}
        self.step = 0
        self.seconds = 0.0
        self.losses: list[float] = []
        self.validations: list[tuple[int, float]] = []

    def advance(self) -> float:
        """Take one step of the optimiser and return the loss."""
        self.model.train()
        loss = self.task.loss(self.model)
        self.optimizer.zero_grad()
        torch.autograd.backward(loss)
        self.optimizer.step()
        if self.schedule is not None:
            self.schedule.step()
        self.step += 1
        self.losses.append(loss.item())
        return self.losses[-1]

    def validate(self) -> None:
        """Measure on the validation part, and keep the model if it is the best so far."""
        score = self.measure("validation")[self.task.watched]
        self.validations.append((self.step, score))
        if score > self.best:
            self.best = score
            self.best_state = {name: x.detach().clone() for name, x in self.model.state_dict().items()}

    def measure(self, part: str) -> dict[str, float]:
        """Return the metrics of the model as it is."""
        self.model.eval()
        return self.task.measure(self.model, part)

    def state(self) -> dict[str, Any]:
        """Return what a checkpoint keeps, as tensors, numbers, lists and dictionaries."""
        return {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict() if self.schedule is not None else None,
            "generator": self.generator.get_state(),
            "best": self.best,
            "best_state": self.best_state,
            "step": self.step,
            "seconds": self.seconds,
            "losses": self.losses,
            "validations": self.validations,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from a state that `state` returned.

        Raises:
            Exception: of any kind, if the state does not fit the run. Do not use this object after that.
        """
        if not 0 < state["step"] <= self.run.steps or len(state["losses"]) != state["step"]:
            raise ValueError(f"step {state['step']} of {self.run.steps}, {len(state['losses'])} losses")
        if state["validations"]:
            self.model.load_state_dict(state["best_state"])  # raises now if it does not fit, not at the end
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.schedule is not None:
            self.schedule.load_state_dict(state["schedule"])
        self.generator.set_state(state["generator"])
        self.best, self.best_state = state["best"], state["best_state"]
        self.step, self.seconds = state["step"], state["seconds"]
        self.losses, self.validations = state["losses"], [tuple(pair) for pair in state["validations"]]


def train(
    run: Run,
    root: Path | None = None,
    device: str = "cpu",
    checkpoint: Path | None = None,
    progress: Progress | None = None,
) -> Result:
    """Train and measure.

    The metrics belong to the model that was best on the validation part. A loss that is not finite ends
    the training: the result says at which step, and has no metrics.

    Args:
        run: what to train.
        root: the folder of the data, if it needs one.
        device: "cpu", "cuda" or another device of torch.
        checkpoint: the file that keeps the state. If it is there, the run goes on from it; if it is damaged,
            a line on stderr says so and the run starts anew. It is written between steps about twice a
            minute, and removed at the end. With the same threads, the result has the same bits as the result
            of a run that was not interrupted.
        progress: called after each step.

    Raises:
        ExperimentError: the data, the method or the network cannot be had.
        NscError: what compiling or running the network raises.
    """
    begin = partial(Training, run, data_of(run, root), torch.device(device))
    training = (_resumed(begin, checkpoint) if checkpoint is not None else None) or begin()
    marks = {round(run.steps * (i + 1) / run.validations) for i in range(run.validations)}
    failure = ""
    last_kept = time.monotonic()
    while training.step < run.steps:
        start = time.perf_counter()
        loss = training.advance()
        training.seconds += time.perf_counter() - start
        if not math.isfinite(loss):
            failure = f"the loss is {loss} at step {training.step} of {run.steps}"
            break
        if training.step in marks:
            training.validate()
        if progress is not None:
            progress(training.step, loss)
        if checkpoint is not None and time.monotonic() - last_kept >= CHECKPOINT_SECONDS:
            _write(training, checkpoint)
            last_kept = time.monotonic()
    measured: dict[str, dict[str, float]] = {"test": {}, "training": {}}
    if not failure:
        training.model.load_state_dict(training.best_state)
        measured = {part: training.measure(part) for part in measured}
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return Result(
        run=run,
        failure=failure,
        test=measured["test"],
        training=measured["training"],
        validations=tuple(training.validations),
        losses=_thinned(training.losses),
        seconds=training.seconds,
        machine=f"{machine(device)}, {count(torch.get_num_threads(), 'thread')}",
    )


def _write(training: Training, checkpoint: Path) -> None:
    checkpoint.parent.mkdir(parents=True, exist_ok=True)
    beside = checkpoint.with_name(f".{checkpoint.name}.{os.getpid()}.partial")
    torch.save({"run": training.run.key, **training.state()}, beside)
    os.replace(beside, checkpoint)


def data_of(run: Run, root: Path | None) -> Data:
    """Return the data of a run, pooled as it asks; they must be the data that it was planned for."""
    data = load(run.data, root)
    if (found := fingerprint(data)) != run.data_digest:
        raise ExperimentError(
            f"the data {run.data} are not those that the run was planned for: their fingerprint is {found}, "
            f"the run's {run.data_digest}; every machine needs the same files"
        )
    return data if run.side is None else pooled(data, run.side)


def _resumed(begin: Callable[[], Training], checkpoint: Path) -> Training | None:
    """Return the training that a checkpoint holds; None if there is no checkpoint, or a damaged one."""
    if not checkpoint.exists():
        return None
    training = begin()
    try:
        state = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if state["run"] != training.run.key:
            raise ValueError("it is of another run")
        training.restore(state)
    except Exception as error:  # a damaged file raises errors of many kinds
        reason = (str(error).splitlines() or [""])[0]
        words = f"{checkpoint} is no checkpoint of its run ({type(error).__name__}: {reason})"
        click.echo(f"{words}; the run starts anew", err=True)
        return None
    return training


def _thinned(losses: list[float]) -> tuple[tuple[int, float], ...]:
    """Return (step, mean loss since the step before), at most LOSS_POINTS of them."""
    points = min(LOSS_POINTS, len(losses))
    ends = [round(len(losses) * (i + 1) / points) for i in range(points)]
    return tuple((end, sum(losses[start:end]) / (end - start)) for start, end in pairwise([0, *ends]))
