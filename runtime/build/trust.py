"""Trust: what this process may load as code, or take for a proof, since no other user can have written it.

A file is trusted if it and its folder belong to this user or to root, and nobody else may write to them. A
link is not followed. So nobody else can exchange a file between the look at it and its use, but by way of the
folders above: in one to which everybody may write, as /tmp, others may put a folder or a link in place.
Therefore links in the path are resolved once, and a folder in such a one must be this user's or root's too,
and the sticky bit must keep others from renaming it. Whoever else may rename folders above is trusted: the
owners and groups of home folders, of a project's storage, of a container's volumes.

Windows has no such rights, and keeps a user's folders from others by itself: there nothing is checked.
"""

from __future__ import annotations

import errno
import functools
import os
import stat
import warnings
from itertools import pairwise
from pathlib import Path

_HAS_OWNERS = hasattr(os, "getuid")


class UntrustedError(PermissionError):
    """Something that another user can have written."""


def resolved(folder: Path) -> Path:
    """Return a folder's path without links, which is to be checked and then used."""
    return Path(os.path.realpath(folder))


def check_folder(folder: Path) -> None:
    """Refuse a folder in which another user could plant a file, or that another could exchange.

    Args:
        folder: as `resolved` returns it.

    Raises:
        UntrustedError: another user could.
        OSError: there is no such folder.
    """
    check_rights(folder)
    for below, above in pairwise((folder, *folder.parents)):
        rights = above.stat().st_mode
        if not _HAS_OWNERS or not rights & stat.S_IWOTH:
            continue
        if not rights & stat.S_ISVTX:
            raise UntrustedError(f"everybody may rename what lies in {above}: chmod +t {above}")
        _check_owner(below, below.stat())


def check_rights(folder: Path) -> None:
    """Refuse a folder in which another user could plant a file; those above it are not looked at.

    This is for a folder of this process alone, among the system's temporary files, whose name nobody knows
    beforehand.

    Raises:
        UntrustedError: another user could.
        OSError: there is no such folder.
    """
    _check_status(folder, folder.stat(), f": chmod 700 {folder}")


def read_trusted(path: Path) -> bytes:
    """Return what a file of a folder that was checked holds.

    Raises:
        UntrustedError: another user could have written it, or it is a link or no plain file.
        OSError: there is none, or it cannot be read.
    """
    # The rights are those of the open file, whatever its name stands for by then. A pipe does not block.
    flags = os.O_RDONLY | sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY"))
    try:
        descriptor = os.open(path, flags)
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


@functools.cache
def warn_untrusted(why: str) -> None:
    """Warn once that a file is not used, and made anew."""
    warnings.warn(f"nsc: {why}; it is not used, but made anew", RuntimeWarning, stacklevel=2)


def _check_status(path: Path, status: os.stat_result, advice: str = "") -> None:
    if not _HAS_OWNERS:
        return
    _check_owner(path, status)
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise UntrustedError(f"others may write to {path}{advice}")


def _check_owner(path: Path, status: os.stat_result) -> None:
    user = os.getuid()
    if status.st_uid not in (user, 0):
        raise UntrustedError(f"{path} belongs to user {status.st_uid}, and this process to user {user}")
