"""Images with values to order, drawn from a part of a data set.

All draws come from the generator that the caller passes. So a run that keeps its state can go on later with
the same draws. A generator on the CPU draws the same samples for images on any device.
"""

from __future__ import annotations

from typing import Literal, Protocol

import torch
from torch import Tensor

from experiments.data import Part
from experiments.errors import ExperimentError

DIGITS = 4
HOUSE_SIDE = 64
# Source: the paper, section 5.1, as Goodfellow et al. 2013 crop house numbers.
CROPPED_SIDE = 54

Crop = Literal["random", "centre"]


class Samples(Protocol):
    """A source of images and their values.

    Attributes:
        shape: (c, h, w) of an image.
        span: the difference of white and black: 1 where pixels lie in [0, 1].
    """

    shape: tuple[int, int, int]
    span: float

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images, float32 (count, c, h, w), and their values, int64 (count,), on the part's device."""


class FourDigits:
    """Images of four-digit numbers, joined from images of single digits.

    Source: the paper, section 5.1; Grover et al., ICLR 2019.
    """

    span = 1.0

    def __init__(self, part: Part) -> None:
        self.images = part.images
        self.labels = part.labels
        channels, height, width = part.images.shape[1:]
        self.shape = (channels, height, DIGITS * width)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images with pixels in [0, 1], float32 (count, c, h, 4w), and their numbers, int64 (count,).

        Every digit is drawn independently, uniformly and with replacement. Numbers may begin with 0.
        """
        picks = _picks((count, DIGITS), len(self.labels), generator).to(self.images.device)
        # (count, 4, c, h, w) to (count, c, h, 4, w): the digits stand side by side.
        joined = self.images[picks].permute(0, 2, 3, 1, 4).reshape(count, *self.shape)
        digits = self.labels[picks]
        numbers = digits[:, 0] * 1000 + digits[:, 1] * 100 + digits[:, 2] * 10 + digits[:, 3]
        return joined / 255, numbers


class HouseNumbers:
    """Images of house numbers, cropped from 64×64 to 54×54.

    Args:
        part: images of 64×64 and the numbers on them.
        crop: "random" moves the crop for every image, for training; "centre" does not.

    Raises:
        ExperimentError: the images have another size.

    Source: the paper, section 5.1; Goodfellow et al. 2013.
    """

    span = 2.0

    def __init__(self, part: Part, crop: Crop) -> None:
        height, width = part.images.shape[2:]
        if (height, width) != (HOUSE_SIDE, HOUSE_SIDE):
            raise ExperimentError(
                f"house numbers are cropped from images of {HOUSE_SIDE}×{HOUSE_SIDE}, these are "
                f"{height}×{width}: resize them in read()"
            )
        self.images = part.images
        self.labels = part.labels
        self.crop = crop
        self.shape = (part.images.shape[1], CROPPED_SIDE, CROPPED_SIDE)

    def draw(self, count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return images, float32 (count, c, 54, 54), and their numbers, int64 (count,).

        Images are drawn uniformly, with replacement. Pixels are normalised with mean 0.5 and deviation 0.5,
        so they lie in [−1, 1].
        """
        device = self.images.device
        picks = _picks((count,), len(self.labels), generator).to(device)
        spare = HOUSE_SIDE - CROPPED_SIDE
        if self.crop == "random":
            corners = _picks((2, count), spare + 1, generator).to(device)
        else:
            corners = torch.full((2, count), spare // 2, device=device)
        rows, columns = corners.unsqueeze(-1) + torch.arange(CROPPED_SIDE, device=device)
        # Indices beside a slice come first: (count, 54, 54, c).
        cropped = self.images[picks[:, None, None], :, rows[:, :, None], columns[:, None, :]]
        return cropped.permute(0, 3, 1, 2) / 127.5 - 1, self.labels[picks]


def _picks(shape: tuple[int, ...], choices: int, generator: torch.Generator) -> Tensor:
    """Return uniform integers below `choices`, on the generator's device."""
    return torch.randint(choices, shape, generator=generator, device=generator.device)
