"""The folder of the build cache: where it is, whether it may be used, and texts that are kept there.

A user who can write a library can run code in the process that loads it. So the folder is used only if it
belongs to this user or to root, and nobody else may write to it. Files are written for their owner alone,
whatever the umask. So nobody else can have written a file that is read.

In a folder to which everybody may write, such as /tmp, others may put a folder or a link in place. Therefore
links in the path are resolved once. A folder inside of /tmp or the like must be this user's or root's too,
and the sticky bit must keep others from renaming it. Other users who may rename folders above are trusted:
the owners and groups of home folders, of a project's storage, of a container's volumes.
"""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from itertools import pairwise
from pathlib import Path

from nsc.atomic import write_whole
from nsc.version import VERSION


class UntrustedError(PermissionError):
    """Something that another user can have written."""


def user_folder() -> Path:
    """Return the cache folder, without links in its path; it may not be there yet.

    A user without a home, as in some containers, has one in the folder for temporary files.
    """
    configured = os.environ.get("NSC_CACHE_DIR")
    if configured:
        # In an environment file or a YAML list no shell has replaced the ~.
        return Path(os.path.realpath(os.path.expanduser(configured)))
    import platformdirs  # not needed where the folder is stated

    with contextlib.suppress(RuntimeError):  # no home; in older versions the path begins with ~
        found = platformdirs.user_cache_dir("nsc", appauthor=False)
        if os.path.isabs(found):
            return Path(os.path.realpath(found))
    return Path(os.path.realpath(tempfile.gettempdir()), f"nsc-{os.getuid()}")


def made_folder() -> Path:
    """Return the cache folder, which is made if it is not there, and may be used.

    Raises:
        OSError: it may not be used, or cannot be made.
    """
    folder = user_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_folder(folder)
    return folder


def check_folder(folder: Path) -> None:
    """Refuse a folder in which another user could plant a file, or that another could exchange.

    Args:
        folder: a path without links.

    Raises:
        UntrustedError: another user could.
        OSError: there is no such folder.
    """
    status = folder.stat()
    _check_owner(folder, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(f"others may write to {folder}: chmod 700 {folder}")
    for below, above in pairwise((folder, *folder.parents)):
        rights = above.stat().st_mode
        if rights & stat.S_IWOTH:
            if not rights & stat.S_ISVTX:
                raise UntrustedError(f"everybody may rename what lies in {above}: chmod +t {above}")
            _check_owner(below, below.stat())


def read(name: str) -> str | None:
    """Return a text that this version of nsc keeps; None: there is none that may be used."""
    path = _path(name)
    try:
        check_folder(path.parent)
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):  # of a folder that may not be used the next build says so
        return None
    note_use(path)
    return text


def write(name: str, text: str) -> None:
    """Keep a text; where it cannot be written, it is not kept."""
    with contextlib.suppress(OSError):
        made_folder()
        write_whole(_path(name), text, rights=0o600)


def note_use(path: Path) -> None:
    """Set a file's time to now, where that is allowed: `nsc cache` tells and removes by it."""
    with contextlib.suppress(OSError):
        os.utime(path)


def _path(name: str) -> Path:
    return user_folder() / f"{name}-{VERSION}.json"


def _check_owner(path: Path, status: os.stat_result) -> None:
    user = os.getuid()
    if status.st_uid not in (user, 0):
        raise UntrustedError(f"{path} belongs to user {status.st_uid}, and this process to user {user}")
