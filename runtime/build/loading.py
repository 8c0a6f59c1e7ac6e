"""Loading: built binaries into this process, while other processes may clear the cache."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from nsc.errors import BuildError
from nsc.runtime.build.cache import Artifact

T = TypeVar("T")
# Builds of a binary that others remove each time.
_MOST_BUILDS = 5


def used(build: Callable[[], Artifact], use: Callable[[Path], T]) -> T:
    """Return what is made of a built binary, which is built again if it was removed before it could be used.

    Args:
        build: returns the binary; raises as `cache.build`.
        use: makes something of it.
    """
    for _ in range(_MOST_BUILDS - 1):
        binary = build().binary
        try:
            return use(binary)
        except (OSError, BuildError):
            if binary.exists():
                raise
    return use(build().binary)


def opened(path: Path, *names: str) -> ctypes.CDLL:
    """Return a library that has some functions.

    Raises:
        BuildError: it cannot be loaded, or has not all of them.
    """
    try:
        library = ctypes.CDLL(str(path))
        for name in names:
            getattr(library, name)
    except (OSError, AttributeError) as error:
        raise BuildError(
            f"cannot load {path}: {error}. If its folder is mounted noexec, set NSC_CACHE_DIR to "
            "one that is not"
        ) from None
    return library
