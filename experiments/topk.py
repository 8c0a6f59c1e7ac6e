"""The task of the classification table: a model tells classes apart, by softmax or by top-k supervision.

    find("topk:.5,0,0,0,.5+m=16").start(100, None)(logits, labels).backward()

Images are divided by 255 and normalised by the constants of their channels, which the training part gives.
They are neither moved nor mirrored: the paper names no augmentation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn

import nsc
from experiments import data as sources
from experiments.data import DATA, Data, Part
from experiments.errors import ExperimentError
from experiments.methods import middle
from experiments.run import Run

# Images classified at once where nothing is learned.
CHUNK = 1000
# Steepness over depth, as of sorting networks; the paper's choice is 2 (section 5.1).
GRID = (1.0, 2.0, 4.0)
# The weights p_k are those that difftopk's authors compare (Petersen et al., ICML 2022).
METHODS = (
    "softmax",
    "topk:1",
    "topk:.2,.2,.2,.2,.2",
    "topk:.5,0,0,0,.5",
    "topk:.25,0,0,0,.75",
    "topk:.1,0,0,0,.9",
)
OPTIONS = ("m=16", "softmax")


@dataclass(frozen=True)
class ClassMethod:
    """A way to learn logits from labels.

    Attributes:
        name: for the command line and files.
        title: for tables.
        source: the paper that defines it.
        start: takes the number of classes and a temperature; returns the loss, a module of logits, (batch,
            classes), and labels, (batch,). A temperature of None is the middle of the grid. Raises
            ExperimentError for weights or an m that do not fit the classes, a temperature that is not a
            number above 0, and one where the method has none.
        grid: the temperatures to choose from on the validation part; () if the method has none.
        temperature: what the temperature is called.
    """

    name: str
    title: str
    source: str
    start: Callable[[int, float | None], nn.Module]
    grid: tuple[float, ...] = ()
    temperature: str = ""


@dataclass(frozen=True)
class TopK:
    """What the name of a top-k method says.

    Attributes:
        name: the whole name.
        p_k: weight j is that of "the label is among the top j + 1".
        m: the number of classes that are compared, the label's and the largest others; None: all.
        top1: "softmax" if the term of the top 1 is a softmax, otherwise "network".
    """

    name: str
    p_k: tuple[float, ...]
    m: int | None = None
    top1: str = "network"

    @property
    def title(self) -> str:
        """The title for tables."""
        weights = ", ".join(f"{weight:g}" for weight in self.p_k)
        m = "" if self.m is None else f", m = {self.m}"
        return f"Top-k, p_k = {weights}{m}{', softmax for top 1' if self.top1 == 'softmax' else ''}"

    def start(self, classes: int, temperature: float | None) -> nn.Module:
        """Return the loss at a steepness of temperature × depth, through the best network that nsc knows."""
        # CUDA kernels are generated only where they can run: their text takes time.
        targets = ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",)
        scale = middle(GRID) if temperature is None else temperature
        make = partial(nsc.nn.TopKCrossEntropy, classes, self.p_k, self.m, top1=self.top1)
        try:
            operator = make(targets=targets).operator
            return make(network=operator, steepness=scale * max(1, operator.depth))
        except nsc.NscError as error:
            raise ExperimentError(f"{self.name} with {classes} classes: {error}") from None


def find(name: str) -> ClassMethod:
    """Return the method of a name.

    Args:
        name: "softmax", the cross entropy; or "topk:" with the weights p_k, separated by commas, then
            options that are joined with "+": m=16 compares the label's and the 15 largest other logits,
            softmax takes the place of the network for the top 1, as in difftopk.

    Raises:
        ExperimentError: an unknown name or option, or weights that are no numbers.

    >>> find("topk:.5,0,.5+m=16").title
    'Top-k, p_k = 0.5, 0, 0.5, m = 16'
    """
    if name == "softmax":
        return ClassMethod(name, "Softmax cross entropy", "Bridle, NIPS 1989", _softmax)
    kind, _, rest = name.partition(":")
    if kind != "topk":
        raise ExperimentError(f"no method {name!r} for classes; known: {', '.join(METHODS)}")
    weights, *options = rest.split("+")
    try:
        p_k = tuple(float(weight) for weight in weights.split(","))
    except ValueError:
        raise ExperimentError(
            f"method {name!r}: {weights!r} must be numbers separated by commas, such as topk:.5,0,0,0,.5"
        ) from None
    m, top1 = None, "network"
    for option in options:
        if option == "softmax":
            top1 = "softmax"
        elif option.startswith("m=") and option[2:].isdecimal():
            m = int(option[2:])
        else:
            raise ExperimentError(f"method {name!r}: no option {option!r}; known: {', '.join(OPTIONS)}")
    method = TopK(name, p_k, m, top1)
    source = "Petersen et al., ICML 2021 and ICML 2022"
    return ClassMethod(name, method.title, source, method.start, GRID, "steepness / depth")


def _softmax(classes: int, temperature: float | None) -> nn.Module:
    if temperature is not None:
        raise ExperimentError(f"softmax has no temperature, got {temperature}: leave it out")
    return nn.CrossEntropyLoss()


class Classification:
    """Images, a label of each, and a method's loss of the logits.

    Images of a batch are drawn uniformly, with replacement. An epoch is as many images as the training part
    has: each is drawn once in it on average. What is measured are the same images of a part in every run:
    all of them, or as many as the run asks for, drawn by a fixed seed.

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
        self._learned = data.training
        self._measured = {
            "training": _some(data.training, run.test),
            "validation": _some(data.validation, run.validation),
            "test": _some(data.test, run.test),
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
        batch = self._learned[picks]
        images = batch.images.to(self._device) / 255
        if run.noise:
            images += run.noise * torch.randn(images.shape, generator=self._generator).to(self._device)
        loss: Tensor = self._loss(model(self._normalised(images)), batch.labels.to(self._device))
        return loss

    def measure(self, model: nn.Module, part: str) -> dict[str, float]:
        """Return the shares of labels that are the largest logit and among the five largest, on a part."""
        measured = self._measured[part]
        with torch.inference_mode():
            logits = [
                model(self._normalised(images.to(self._device) / 255)).cpu()
                for images in torch.split(measured.images, CHUNK)
            ]
        return {f"top{k}": share_within(torch.cat(logits), measured.labels, k) for k in (1, 5)}

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
    return part[torch.randperm(len(part.labels), generator=torch.Generator().manual_seed(0))[:count]]
