"""The records of data sets: parts, data and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from experiments.user_files import check_line

Kind = Literal["digits", "numbers", "classes"]


@dataclass(frozen=True)
class Part:
    """Images and their labels.

    Attributes:
        images: (m, c, h, w), unsigned bytes.
        labels: (m,), int64: a digit, a class, or the number of a house.

    Raises:
        ValueError: a shape or a type is another one.
    """

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.dim() != 4 or self.images.dtype != torch.uint8:
            found = f"{self.images.dtype} of shape {tuple(self.images.shape)}"
            raise ValueError(f"images are unsigned bytes of shape (m, c, h, w), found {found}")
        if self.labels.shape != self.images.shape[:1] or self.labels.dtype != torch.int64:
            found = f"{self.labels.dtype} of shape {tuple(self.labels.shape)}"
            raise ValueError(f"labels of {len(self.images)} images are int64, one an image, found {found}")

    def __getitem__(self, picks: Tensor) -> Part:
        """Return the images at the indices `picks`, with their labels."""
        return Part(self.images[picks], self.labels[picks])

    def to(self, device: torch.device) -> Part:
        """Return the part on a device; its tensors are copied only if they are on another one."""
        return Part(self.images.to(device), self.labels.to(device))


def joined(parts: Sequence[Part]) -> Part:
    """Return the images and labels of all parts as one part, in their order; a single part is not copied."""
    if len(parts) == 1:
        return parts[0]
    return Part(torch.cat([part.images for part in parts]), torch.cat([part.labels for part in parts]))


@dataclass(frozen=True)
class Data:
    """A data set in three parts that share no image."""

    training: Part
    validation: Part
    test: Part


@dataclass(frozen=True)
class Source:
    """Where a data set comes from.

    Attributes:
        name: for the command line and files.
        title: for tables.
        kind: "digits", images of ten classes, which are joined in fours to numbers; "numbers", images of
            whole numbers; "classes", images to classify.
        side: of its images, which are square.
        root: whether the user says in which folder the files are.
        files: one line: which files, and where they come from.
        read: returns the data; takes the folder, a Path, if `root` is true, and nothing otherwise.

    Raises:
        ValueError: a name or title that is no text of one line, an unknown kind, a side that is no whole
            number above 0, a root that is no bool, or a read that cannot be called.
    """

    name: str
    title: str
    kind: Kind
    side: int
    root: bool
    files: str
    read: Callable[..., Data]

    def __post_init__(self) -> None:
        """Check what a user may have written."""
        for field in ("name", "title"):
            check_line(field, getattr(self, field))
        if self.kind not in get_args(Kind):
            raise ValueError(f"no kind {self.kind!r}; known: {', '.join(get_args(Kind))}")
        if type(self.side) is not int or self.side < 1:
            raise ValueError(f"side must be a whole number above 0, got {self.side!r}")
        if not isinstance(self.root, bool):
            raise ValueError(f"root must be True or False, got {self.root!r}")
        if not callable(self.read):
            raise ValueError(f"read must be a function, got {self.read!r}")
