"""The networks that score or classify images: one table.

Every model takes images, (m, c, h, w), and returns scores, (m,), if it has one output, else (m, outputs).
Pooling comes before ReLU: the values are the same, on a quarter of the elements.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from experiments.errors import ExperimentError

Shape = tuple[int, int, int]


def convolutions(shape: Shape, outputs: int, *, filters: tuple[int, ...]) -> nn.Module:
    """Return blocks of 5×5 convolution, max-pooling by 2 and ReLU, then a hidden layer of 64.

    The paper's scorers have 32 and 64 filters for four-digit numbers, and 32, 64, 128 and 256 for house
    numbers. Convolutions keep the image's size.

    Raises:
        ExperimentError: the image is too small to be pooled so often.

    Source: the paper, section 5.1; the padding is from its released code.
    """
    channels, height, width = shape
    layers: list[nn.Module] = []
    for count in filters:
        layers += [nn.Conv2d(channels, count, 5, padding=2), nn.MaxPool2d(2), nn.ReLU()]
        channels, height, width = count, height // 2, width // 2
    if not height or not width:
        side = 2 ** len(filters)
        raise ExperimentError(
            f"a model that pools {len(filters)} times needs images of at least {side}×{side}, "
            f"got {shape[1]}×{shape[2]}; choose another model or side"
        )
    layers += [nn.Flatten(), nn.Linear(channels * height * width, 64), nn.ReLU()]
    return _finished(*layers, *_output(64, outputs))


def vanilla(shape: Shape, outputs: int) -> nn.Module:
    """Return the paper's CNN for CIFAR: C16-BN-R-C32-BN-R-Max2-C64-BN-R-C128-BN-R-Max2-F256-Fc.

    Convolutions are 3×3 and keep the image's size. The paper writes no ReLU between its last two layers, so
    there is none.

    Source: the paper, appendix B.4.
    """
    channels, height, width = shape
    return _finished(
        *_normalised(channels, 16),
        *_normalised(16, 32, pooled=True),
        *_normalised(32, 64),
        *_normalised(64, 128, pooled=True),
        *(nn.Flatten(), nn.Linear(128 * (height // 4) * (width // 4), 256)),
        *_output(256, outputs),
    )


class ResidualBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut, which is a 1×1 convolution where the shape changes.

    Takes (m, channels, h, w), gives (m, filters, h/stride, w/stride).
    """

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            *(nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False), nn.BatchNorm2d(filters)),
            *(nn.ReLU(), nn.Conv2d(filters, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters)),
        )
        self.shortcut = nn.Sequential()
        if stride != 1 or channels != filters:
            self.shortcut.append(nn.Conv2d(channels, filters, 1, stride, bias=False))
            self.shortcut.append(nn.BatchNorm2d(filters))

    def forward(self, x: Tensor) -> Tensor:
        """Return ReLU(residual + shortcut)."""
        return torch.relu(self.residual(x) + self.shortcut(x))


def resnet18(shape: Shape, outputs: int) -> nn.Module:
    """Return ResNet18 for small images: it begins with one 3×3 convolution and does not pool there.

    The 7×7 convolution and the pooling of the original would leave 1×1 of an image of 32×32. The paper
    says ResNet18 and no more.

    Source: He et al., CVPR 2016, table 1.
    """
    channels = 64
    layers: list[nn.Module] = [nn.Conv2d(shape[0], channels, 3, padding=1, bias=False)]
    layers += [nn.BatchNorm2d(channels), nn.ReLU()]
    for filters, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        layers += [ResidualBlock(channels, filters, stride), ResidualBlock(filters, filters, 1)]
        channels = filters
    return _finished(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), *_output(channels, outputs))


MODELS: dict[str, Callable[[Shape, int], nn.Module]] = {
    "paper": partial(convolutions, filters=(32, 64)),
    "half": partial(convolutions, filters=(16, 32)),
    "svhn": partial(convolutions, filters=(32, 64, 128, 256)),
    "vanilla": vanilla,
    "resnet18": resnet18,
}
"""From a name to a function of an image's shape, (c, h, w), and the number of outputs."""


def _normalised(channels: int, filters: int, pooled: bool = False) -> list[nn.Module]:
    """Return a 3×3 convolution, batch normalisation, pooling by 2 if asked for, and ReLU."""
    pooling = [nn.MaxPool2d(2)] if pooled else []
    return [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), *pooling, nn.ReLU()]


def _output(features: int, outputs: int) -> list[nn.Module]:
    """Return the last layer; a single output loses its axis."""
    flat = [nn.Flatten(0)] if outputs == 1 else []
    return [nn.Linear(features, outputs), *flat]


def _finished(*layers: nn.Module) -> nn.Module:
    # In this layout a step on a CPU is faster by about a quarter.
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]
