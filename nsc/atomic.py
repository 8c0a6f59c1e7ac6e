"""Atomic writing: a file is there whole or not at all."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path


def write_whole(place: Path, content: str | bytes) -> None:
    """Write beside the place and rename: nobody ever finds half a file.

    Args:
        place: the file; one that is there keeps its rights.
        content: bytes, or a text that is written as UTF-8 with the ends of lines that it has.

    Raises:
        OSError: the file cannot be written; what was there is unchanged, and nothing is left beside it.
    """
    beside = place.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("xb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        if place.exists():
            shutil.copymode(place, beside)
        os.replace(beside, place)
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise
