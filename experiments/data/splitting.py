"""Splits by class, the same on every call and every machine."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from experiments.data.records import Data, Part
from experiments.errors import DataError
from nsc.wording import count

VALIDATION, TEST = Fraction(1, 10), Fraction(2, 10)
"""The shares of a data set that comes in one piece; the rest is for training."""


def split(whole: Part, name: str) -> Data:
    """Return a data set that comes in one piece in its three parts: 70, 10 and 20 % of each class.

    Raises:
        DataError: a part would be empty.
    """
    rest, test = cut(whole.labels, TEST, name)
    learned = whole[rest]
    training, validation = cut(learned.labels, VALIDATION / (1 - TEST), name)
    return Data(learned[training], learned[validation], whole[test])


def cut(classes: Tensor, share: Fraction, name: str) -> tuple[Tensor, Tensor]:
    """Return the indices, ascending, of the images that stay and of a share of each class.

    The share is taken of all images, rounded to the nearest integer, halves to even. Each class gives its
    share rounded down; the images that are still missing come one each from the classes with the largest
    remainders, at a tie the lower class. A class of two images or more has at least one on either side, even
    if the total changes; a single image stays.

    Args:
        classes: (m,), int64.
        share: between 0 and 1.
        name: of the data set, for the error.

    Raises:
        DataError: one side would be empty.
    """
    labels = classes.numpy()
    taken = _counts(np.unique(labels, return_counts=True)[1], share)
    # RandomState's numbers are the same in every version of NumPy; its successors' numbers may change.
    random = np.random.RandomState(0)
    gives = np.zeros(len(labels), dtype=bool)
    for label, number in zip(np.unique(labels), taken, strict=True):
        gives[random.permutation(np.flatnonzero(labels == label))[:number]] = True
    if gives.all() or not gives.any():
        raise DataError(f"{name}: too few images to split: {count(len(labels), 'image')}, need 2 of a class")
    return torch.from_numpy(np.flatnonzero(~gives)), torch.from_numpy(np.flatnonzero(gives))


def _counts(sizes: npt.NDArray[np.int64], share: Fraction) -> npt.NDArray[np.int64]:
    """Return how many images each class gives, by the method of the largest remainder."""
    down, remainders = np.divmod(sizes * share.numerator, share.denominator)
    missing = round(int(sizes.sum()) * share) - int(down.sum())
    down[np.argsort(-remainders, kind="stable")[:missing]] += 1
    counts: npt.NDArray[np.int64] = np.where(sizes < 2, 0, down.clip(1, np.maximum(sizes - 1, 1)))
    return counts
