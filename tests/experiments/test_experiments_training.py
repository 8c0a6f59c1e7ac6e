"""Training: the same record gives the same bits, resumed or not; what diverges ends with a message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from works import run_of

pytest.importorskip("sklearn")

from experiments import training
from experiments.data import fingerprint, load
from experiments.run import Result, Run
from experiments.training import train

pytestmark = pytest.mark.nightly("models are trained")

RUN = replace(
    run_of(3),
    data_digest=fingerprint(load("digits")),
    model="half",
    method="stochastic_neural_sort",
    batch=4,
    steps=8,
    learning_rate=2e-3,
    one_cycle=True,
    noise=0.1,
    validations=2,
    validation=50,
    test=60,
)
TOPK = replace(RUN, task="topk", method="topk:.5,.5", model="vanilla", n=1, batch=16)


def figures(result: Result) -> Result:
    """Return a result without its time."""
    return replace(result, seconds=0.0)


class StopError(Exception):
    """Ends a training from outside."""


@pytest.mark.parametrize("run", [RUN, replace(RUN, method="odd_even", one_cycle=False), TOPK])
@pytest.mark.parametrize("stop", [1, 6])
def test_a_resumed_run_gives_the_same_bits(
    run: Run, stop: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    checkpoint = tmp_path / "folder" / "run.pt"
    steps: list[int] = []

    def stop_at(step: int, loss: float) -> None:
        if step == stop + 1:
            raise StopError

    with pytest.raises(StopError):
        train(run, checkpoint=checkpoint, progress=stop_at)
    torch.randn(5)  # the caller's generator is of no importance
    resumed = train(run, checkpoint=checkpoint, progress=lambda step, loss: steps.append(step))
    assert steps[0] == stop + 1
    assert figures(resumed) == figures(train(run))
    assert not checkpoint.exists()


DAMAGES: dict[str, Callable[[dict[str, Any]], object]] = {
    "no generator": lambda state: {name: value for name, value in state.items() if name != "generator"},
    "another model": lambda state: state | {"model": {}},
    "a step without its losses": lambda state: state | {"losses": []},
    "another run": lambda state: state | {"run": "0123456789abcdef"},
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_starts_the_run_anew(
    damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(training, "CHECKPOINT_SECONDS", 0.0)
    checkpoint = tmp_path / "run.pt"

    def stop(step: int, loss: float) -> None:
        if step == 6:
            raise StopError

    with pytest.raises(StopError):
        train(RUN, checkpoint=checkpoint, progress=stop)
    torch.save(DAMAGES[damage](torch.load(checkpoint, weights_only=True)), checkpoint)
    assert figures(train(RUN, checkpoint=checkpoint)) == figures(train(RUN))
    (line,) = capsys.readouterr().err.splitlines()
    assert "run.pt is no checkpoint of its run" in line
    assert "the run starts anew" in line


def test_a_loss_that_is_not_finite_ends_the_run(tmp_path: Path) -> None:
    result = train(replace(RUN, method="regression", learning_rate=1e30, steps=50, one_cycle=False))
    assert result.failure.startswith("the loss is")
    assert "of 50" in result.failure
    assert result.test == {}
    assert result.training == {}


def test_the_result_is_of_the_best_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = iter([0.3, 0.9, 0.4, 0.9])
    measured: list[torch.Tensor] = []
    original = training.Training.measure

    def measure(self: training.Training, part: str) -> dict[str, float]:
        if part != "validation":
            measured.append(next(self.model.parameters()).detach().clone())
            return original(self, part)
        measured.append(next(self.model.parameters()).detach().clone())
        return {"em5": next(scores)}

    monkeypatch.setattr(training.Training, "measure", measure)
    result = train(replace(RUN, validations=4))
    assert result.validations == ((2, 0.3), (4, 0.9), (6, 0.4), (8, 0.9))
    # Of equal ones the first: the test is on the model of step 4.
    assert torch.equal(measured[4], measured[1])
    assert not torch.equal(measured[4], measured[3])


def test_losses_are_thinned_to_means(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "LOSS_POINTS", 3)
    assert training._thinned([1.0, 3.0, 5.0, 7.0, 9.0, 11.0]) == ((2, 2.0), (4, 6.0), (6, 10.0))
    assert training._thinned([4.0]) == ((1, 4.0),)
    assert training._thinned([]) == ()
