"""The records of one training: what was asked, and what came of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

# A change of what a run computes from the same record gets a new number, so that old results are not reused.
FORMAT = 2


@dataclass(frozen=True)
class Run:
    """One training, complete: the same record gives the same result on the same machine and threads.

    Attributes:
        task: "ranking" or "topk", a key of `experiments.training.TASKS`.
        data: a name that `experiments.data.find` takes.
        data_digest: `experiments.data.fingerprint` of the data.
        side: images are pooled to side × side; None keeps them.
        model: a key of `experiments.models.MODELS`.
        method: as `experiments.methods.record_name` writes it.
        temperature: of the method; None if it has none.
        n: items of a sample; 1 for classification.
        batch: samples of a step.
        steps: steps of the optimiser, Adam.
        learning_rate: of Adam, at its peak if one_cycle.
        one_cycle: whether the rate, and against it the momentum, follow one cycle; else both are constant.
        noise: standard deviation of the noise on training images, whose pixels are in [0, 1].
        validations: how often the model is measured on the validation part; the best one is kept.
        validation: items to validate on.
        test: items to test on.
        seed: of the model, the order of the data, and methods that draw.
    """

    task: str
    data: str
    data_digest: str
    side: int | None
    model: str
    method: str
    temperature: float | None
    n: int
    batch: int
    steps: int
    learning_rate: float
    one_cycle: bool
    noise: float
    validations: int
    validation: int
    test: int
    seed: int

    @property
    def key(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the record, which name its files."""
        text = json.dumps([FORMAT, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Result:
    """What came of a run.

    Attributes:
        run: the record.
        failure: why the training stopped early; "" if it did not. Then test and training are empty.
        test: metrics on the test part of the model that validated best, as shares in [0, 1]. A ranking has
            em, ew and em5; a classification top1 and top5.
        training: the same metrics on the training part.
        validations: (step, the metric that validates) of each validation.
        losses: (step, mean loss since the step before), at most 200 of them.
        seconds: of training, without validation.
        machine: what ran it: processor, threads, versions.
    """

    run: Run
    failure: str
    test: dict[str, float]
    training: dict[str, float]
    validations: tuple[tuple[int, float], ...]
    losses: tuple[tuple[int, float], ...]
    seconds: float
    machine: str
