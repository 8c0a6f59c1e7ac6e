"""MNIST and Fashion-MNIST, from IDX files in a folder."""

from __future__ import annotations

import functools
import gzip
import math
import struct
import zlib
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from experiments.data.records import Data, Part, Source
from experiments.data.splitting import cut
from experiments.errors import DataError
from nsc.wording import count

BYTES = 0x08  # the code of unsigned bytes, the only type in these files
SIDE = 28
VALIDATION = Fraction(5_000, 60_000)  # the paper's share of the training files


def read_mnist(root: Path, folder: str = "MNIST") -> Data:
    """Return MNIST's digits, (m, 1, 28, 28): 55,000, 5,000 and 10,000 of them.

    The files have their standard names, plain or .gz, in root or in MNIST/raw under it, as torchvision
    puts them. The validation part is cut from the training files.

    Args:
        root: the folder of the files.
        folder: "MNIST", or "FashionMNIST", whose files have the same names.

    Raises:
        DataError: a file is missing or damaged, or two do not fit together.

    Source: the sizes of the parts, the code that the paper's authors released.
    """
    learned, test = _read_part(root, folder, "train"), _read_part(root, folder, "t10k")
    training, validation = cut(learned.labels, VALIDATION, str(root))
    return Data(learned[training], learned[validation], test)


def _read_part(root: Path, folder: str, part: str) -> Part:
    file = _find(root, folder, f"{part}-images-idx3-ubyte")
    images = read_idx(file, 3)
    labels = read_idx(_find(root, folder, f"{part}-labels-idx1-ubyte"), 1)
    if images.shape[1:] != (SIDE, SIDE):
        found = f"{images.shape[1]}×{images.shape[2]}"
        raise DataError(f"{file}: images of {SIDE}×{SIDE} expected, found {found}")
    if len(images) != len(labels) or not len(images):
        found = f"{count(len(images), 'image')} and {count(len(labels), 'label')}"
        raise DataError(f"{file}: {found}; need as many, at least one")
    if labels.max() > 9:
        raise DataError(f"{file}: label {labels.max()} in the labels' file is no digit")
    return Part(torch.from_numpy(images)[:, None], torch.from_numpy(labels).long())


def _find(root: Path, folder: str, name: str) -> Path:
    for place in (root, root / folder / "raw"):
        for file in (place / name, place / f"{name}.gz"):
            if file.is_file():
                return file
    raise DataError(f"{root}: no {name} and no {name}.gz there, nor in {folder}/raw under it")


def read_idx(file: Path, axes: int) -> npt.NDArray[np.uint8]:
    """Return the array in an IDX file of unsigned bytes, plain or gzip by its name.

    Raises:
        DataError: the file cannot be read, or its magic number or length does not fit `axes` axes.
    """
    try:
        data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    start = 4 * (1 + axes)
    magic, *shape = struct.unpack(f">{1 + axes}I", data[:start].ljust(start, b"\0"))
    if magic != BYTES << 8 | axes:
        raise DataError(
            f"{file}: no IDX file of {axes} axes of bytes: it begins with {data[:4].hex() or 'nothing'}"
        )
    if len(data) - start != math.prod(shape):
        length = max(0, len(data) - start)
        raise DataError(f"{file}: the header says {math.prod(shape)} bytes of data, found {length}")
    array: npt.NDArray[np.uint8] = np.frombuffer(data, np.uint8, offset=start).reshape(shape).copy()
    return array


_FILES = (
    "train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte, "
    "plain or .gz, there or in {}/raw, as {}"
)
SOURCES = (
    Source("mnist", "MNIST", "digits", 28, True, _FILES.format("MNIST", "torchvision puts them"), read_mnist),
    Source(
        "fashion",
        "Fashion-MNIST",
        "digits",
        28,
        True,
        _FILES.format("FashionMNIST", "torchvision and Debian's dataset-fashion-mnist put them"),
        functools.partial(read_mnist, folder="FashionMNIST"),
    ),
)
