"""Writing: how one file, a C header or a deployed source, reaches the disk."""

from __future__ import annotations

import os
from pathlib import Path

from nsc.atomic import write_whole
from nsc.errors import LoweringError
from nsc.wording import argument


def write(name: str, text: str, folder: Path) -> Path:
    """Write a text to folder/NAME, whole or not at all, and only if it differs from what is there.

    Args:
        name: of the file.
        text: its first line begins with its name, its third says "Made by: nsc".
        folder: made if it is not there.

    Returns:
        The file.

    Raises:
        LoweringError: the file cannot be written, or it exists and nsc did not write it.
    """
    place = folder / name
    check(name, text, folder)
    if place.exists() and not replaces(name, text, folder):
        return place
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)
    except OSError as error:
        raise LoweringError(f"cannot write the {_noun(place)} to {place}: {error}") from None
    return place


def replaces(name: str, text: str, folder: Path) -> bool:
    """Say whether folder/NAME holds something else than the text, which writing it would replace."""
    place = folder / name
    try:
        return place.read_bytes() != text.encode()
    except OSError:
        return os.path.lexists(place)


def check(name: str, text: str, folder: Path) -> None:
    """Raise LoweringError if folder/NAME exists and nsc did not write it."""
    place = folder / name
    if replaces(name, text, folder) and not _is_ours(place):
        raise LoweringError(
            f"{place} exists and is no {_noun(place)} that nsc wrote: choose another {argument('name')} or "
            f"{argument('folder')}"
        )


def _noun(place: Path) -> str:
    return "header" if place.suffix == ".h" else "source"


def _is_ours(place: Path) -> bool:
    """Whether a file is one that nsc wrote, of any version."""
    try:
        with place.open("rb") as file:
            begin = file.read(4096).decode(errors="replace").splitlines()
    except OSError:
        return False
    return (
        not place.is_symlink()
        and len(begin) > 3
        and begin[0].lstrip("/* ").startswith(f"{place.name}: ")
        and begin[2].lstrip("/* ").startswith("Made by: nsc ")
    )
