"""Decoded images in the user's cache folder, for data that takes long to decode."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import filelock
import numpy as np
import numpy.typing as npt

Arrays = tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]
"""Images, (m, c, h, w), and labels, (m,)."""


def cached(name: str, key: object, make: Callable[[], Arrays]) -> Arrays:
    """Return the images and labels that `make` returns, from the cache folder if they are there.

    Look, take a lock, look again, make, write under another name, rename: many processes that start at once
    decode once, and a killed one leaves no half of a file. A damaged file is made anew. A folder that cannot
    be written costs the time to decode, no more.

    Args:
        name: begins the file's name.
        key: what the arrays depend on, of JSON's types; its hash is in the file's name.
        make: decodes.
    """
    digest = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16]
    folder = _folder()
    file = folder / f"{name}-{digest}.npz"
    if (kept := _read(file)) is not None:
        return kept
    lock = filelock.FileLock(folder / f"{file.name}.lock")
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, NotImplementedError):
        return make()
    try:
        if (kept := _read(file)) is not None:
            return kept
        arrays = make()
        with contextlib.suppress(OSError):
            _write(file, arrays)
        return arrays
    finally:
        lock.release()


def _folder() -> Path:
    """Return the folder of nsc's cache: `NSC_CACHE_DIR`, else the user's."""
    configured = os.environ.get("NSC_CACHE_DIR")
    if configured:
        return Path(configured).expanduser()
    import platformdirs  # not needed where the folder is stated

    return Path(platformdirs.user_cache_dir("nsc", appauthor=False))


def _read(file: Path) -> Arrays | None:
    """Return the arrays of a file, or None if it is missing or damaged."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            images, labels = arrays["images"], arrays["labels"]
    except Exception:  # damage shows in many ways: zipfile, zlib and NumPy each have their own errors
        return None
    fits = images.ndim == 4 and images.dtype == np.uint8 and labels.dtype == np.int64
    return (images, labels) if fits and labels.shape == images.shape[:1] else None


def _write(file: Path, arrays: Arrays) -> None:
    """Write under another name, then rename; the caller holds the lock."""
    unfinished = file.with_suffix(".unfinished")
    try:
        with unfinished.open("wb") as stream:
            np.savez(stream, images=arrays[0], labels=arrays[1])
        os.replace(unfinished, file)
    except OSError:
        unfinished.unlink(missing_ok=True)
        raise
