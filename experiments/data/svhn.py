"""SVHN, the house numbers of Street View: format 1, whole images with a box round each digit."""

from __future__ import annotations

import functools
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from experiments.data.cache import Arrays, cached
from experiments.data.digit_struct import Box, House, read_houses
from experiments.data.packages import need
from experiments.data.records import Data, Part, Source, joined
from experiments.data.splitting import cut
from experiments.errors import DataError

SIDE = 64
MARGIN = 0.3  # what the box grows by, of its width and of its height, half of it at either side
VALIDATION = {"train": Fraction(3_000, 33_402), "extra": Fraction(2_000, 202_353)}
CUT = 1  # goes into the cache's key: another number where `_decode` makes something else of the same files


def read_svhn(root: Path, learned: tuple[str, ...] = ("train",)) -> Data:
    """Return SVHN's house numbers, (m, 3, 64, 64), labelled with the number that the digits spell.

    The box round all digits is enlarged by 30 %, cut to the image, and resized. The first call decodes every
    image and takes minutes; later calls read the user's cache folder.

    The validation part is cut from the training folders: 3,000 of train's 33,402 and 2,000 of extra's
    202,353, the same share of the numbers of each length.

    Args:
        root: the folder of train/ and test/, each with digitStruct.mat and its images.
        learned: the folders to train on, "train" and "extra".

    Raises:
        DataError: h5py or pillow is missing, or a file is missing or damaged.

    Source: the paper, section 5.1; Goodfellow et al. 2014, who train on both folders.
    """
    training, validation = [], []
    for name in learned:
        part = _read_part(root / name)
        lengths = torch.tensor([len(str(number)) for number in part.labels.tolist()])
        stays, goes = cut(lengths, VALIDATION[name], str(root / name))
        training.append(part[stays])
        validation.append(part[goes])
    return Data(joined(training), joined(validation), _read_part(root / "test"))


def _read_part(folder: Path) -> Part:
    try:
        files = [(entry.name, entry.stat()) for entry in os.scandir(folder)]
    except OSError as error:
        raise DataError(f"{folder} is needed, with digitStruct.mat and its images: {error}") from None
    facts = sorted((name, status.st_size, status.st_mtime_ns) for name, status in files)
    arrays = cached("svhn", [CUT, str(folder.resolve()), facts], functools.partial(_decode, folder))
    return Part(*map(torch.from_numpy, arrays))


def _decode(folder: Path) -> Arrays:
    houses = read_houses(folder / "digitStruct.mat")
    images = np.empty((len(houses), 3, SIDE, SIDE), np.uint8)
    for i, house in enumerate(houses):
        images[i] = _cut_out(folder / house.file, house)
    return images, np.array([house.number for house in houses], np.int64)


def _cut_out(file: Path, house: House) -> npt.NDArray[np.uint8]:
    """Return an image's house number, (3, 64, 64)."""
    Image = need("PIL.Image", "svhn")
    try:
        with Image.open(file) as image:
            box = enlarge(house.box, image.width, image.height)
            if box is None:
                edges = ", ".join(f"{edge:g}" for edge in house.box)
                size = f"{image.width}×{image.height}"
                raise DataError(f"{file}: the box round the digits, {edges}, is outside of the {size} image")
            pixels = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=box)
    # Pillow raises SyntaxError for some damaged files, and refuses huge images by an error of its own.
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    array: npt.NDArray[np.uint8] = np.asarray(pixels).transpose(2, 0, 1)
    return array


def enlarge(box: Box, width: int, height: int) -> Box | None:
    """Return a box of left, top, right, bottom enlarged by 30 % about its centre and cut to the image.

    None if no part of the box itself is in the image.

    >>> enlarge((40.0, 10.0, 60.0, 30.0), 100, 32)
    (37.0, 7.0, 63.0, 32.0)
    """
    left, top, right, bottom = box
    if left >= width or top >= height or right <= 0 or bottom <= 0:
        return None
    across, down = MARGIN / 2 * (right - left), MARGIN / 2 * (bottom - top)
    return (
        max(left - across, 0.0),
        max(top - down, 0.0),
        min(right + across, float(width)),
        min(bottom + down, float(height)),
    )


_FILES = (
    "{} with digitStruct.mat and its images: format 1 of http://ufldl.stanford.edu/housenumbers, unpacked"
)
SOURCES = (
    Source("svhn", "SVHN", "numbers", SIDE, True, _FILES.format("train/ and test/, each"), read_svhn),
    Source(
        "svhn-extra",
        "SVHN with extra",
        "numbers",
        SIDE,
        True,
        _FILES.format("train/, extra/ and test/, each"),
        functools.partial(read_svhn, learned=("train", "extra")),
    ),
)
