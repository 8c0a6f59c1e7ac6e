"""Smaller images: the mean over square blocks of pixels."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from experiments.errors import ExperimentError

# MNIST's 28 pixels are padded to 32 for the sides that divide 32 alone.
PADDED = {28: 32}


def sides(side: int) -> list[int]:
    """Return the sides to which square images of a side can be pooled, ascending.

    >>> sides(8), sides(28)
    ([1, 2, 4, 8], [1, 2, 4, 7, 8, 14, 16, 28])
    """
    sizes = (side, PADDED.get(side, side))
    return [smaller for smaller in range(1, side + 1) if any(size % smaller == 0 for size in sizes)]


def pool(images: Tensor, side: int) -> Tensor:
    """Return images pooled to side × side, (m, c, side, side), unsigned bytes.

    A pixel is the mean over a block, rounded to the nearest byte, halves up. The blocks divide the image:
    28 → 14 takes 2×2 blocks. Where 28 is no multiple of the side, a border of zeros makes the images 32×32
    first: 28 → 8 takes 4×4 blocks of these.

    Args:
        images: (m, c, h, h), unsigned bytes.
        side: a member of `sides(h)`.

    Raises:
        ExperimentError: the images are not square, or blocks do not divide them.
    """
    height, width = images.shape[2:]
    if height != width:
        raise ExperimentError(f"only square images can be pooled, these are {height}×{width}")
    if side not in sides(height):
        known = ", ".join(map(str, sides(height)))
        raise ExperimentError(f"images of {height}×{height} cannot be pooled to side {side}; known: {known}")
    if height % side:
        border = (PADDED[height] - height) // 2
        images = functional.pad(images, [border] * 4)
    block = images.shape[-1] // side
    if block == 1:
        return images
    blocks = images.reshape(*images.shape[:2], side, block, side, block)
    area = block * block
    return ((blocks.sum((3, 5), dtype=torch.int32) + area // 2) // area).to(torch.uint8)
