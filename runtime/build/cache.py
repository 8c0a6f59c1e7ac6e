"""The build cache: each kernel is compiled once per compiler, architecture and source.

The contract of `build`: look for a valid entry; else take the lock, look again under it, compile in
a private folder, check, and publish with an atomic rename. An entry is a binary and a record
with its SHA-256, checked at every hit, because loading a damaged binary would end the process. A
binary is never rewritten in place. When locks do not work the rename alone keeps entries whole.

Whoever can write to the folder, or to a file in it, can run code in this process: `trust.py` says which files
are read. Files are made for their owner alone, whatever the umask.
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
import tempfile
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from nsc import library
from nsc.errors import BuildError
from nsc.runtime.build.notice import notice
from nsc.runtime.build.trust import (
    UntrustedError,
    check_folder,
    check_rights,
    read_trusted,
    resolved,
    warn_untrusted,
)

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
        command: the complete build command, with its files; of a prebuilt library nothing.
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
    # Should the cache folder not serve, a temporary one of this process does.
    for folder, check in ((user_folder(), check_folder), (_process_folder(), check_rights)):
        try:
            with notice(f"building {name}, kept in {folder}"):
                return _build_in(folder, check, entry, compiler, source)
        except OSError as error:
            _warn_folder(folder, str(error))
    raise BuildError("neither the cache folder nor a temporary folder can be written; set NSC_CACHE_DIR")


def binary_of(name: str) -> Path | None:
    """Return a binary of the cache folder by its name, if it is whole and may be used, else None."""
    folder = user_folder()
    binary = folder / name
    try:
        check_folder(folder)
    except OSError:
        return None
    return binary if _valid(binary, binary.with_suffix(".json")) else None


def _key(compiler: Compiler, source: str, version: str) -> str:
    state = hashlib.sha256()
    for part in (version, source, *compiler.identity):
        state.update(part.encode() + b"\0")
    return state.hexdigest()[:24]


def user_folder() -> Path:
    """Return the cache folder, without links in its path; it may not be there yet."""
    configured = os.environ.get("NSC_CACHE_DIR")
    if configured:
        # In an environment file or a YAML list no shell has replaced the ~.
        return resolved(Path(os.path.expanduser(configured)))
    import platformdirs  # not needed where the folder is stated

    return resolved(Path(platformdirs.user_cache_dir("nsc", appauthor=False)))


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


def _build_in(
    folder: Path, check: Callable[[Path], None], entry: str, compiler: Compiler, source: str
) -> Artifact:
    binary = folder / f"{entry}{compiler.binary_suffix}"
    record = folder / f"{entry}.json"
    if folder.is_dir():
        check(folder)
        if _valid(binary, record):
            return Artifact(binary, _command(compiler, binary), cached=True)
    import filelock  # not needed where the binary is there

    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    check(folder)
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


def _valid(binary: Path, record: Path) -> bool:
    """Say whether an entry may be used, and note the time in its record if so."""
    try:
        recorded = json.loads(read_trusted(record))["sha256"]
        is_whole = bool(recorded == hashlib.sha256(read_trusted(binary)).hexdigest())
    except UntrustedError as error:
        warn_untrusted(str(error))
        return False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    if is_whole:
        note_use(record)
    return is_whole


def note_use(path: Path) -> None:
    """Set a file's time to now, where that is allowed: `nsc cache` tells and removes by it."""
    with contextlib.suppress(OSError):
        os.utime(path)


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
