"""The task of the classification table: a model tells classes apart, by softmax or by top-k supervision.

Images are divided by 255 and normalised by the constants of their channels, which the training part gives.
They are neither moved nor mirrored: the paper names no augmentation.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments import data as sources
from experiments.data import DATA, Data, Part
from experiments.errors import ExperimentError
from experiments.methods.classes import find
from experiments.run import Run

# Images classified at once where nothing is learned.
CHUNK = 1000


class Classification:
    """Images, a label of each, and a method's loss of the logits.

    Images of a batch are drawn uniformly, with replacement. An epoch is as many images as the training part
    has: each is drawn once in it on average. Every run is measured on the same images of a part: all of
    them, or as many as the run asks for, drawn by a fixed seed.

    The parts stay on the device; draws and noise come from the generator, on the CPU.

    Attributes:
        watched: the metric that validates, top1.
        shape: of an image, (c, h, w).
        outputs: of the model for an image, one a class.
    """

    watched = "top1"

    def __init__(self, run: Run, data: Data, device: torch.device, generator: torch.Generator) -> None:
        """Take the run, its data, and the generator that draws batches.

        Raises:
            ExperimentError: images of whole numbers, which are no classes; or a method that does not fit.
        """
        if sources.find(run.data).kind == "numbers":
            raise ExperimentError(
                f"{run.data} has numbers, not classes: choose one of "
                f"{', '.join(name for name, source in DATA.items() if source.kind != 'numbers')}"
            )
        self._run, self._device, self._generator = run, device, generator
        self._learned = data.training.to(device)
        self._measured = {
            "training": _some(self._learned, run.test),
            "validation": _some(data.validation.to(device), run.validation),
            "test": _some(data.test.to(device), run.test),
        }
        channels, height, width = data.training.images.shape[1:]
        self.shape = (channels, height, width)
        parts = (data.training, data.validation, data.test)
        self.outputs = 1 + max(int(part.labels.max()) for part in parts)
        self._mean, self._deviation = (x.to(device) for x in channel_constants(data.training.images))
        self._loss = find(run.method).start(self.outputs, run.temperature).to(device)

    def loss(self, model: nn.Module) -> Tensor:
        """Draw run.batch images of the training part, and return the loss."""
        run = self._run
        picks = torch.randint(len(self._learned.labels), (run.batch,), generator=self._generator)
        batch = self._learned[picks.to(self._device)]
        images = batch.images / 255
        if run.noise:
            images += run.noise * torch.randn(images.shape, generator=self._generator).to(self._device)
        loss: Tensor = self._loss(model(self._normalised(images)), batch.labels)
        return loss

    def measure(self, model: nn.Module, part: str) -> dict[str, float]:
        """Return the shares of labels that are the largest logit and among the five largest, on a part."""
        measured = self._measured[part]
        with torch.inference_mode():
            logits = [
                model(self._normalised(images / 255)).cpu() for images in torch.split(measured.images, CHUNK)
            ]
        labels = measured.labels.cpu()
        return {f"top{k}": share_within(torch.cat(logits), labels, k) for k in (1, 5)}

    def _normalised(self, images: Tensor) -> Tensor:
        return (images - self._mean) / self._deviation


def channel_constants(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each channel's pixels, which are in [0, 1].

    Args:
        images: (m, c, h, w), unsigned bytes.

    Returns:
        Both (c, 1, 1), float32. The deviation of a channel that has one value is 1.
    """
    values = torch.arange(256, dtype=torch.float64) / 255
    counts = torch.stack([images[:, c].flatten().bincount(minlength=256) for c in range(images.shape[1])])
    shares = counts.double() / counts.sum(-1, keepdim=True)
    mean = shares @ values
    deviation = (shares * (values - mean.unsqueeze(-1)).square()).sum(-1).sqrt()
    deviation[(counts > 0).sum(-1) == 1] = 1
    return mean.float().reshape(-1, 1, 1), deviation.float().reshape(-1, 1, 1)


def share_within(logits: Tensor, labels: Tensor, k: int) -> float:
    """Return the share of labels, (m,), that are among the k largest of their logits, (m, classes).

    Of equal logits the class of the smaller number comes first, so equal logits are right by chance alone.
    NaN counts as the largest.
    """
    largest = logits.argsort(dim=-1, descending=True, stable=True)[:, :k]
    return (largest == labels.unsqueeze(-1)).any(-1).double().mean().item()


def _some(part: Part, count: int) -> Part:
    """Return so many images of a part, the same in every run; all of them if it has no more."""
    if count >= len(part.labels):
        return part
    order = torch.randperm(len(part.labels), generator=torch.Generator().manual_seed(0))
    return part[order[:count].to(part.labels.device)]
