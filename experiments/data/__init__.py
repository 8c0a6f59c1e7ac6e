"""Data sets: one table from names to sources."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Part:
    """Images and their labels.

    Attributes:
        images: (m, c, h, w), unsigned bytes.
        labels: (m,), int64: a digit, a class, or the number of a house.
    """

    images: Tensor
    labels: Tensor


@dataclass(frozen=True)
class Data:
    """A data set in three parts that share no image."""

    training: Part
    validation: Part
    test: Part
