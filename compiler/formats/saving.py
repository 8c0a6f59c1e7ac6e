"""Saving: a network into a file, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from nsc.atomic import write_whole
from nsc.compiler.formats.reading import FORMATS, writable, write_network
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import argument


def format_of_path(path: Path) -> str:
    """Return the name of the format that a file's suffix stands for.

    Raises:
        NetworkError: a suffix that stands for none.
    """
    for name, format_ in FORMATS.items():
        if path.suffix.lower() in format_.suffixes:
            return name
    known = ", ".join(f"{'/'.join(f.suffixes)} {name}" for name, f in FORMATS.items() if f.suffixes)
    raise NetworkError(
        f"{path}: no format has the suffix {path.suffix!r}. Known: {known}; or state the "
        f"format, one of {', '.join(writable())}"
    )


def losses(network: Network, format: str) -> list[str]:
    """Return what a format does not hold of a network, a sentence each; none for a diagram."""
    format_ = FORMATS[format]
    lost: list[str] = []
    if format_.parse is None:
        return lost
    if not format_.holds_wires and len(np.unique(network.comparators)) < network.n:
        lost.append(
            f"{format} has no number of wires, and some are in no comparator: read it with "
            f"{argument('n', network.n)}"
        )
    relayered = Network.from_comparators(network.n, network.comparators)
    if not format_.holds_layers and relayered != network:
        lost.append(
            f"{format} has no layers: read back, each comparator comes as early as it can "
            f"(depth {relayered.depth}, here {network.depth})"
        )
    return lost


def save_network(network: Network, path: Path, format: str | None = None) -> None:
    """Write a network to a file, whole or not at all; a file that is there is replaced.

    Args:
        network: the network.
        path: the file; a link is followed, and a device or a pipe is written to as it is.
        format: a name in FORMATS; None: by the file's suffix.

    Raises:
        NetworkError: no such format, or a file that cannot be written.
    """
    save(write_network(network, format_of_path(path) if format is None else format).encode(), path)


def save(content: bytes, path: Path) -> None:
    """Write a network file, or a picture of a network, whole or not at all, as `save_network` does.

    Raises:
        NetworkError: a file that cannot be written.
    """
    try:
        # As it is given: the real path of a pipe in /proc is no name of a file.
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(content)
        else:
            _replace(Path(os.path.realpath(path)), content)
    except (OSError, ValueError) as error:
        # Not its file: what is written first, beside the path, has a name that tells nothing.
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise NetworkError(f"cannot write {path}: {reason}") from None


def _replace(place: Path, content: bytes) -> None:
    if place.is_dir():
        raise IsADirectoryError("it is a folder")
    if not place.parent.is_dir():
        raise NotADirectoryError(f"{place.parent} is no folder: make it first")
    write_whole(place, content)
