"""The folder of the build cache: where it is, which of its files are read, and texts that are kept there.

A user who can write a library can run code in the process that loads it. So a file is read only if

- it and its folder belong to this user or to root;
- nobody else may write to them;
- it is no link.

Nobody else can then exchange a file between its check and its use, except by way of the folders above. In a
folder to which everybody may write, such as /tmp, others may put a folder or a link in place. Therefore links
in the path are resolved once. A folder inside of /tmp or the like must be this user's or root's too, and the
sticky bit must keep others from renaming it. Other users who may rename folders above are trusted: the owners
and groups of home folders, of a project's storage, of a container's volumes.

Files are written for their owner alone, whatever the umask.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import warnings
from itertools import pairwise
from pathlib import Path

from nsc.atomic import write_whole
from nsc.version import VERSION


class UntrustedError(PermissionError):
    """Something that another user can have written."""


def user_folder() -> Path:
    """Return the cache folder, without links in its path; it may not be there yet."""
    configured = os.environ.get("NSC_CACHE_DIR")
    if configured:
        # In an environment file or a YAML list no shell has replaced the ~.
        return Path(os.path.realpath(os.path.expanduser(configured)))
    import platformdirs  # not needed where the folder is stated

    return Path(os.path.realpath(platformdirs.user_cache_dir("nsc", appauthor=False)))


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
    _check_status(folder, folder.stat(), f": chmod 700 {folder}")
    for below, above in pairwise((folder, *folder.parents)):
        rights = above.stat().st_mode
        if rights & stat.S_IWOTH:
            if not rights & stat.S_ISVTX:
                raise UntrustedError(f"everybody may rename what lies in {above}: chmod +t {above}")
            _check_owner(below, below.stat())


def read_trusted(path: Path) -> bytes:
    """Return what a file of a folder that was checked holds.

    Raises:
        UntrustedError: another user could have written it, or it is a link or no plain file.
        OSError: there is none, or it cannot be read.
    """
    try:
        # The rights are read from the open file, whatever its name stands for by then. A pipe does not block.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise UntrustedError(f"{path} is a link") from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f"{path} is no plain file")
        _check_status(path, status)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(descriptor)


def read_if_trusted(path: Path) -> bytes | None:
    """Return what a file of a folder that was checked holds; None: nothing that may be used.

    A file that another user could have written is warned of once.
    """
    try:
        return read_trusted(path)
    except UntrustedError as error:
        _warn(str(error))
    except OSError:
        pass
    return None


def read(name: str) -> str | None:
    """Return a text that this version of nsc keeps; None: there is none that may be used."""
    path = _path(name)
    try:
        check_folder(path.parent)
    except OSError:  # a build, which says so, comes soon
        return None
    found = read_if_trusted(path)
    if found is None:
        return None
    note_use(path)
    with contextlib.suppress(ValueError):
        return found.decode()
    return None


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


@functools.cache
def _warn(why: str) -> None:
    warnings.warn(f"nsc: {why}; it is not used, but made anew", RuntimeWarning, stacklevel=2)


def _check_status(path: Path, status: os.stat_result, advice: str = "") -> None:
    _check_owner(path, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(f"others may write to {path}{advice}")


def _check_owner(path: Path, status: os.stat_result) -> None:
    user = os.getuid()
    if status.st_uid not in (user, 0):
        raise UntrustedError(f"{path} belongs to user {status.st_uid}, and this process to user {user}")
