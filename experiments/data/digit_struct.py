"""digitStruct.mat: which digits each image of SVHN's format 1 shows, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from experiments.data.packages import need
from experiments.errors import DataError

MOST_DIGITS = 18  # more do not fit an int64; a real house has up to 6
FIELDS = ("label", "left", "top", "width", "height")
Box = tuple[float, float, float, float]
"""Left, top, right, bottom, in pixels from the image's top left."""


@dataclass(frozen=True)
class House:
    """One image's annotation.

    Attributes:
        file: the image's name in its folder.
        number: the number that the digits spell from left to right, as the file lists them.
        box: the box round all digits.
    """

    file: str
    number: int
    box: Box


def read_houses(file: Path) -> list[House]:
    """Return the annotations in a digitStruct.mat, at least one, in their order.

    It is an HDF5 file (MATLAB 7.3): digitStruct/name and digitStruct/bbox hold one reference an image, to its
    name in UTF-16 codes and to a group of five fields. A field holds its value if the image has one digit,
    otherwise one reference a digit, to a value. Label 10 is the digit 0.

    Raises:
        DataError: h5py is missing, or the file cannot be read or holds something else.
    """
    h5py = need("h5py", "svhn")
    try:
        with h5py.File(file, "r") as store:
            names, boxes = (store["digitStruct"][field][()].ravel() for field in ("name", "bbox"))
            if len(names) != len(boxes) or not len(names):
                raise ValueError(f"{len(names)} names and {len(boxes)} boxes; need as many, at least one")
            return [_house(store, name, box) for name, box in zip(names, boxes, strict=True)]
    # h5py has no base of its errors: damage shows as any of these.
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{file}: no digitStruct.mat of SVHN's format 1: {error}") from None


def _house(store: Any, name: Any, box: Any) -> House:
    """Return the annotation of one image.

    Raises:
        ValueError: it makes no sense; other errors of h5py if the file is damaged.
    """
    file = "".join(map(chr, store[name][()].ravel()))
    if Path(file).name != file:
        raise ValueError(f"{file!r} is no name of a file")
    group = store[box]
    labels, lefts, tops, widths, heights = values = [_values(store, group[field]) for field in FIELDS]
    lengths = [len(field) for field in values]
    if len(set(lengths)) > 1 or not 0 < len(labels) <= MOST_DIGITS:
        found = ", ".join(f"{length} of {field}" for field, length in zip(FIELDS, lengths, strict=True))
        raise ValueError(f"{file} needs 1 to {MOST_DIGITS} digits and as many of each field, found {found}")
    if wrong := [label for label in labels if label not in range(1, 11)]:
        raise ValueError(f"{file} has label {wrong[0]:g}, labels are 1 to 10")
    left, top, width, height = map(np.array, (lefts, tops, widths, heights))
    if not np.isfinite([left, top, width, height]).all() or min(width.min(), height.min()) <= 0:
        raise ValueError(f"{file} has a box without an area")
    number = int("".join(str(int(label) % 10) for label in labels))
    edges = (left.min(), top.min(), (left + width).max(), (top + height).max())
    return House(file, number, (float(edges[0]), float(edges[1]), float(edges[2]), float(edges[3])))


def _values(store: Any, field: Any) -> list[float]:
    entries = field[()].ravel()
    if entries.dtype.kind == "O":  # references
        return [float(store[entry][()].item()) for entry in entries]
    return [float(entry) for entry in entries]
