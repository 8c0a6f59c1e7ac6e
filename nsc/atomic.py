"""Atomic writing: a file is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path


def write_whole(place: Path, content: str | bytes, rights: int | None = None) -> None:
    """Write beside the place and rename: nobody ever finds half a file.

    Args:
        place: the file.
        content: bytes, or a text that is written as UTF-8 with its own line ends.
        rights: of the file; None: the rights that it has, or the rights of a new file.

    Raises:
        OSError: the file cannot be written; an old file is unchanged, and nothing is left beside it.
    """
    beside = place.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(os.open(beside, flags, 0o666 if rights is None else rights), "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        if rights is None and place.exists():
            shutil.copymode(place, beside)
        os.replace(beside, place)
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise
