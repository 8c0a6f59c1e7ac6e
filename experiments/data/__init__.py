"""Data sets: one table from names to sources.

A new data set is a file here with its `SOURCES`, and its line in `DATA`.
"""

from __future__ import annotations

from pathlib import Path

from experiments.data import bundled, cifar, idx, svhn
from experiments.data.pooling import pool
from experiments.data.records import Data, Part, Source
from experiments.errors import DataError, ExperimentError

__all__ = ["DATA", "Data", "Part", "Source", "load"]

DATA: dict[str, Source] = {
    source.name: source for source in (*bundled.SOURCES, *idx.SOURCES, *svhn.SOURCES, *cifar.SOURCES)
}


def load(name: str, root: Path | None = None, side: int | None = None) -> Data:
    """Return a data set in its three parts, the same on every call.

    Args:
        name: a key of `DATA`.
        root: the folder of the files, for a source that needs one, and None for the others.
        side: images are pooled to side × side, see `pool`; None keeps them.

    Raises:
        ExperimentError: the name is unknown, a folder is missing or too many, or the images cannot be
            pooled to this side.
        DataError: the files cannot be read or do not hold what they should.

    >>> load("digits").test.images.shape
    torch.Size([359, 1, 8, 8])
    """
    if name not in DATA:
        raise ExperimentError(f"no data set {name!r}; known: {', '.join(DATA)}")
    source = DATA[name]
    if not source.root and root is not None:
        raise ExperimentError(f"{name} takes no folder, it {source.files}: leave out the folder {root}")
    if source.root and root is None:
        raise ExperimentError(f"{name} needs the folder (root) of its files: {source.files}")
    if root is not None and not root.is_dir():
        raise DataError(f"{root}: no such folder; {name} needs {source.files}")
    data = source.read() if root is None else source.read(root)
    if side is None:
        return data
    parts = (data.training, data.validation, data.test)
    return Data(*(Part(pool(part.images, side), part.labels) for part in parts))
