"""Writing: how a C header reaches the disk."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path

from nsc.errors import LoweringError
from nsc.wording import argument


def write(name: str, text: str, folder: Path) -> Path:
    """Write a C header to folder/NAME.h, whole or not at all, and only if it differs from what is there.

    Returns:
        The file.

    Raises:
        LoweringError: the file cannot be written, or it exists and nsc did not write it.
    """
    place = folder / f"{name}.h"
    if not replaces(name, text, folder):
        if place.exists():
            return place
    elif not _is_header(place):
        raise LoweringError(
            f"{place} exists and is no header that nsc wrote: choose another {argument('name')} or "
            f"{argument('folder')}"
        )
    fresh = folder / f".new.{place.name}.{uuid.uuid4().hex[:8]}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh.write_text(text, encoding="utf-8", newline="\n")
        os.replace(fresh, place)
    except OSError as error:
        raise LoweringError(f"cannot write the header to {place}: {error}") from None
    finally:
        with contextlib.suppress(OSError):
            fresh.unlink()
    return place


def replaces(name: str, text: str, folder: Path) -> bool:
    """Say whether folder/NAME.h holds something else than the header, which writing it would replace."""
    place = folder / f"{name}.h"
    try:
        return place.read_bytes() != text.encode()
    except OSError:
        return os.path.lexists(place)


def _is_header(place: Path) -> bool:
    """Whether a file is a C header that nsc wrote, of any version."""
    try:
        with place.open("rb") as file:
            begin = file.read(4096).decode(errors="replace").splitlines()
    except OSError:
        return False
    return (
        not place.is_symlink()
        and len(begin) > 3
        and begin[0].startswith(f"/* {place.name}: ")
        and begin[2].startswith(" * Made by: nsc header ")
    )
