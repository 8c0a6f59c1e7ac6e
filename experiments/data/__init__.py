"""Data sets: one table from names to sources.

A new data set is a file here with its `SOURCES`, and its line in `DATA`.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

from experiments.data import bundled, cifar, idx, svhn
from experiments.data.pooling import pool
from experiments.data.records import Data, Part, Source, joined
from experiments.data.user_data import read_users
from experiments.errors import DataError, ExperimentError
from experiments.user_files import is_file_of, load_record

__all__ = ["DATA", "Data", "Part", "Source", "find", "fingerprint", "joined", "load", "pooled"]

DATA: dict[str, Source] = {
    source.name: source for source in (*bundled.SOURCES, *idx.SOURCES, *svhn.SOURCES, *cifar.SOURCES)
}


def find(name: str) -> Source:
    """Return the source of a name.

    Args:
        name: a key of `DATA`, or the path of a Python file that states SOURCE, a Source.

    Raises:
        ExperimentError: the name is unknown; the message lists the known ones.
    """
    if is_file_of(name):
        return replace(load_record(name, "SOURCE", Source), name=name)
    if name not in DATA:
        raise ExperimentError(
            f"no data set {name!r}; known: {', '.join(DATA)}, and Python files that state SOURCE"
        )
    return DATA[name]


def fingerprint(data: Data) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of all images and labels of a data set.

    So a run is done again when the files of a data set, or the way in which they are read, have changed.
    Cost: O(size), about a second for 2 GB.
    """
    digest = hashlib.sha256()
    for part in (data.training, data.validation, data.test):
        digest.update(repr(tuple(part.images.shape)).encode())
        for tensor in (part.images, part.labels):
            digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()[:12]


def load(name: str, root: Path | None = None, side: int | None = None) -> Data:
    """Return a data set in its three parts, the same on every call.

    Args:
        name: what `find` takes.
        root: the folder of the files, for a source that needs one, and None for the others.
        side: images are pooled to side × side, see `pool`; None keeps them.

    Raises:
        ExperimentError: the name is unknown, a folder is missing or too many, a user's file raises or
            returns something else, or the images cannot be pooled to this side.
        DataError: the files cannot be read or do not hold what they should.

    >>> load("digits").test.images.shape
    torch.Size([359, 1, 8, 8])
    """
    source = find(name)
    if not source.root and root is not None:
        raise ExperimentError(f"{name} takes no folder, it {source.files}: leave out the folder {root}")
    if source.root and root is None:
        raise ExperimentError(f"{name} needs the folder (root) of its files: {source.files}")
    if root is not None and not root.is_dir():
        raise DataError(f"{root}: no such folder; {name} needs {source.files}")
    if is_file_of(name):
        data = read_users(source, root)
    else:
        data = source.read() if root is None else source.read(root)
    return data if side is None else pooled(data, side)


def pooled(data: Data, side: int) -> Data:
    """Return a data set with images of side × side, see `pool`.

    Raises:
        ExperimentError: the images cannot be pooled to this side.
    """
    parts = (data.training, data.validation, data.test)
    return Data(*(Part(pool(part.images, side), part.labels) for part in parts))
