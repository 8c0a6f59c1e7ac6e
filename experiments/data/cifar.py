"""CIFAR-10 and CIFAR-100, from their binary files: no pickle, which could run code."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import torch

from experiments.data.records import Data, Part, Source, joined
from experiments.data.splitting import cut
from experiments.errors import DataError
from nsc.wording import count

SIDE = 32
SHAPE = (3, SIDE, SIDE)
PIXELS = 3 * SIDE * SIDE
VALIDATION = Fraction(1, 10)
TRAINING_FILES = tuple(f"data_batch_{i}.bin" for i in range(1, 6))


def read_cifar10(root: Path) -> Data:
    """Return CIFAR-10, (m, 3, 32, 32): 45,000, 5,000 and 10,000 images of 10 classes.

    Args:
        root: the folder of data_batch_1.bin to data_batch_5.bin and test_batch.bin, or the folder above it.

    Raises:
        DataError: a file is missing or damaged.
    """
    folder = _find(root, "cifar-10-batches-bin", "test_batch.bin")
    learned = joined([_read_file(folder / name, 1, 10) for name in TRAINING_FILES])
    return _cut(learned, _read_file(folder / "test_batch.bin", 1, 10), root)


def read_cifar100(root: Path) -> Data:
    """Return CIFAR-100, (m, 3, 32, 32): 45,000, 5,000 and 10,000 images of its 100 fine classes.

    Args:
        root: the folder of train.bin and test.bin, or the folder above it.

    Raises:
        DataError: a file is missing or damaged.
    """
    folder = _find(root, "cifar-100-binary", "test.bin")
    # A record has the coarse class before the fine one.
    return _cut(_read_file(folder / "train.bin", 2, 100), _read_file(folder / "test.bin", 2, 100), root)


def _cut(learned: Part, test: Part, root: Path) -> Data:
    training, validation = cut(learned.labels, VALIDATION, str(root))
    return Data(learned[training], learned[validation], test)


def _find(root: Path, folder: str, name: str) -> Path:
    for place in (root, root / folder):
        if (place / name).is_file():
            return place
    raise DataError(f"{root}: no {name} there, nor in {folder} under it")


def _read_file(file: Path, labels: int, classes: int) -> Part:
    """Return the images of a file of records: some labels, of which the last counts, then the pixels."""
    try:
        data = np.frombuffer(file.read_bytes(), np.uint8)
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    record = labels + PIXELS
    if not len(data) or len(data) % record:
        raise DataError(
            f"{file}: {count(len(data), 'byte')}; need a multiple of {record}, the bytes of one image"
        )
    records = torch.from_numpy(data.reshape(-1, record).copy())
    part = Part(records[:, labels:].reshape(-1, *SHAPE), records[:, labels - 1].long())
    if part.labels.max() >= classes:
        raise DataError(f"{file}: label {part.labels.max()} found, the classes are 0 to {classes - 1}")
    return part


SOURCES = (
    Source(
        "cifar10",
        "CIFAR-10",
        "classes",
        SIDE,
        True,
        "data_batch_1.bin to data_batch_5.bin and test_batch.bin, there or in cifar-10-batches-bin: the "
        "binary version of https://www.cs.toronto.edu/~kriz/cifar.html",
        read_cifar10,
    ),
    Source(
        "cifar100",
        "CIFAR-100",
        "classes",
        SIDE,
        True,
        "train.bin and test.bin, there or in cifar-100-binary: the binary version of "
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        read_cifar100,
    ),
)
