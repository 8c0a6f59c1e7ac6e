"""The build cache: each kernel is compiled once per compiler, architecture and source.

The contract of `build`: look for a valid entry; else take the lock, look again under it, compile in
a private folder, check, and publish with an atomic rename. An entry is a binary and a record
with its SHA-256, checked at every hit, because loading a damaged binary would end the process. A
binary is never rewritten in place. When locks do not work the rename alone keeps entries whole.

Whoever can write to the folder, or to a file in it, can run code in this process. So the folder and each
file that is read must belong to this user, and nobody else may write to them. Files are made for their owner
alone, whatever the umask. What was checked is then what is loaded: only its owner could change it in between.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import shlex
import shutil
import stat
import tempfile
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import filelock

from nsc import library
from nsc.errors import BuildError
from nsc.runtime.build.notice import notice

_LOCK_SECONDS = 600


class Compiler(Protocol):
    """What turns a source file into a binary.

    Attributes:
        source_suffix, binary_suffix: how its files end, with the dot.
        identity: all that the binary depends on, apart from the source.
    """

    @property
    def source_suffix(self) -> str: ...

    @property
    def binary_suffix(self) -> str: ...

    @property
    def identity(self) -> tuple[str, ...]: ...

    def command_for(self, source: Path, binary: Path) -> tuple[str, ...]:
        """Return the complete build command."""

    def compile(self, source: Path, binary: Path) -> None:
        """Write the binary, or raise BuildError with the command and its log."""


@dataclass(frozen=True)
class Artifact:
    """A built kernel on disk.

    Attributes:
        binary: the shared library or cubin.
        command: the complete build command, with its files.
        cached: whether it was there before.
    """

    binary: Path
    command: tuple[str, ...]
    cached: bool


def build(name: str, source: str, compiler: Compiler, version: str) -> Artifact:
    """Return the binary of a kernel's source, compiled unless the cache holds it.

    Args:
        name: the kernel's name, for file names that people can tell apart.
        source: its text, which may include headers of the library.
        compiler: what compiles it.
        version: the version of nsc, part of the key.

    Raises:
        BuildError: the compiler failed; the error carries its command and log. Or the library lacks a
            header.
    """
    source = library.expanded(source)
    entry = f"{name}-{_key(compiler, source, version)}"
    for folder in _folders():
        try:
            with notice(f"building {name}, kept in {folder}"):
                return _build_in(folder, entry, compiler, source)
        except OSError as error:
            _warn_once(folder, error)
    raise BuildError("neither the cache folder nor a temporary folder can be written; set NSC_CACHE_DIR")


def find(name: str, source: str, compiler: Compiler, version: str) -> Path | None:
    """Return the binary that `build` would return if it is in the cache folder already, else None."""
    folder, entry = user_folder(), f"{name}-{_key(compiler, library.expanded(source), version)}"
    binary = folder / f"{entry}{compiler.binary_suffix}"
    try:
        check_owner(folder)
    except OSError:
        return None
    return binary if _valid(binary, folder / f"{entry}.json") else None


def _key(compiler: Compiler, source: str, version: str) -> str:
    state = hashlib.sha256()
    for part in (version, source, *compiler.identity):
        state.update(part.encode() + b"\0")
    return state.hexdigest()[:24]


def _folders() -> list[Path]:
    """Return the cache folder and, should it not serve, a temporary one of this process."""
    return [user_folder(), _process_folder()]


def user_folder() -> Path:
    """Return the cache folder, which may not be there yet."""
    configured = os.environ.get("NSC_CACHE_DIR")
    if configured:
        # In an environment file or a YAML list no shell has replaced the ~.
        return Path(os.path.expanduser(configured))
    import platformdirs  # not needed where the folder is stated

    return Path(platformdirs.user_cache_dir("nsc", appauthor=False))


@functools.cache
def _process_folder() -> Path:
    folder = Path(tempfile.gettempdir()) / f"nsc-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    owner = os.getpid()

    def remove() -> None:
        # A forked worker inherits this hook and must not remove its parent's folder.
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def _build_in(folder: Path, entry: str, compiler: Compiler, source: str) -> Artifact:
    binary = folder / f"{entry}{compiler.binary_suffix}"
    record = folder / f"{entry}.json"
    if folder.is_dir():
        check_owner(folder)
        if _valid(binary, record):
            return Artifact(binary, _command(compiler, binary), cached=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_owner(folder)
    lock = filelock.FileLock(folder / f"{entry}.lock", mode=0o600)
    with contextlib.suppress(filelock.Timeout, NotImplementedError):
        lock.acquire(timeout=_LOCK_SECONDS)
    try:
        if _valid(binary, record):
            return Artifact(binary, _command(compiler, binary), cached=True)
        if lock.is_locked:
            for left_by_a_killed_build in folder.glob(f".{entry}.*"):
                shutil.rmtree(left_by_a_killed_build, ignore_errors=True)
        _compile(folder, entry, compiler, source)
    finally:
        lock.release()
    return Artifact(binary, _command(compiler, binary), cached=False)


def check_owner(folder: Path) -> None:
    """Refuse a folder in which somebody else could plant code.

    Raises:
        PermissionError: it belongs to another user, or others may write to it.
    """
    _check_status(folder, folder.stat(), 0o700)


def read_own(path: Path) -> bytes:
    """Return what a file of a folder that was checked holds, if nobody else could have written it.

    Raises:
        PermissionError: it belongs to another user, or others may write to it.
        OSError: there is none, it cannot be read, or it is a link.
    """
    # The rights are those of the file that is open, whatever its name stands for by then.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0))
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _check_status(path, status, 0o600)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(f"{path} is no plain file: remove it")
        return file.read()


def _check_status(path: Path, status: os.stat_result, rights: int) -> None:
    if not hasattr(os, "getuid"):
        return
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"{path} belongs to another user or others may write to it: chmod it to {rights:o} or set "
            "NSC_CACHE_DIR"
        )


def _valid(binary: Path, record: Path) -> bool:
    try:
        recorded = json.loads(read_own(record))["sha256"]
        return bool(recorded == hashlib.sha256(read_own(binary)).hexdigest())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _command(compiler: Compiler, binary: Path) -> tuple[str, ...]:
    return compiler.command_for(binary.with_suffix(compiler.source_suffix), binary)


def _compile(folder: Path, entry: str, compiler: Compiler, source: str) -> None:
    """Compile in a private folder and publish source, binary and record, the record last."""
    with tempfile.TemporaryDirectory(prefix=f".{entry}.", dir=folder) as private:
        work = Path(private)
        text, record = work / f"{entry}{compiler.source_suffix}", work / f"{entry}.json"
        binary = work / f"{entry}{compiler.binary_suffix}"
        text.write_text(source, encoding="utf-8")
        compiler.compile(text, binary)
        command = shlex.join(compiler.command_for(text, binary))
        digest = hashlib.sha256(binary.read_bytes()).hexdigest()
        record.write_text(json.dumps({"sha256": digest, "command": command}, indent=1), encoding="utf-8")
        for part, rights in ((text, 0o600), (binary, 0o700), (record, 0o600)):
            part.chmod(rights)
            os.replace(part, folder / part.name)


@functools.cache
def _warn_folder(folder: Path, why: str) -> None:
    warnings.warn(
        f"nsc: the build cache {folder} cannot be used ({why}); kernels are compiled anew for this "
        "process. Set NSC_CACHE_DIR to a folder of yours",
        RuntimeWarning,
        stacklevel=2,
    )


def _warn_once(folder: Path, error: OSError) -> None:
    _warn_folder(folder, str(error))
