"""Entries: what lies in the folder of the build cache, to look at and to remove."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from nsc.errors import BuildError
from nsc.runtime.build.folder import UntrustedError, check_folder
from nsc.runtime.build.system import SYSTEMS

# The names of what `cache.py` and `folder.py` write; what begins with a dot is not finished.
_NAME = re.compile(r"\.?(?P<entry>(?P<what>[\w-]+)-[0-9a-f]{24})[.-].+")
_KINDS = {".cubin": "CUDA binary", **{system.suffix: "library" for system in SYSTEMS.values()}}
_DAY = 24 * 60 * 60
# Seconds after which an unfinished build goes on no more: a compiler has fewer.
_ENDED = 60 * 60


@dataclass(frozen=True)
class Entry:
    """A build, a text, or what was left of a build that was killed.

    Attributes:
        name: begins the names of its files.
        what: the name of a kernel, of a proof `proof-` and the number of wires, or `task`.
        paths: its files, and folders of unfinished builds; what makes it valid comes first.
        size: bytes.
        used: when it was last used, in seconds since the epoch.
    """

    name: str
    what: str
    paths: tuple[Path, ...]
    size: int
    used: float

    @property
    def kind(self) -> str:
        """The kind of entry: library, CUDA binary, proof, task (which library serves it) or unfinished."""
        if self.paths[0].suffix != ".json":
            return "unfinished"
        built = (_KINDS[path.suffix] for path in self.paths if path.suffix in _KINDS)
        return next(built, self.what.partition("-")[0])


def entries_of(folder: Path) -> tuple[list[Entry], list[Path]]:
    """Return the entries of a cache folder, the last used one first, and the other paths that lie there.

    Raises:
        BuildError: the folder cannot be read.
    """
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise BuildError(f"cannot read {folder}: {error.strerror}; NSC_CACHE_DIR may name another") from None
    found: dict[tuple[str, str], list[Path]] = defaultdict(list)
    others = []
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match is None:
            others.append(path)
        elif path.suffix != ".lock":
            found[match["entry"], match["what"]].append(path)
    entries = [_entry(name, what, together) for (name, what), together in found.items()]
    return sorted(entries, key=lambda entry: (-entry.used, entry.name)), others


def clear(folder: Path, older_than: float = 0) -> list[Entry]:
    """Remove the entries of a cache folder, and return them; builds that may go on are kept.

    Files of locks stay, with 0 bytes: a new lock of the same name would let processes in beside the waiting
    ones.

    Args:
        folder: the cache folder.
        older_than: days since the last use of the entries to remove.

    Raises:
        BuildError: another user could have planted something there, or a file cannot be removed.
    """
    now = time.time()
    old = [entry for entry in entries_of(folder)[0] if entry.used <= now - older_than * _DAY]
    old = [entry for entry in old if entry.kind != "unfinished" or entry.used <= now - _ENDED]
    try:
        if old:
            check_folder(folder)
        for path in (path for entry in old for path in entry.paths):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except UntrustedError as error:
        raise BuildError(f"nothing is removed: {error}") from None
    except OSError as error:
        raise BuildError(f"cannot remove {error.filename}: {error.strerror}") from None
    return old


def _entry(name: str, what: str, paths: list[Path]) -> Entry:
    """Return an entry, whose files other processes may write or remove meanwhile."""
    paths.sort(key=lambda path: (path.name.startswith("."), path.suffix != ".json"))
    folders = [path for path in paths if not path.is_symlink()]
    inside = [Path(top, file) for path in folders for top, _, files in os.walk(path) for file in files]
    statuses = []
    for path in (*paths, *inside):
        with contextlib.suppress(OSError):
            statuses.append(path.lstat())
    times = [status.st_mtime for status in statuses]
    return Entry(name, what, tuple(paths), sum(s.st_size for s in statuses), max(times, default=0.0))
