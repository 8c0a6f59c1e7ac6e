"""The task of most tables: a model scores each item of a sample, and learns from their ranks alone."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments import data as sources
from experiments import methods
from experiments.data import Data, Part
from experiments.errors import ExperimentError
from experiments.methods import Truth
from experiments.methods.regression import REGRESSION
from experiments.metrics import ranking_metrics
from experiments.run import Run
from experiments.samples import Crop, FourDigits, HouseNumbers, Samples

# Items scored at once where nothing is learned.
CHUNK = 1000
# Seeds of the items that are measured. No run has them, or it would learn from draws that it is measured on.
MEASURED_SEEDS = {"training": 1_000_000_000, "validation": 1_000_000_001, "test": 1_000_000_002}


class Ranking:
    """Samples of run.n items, scores, and a method's loss of the scores and ranks.

    The items that are measured are drawn by a fixed seed of their part, so all runs on a data set with the
    same counts are measured on the same items. The parts stay on the device; draws and noise come from the
    generator, on the CPU.

    Attributes:
        watched: the metric that validates, EM5.
        shape: of an image, (c, h, w).
        outputs: of the model for an image, one score.
    """

    watched = "em5"
    outputs = 1

    def __init__(self, run: Run, data: Data, device: torch.device, generator: torch.Generator) -> None:
        """Take the run, its data, and the generator that its method may draw from.

        Raises:
            ExperimentError: regression on house numbers, or a method that does not fit.
        """
        self._run, self._device, self._generator = run, device, generator
        is_cropped = sources.find(run.data).kind == "numbers"
        if is_cropped and run.method == REGRESSION.name:
            raise ExperimentError(
                f"regression is scaled for four-digit numbers, numbers of {run.data} have any length: "
                "choose another method, or data of digits"
            )

        def samples(part: Part, crop: Crop) -> Samples:
            return HouseNumbers(part, crop) if is_cropped else FourDigits(part)

        training, validation, test = (part.to(device) for part in (data.training, data.validation, data.test))
        self._learned = samples(training, "random")
        self._measured = {
            "training": samples(training, "centre"),
            "validation": samples(validation, "centre"),
            "test": samples(test, "centre"),
        }
        self._counts = {"training": run.test, "validation": run.validation, "test": run.test}
        self.shape = self._learned.shape
        self._loss = methods.find(run.method).start(run.n, run.temperature, generator)

    def loss(self, model: nn.Module) -> Tensor:
        """Draw run.batch samples of the training part, and return the loss."""
        return self._loss(*self.scored(model))

    def scored(self, model: nn.Module) -> tuple[Tensor, Truth]:
        """Draw run.batch samples of the training part, and return their scores, and what is known of them."""
        run = self._run
        images, values = self._learned.draw(run.batch * run.n, self._generator)
        if run.noise:
            noise = torch.randn(images.shape, generator=self._generator)
            images += run.noise * self._learned.span * noise.to(self._device)
        values = values.reshape(run.batch, run.n)
        ranks = values.argsort(dim=-1, stable=True).argsort(dim=-1)
        return model(images).reshape(run.batch, run.n), Truth(ranks, values)

    def measure(self, model: nn.Module, part: str) -> dict[str, float]:
        """Return EM, EW and EM5 on items of a part, as shares."""
        count = max(self._counts[part], self._run.n)
        generator = torch.Generator().manual_seed(MEASURED_SEEDS[part])
        scores, values = [], []
        with torch.inference_mode():
            for start in range(0, count, CHUNK):
                images, numbers = self._measured[part].draw(min(CHUNK, count - start), generator)
                scores.append(model(images).cpu())
                values.append(numbers.cpu())
        return ranking_metrics(torch.cat(scores), torch.cat(values), self._run.n)
