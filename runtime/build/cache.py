"""The build cache: each kernel is compiled once per compiler, architecture and source.

The contract of `build`: look for a valid entry; else take the lock, look again under it, compile in
a private folder, check, and publish with an atomic rename. An entry is a binary and a record
with its SHA-256, checked at every hit, because loading a damaged binary would end the process. A
binary is never rewritten in place. When locks do not work the rename alone keeps entries whole.

`folder.py` says which folders are used.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import shlex
import shutil
import tempfile
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from nsc import library
from nsc.errors import BuildError
from nsc.runtime.build.folder import check_folder, made_folder, note_use, user_folder
from nsc.runtime.build.notice import notice

_LOCK_SECONDS = 600


class Compiler(Protocol):
    """A compiler, which turns a source file into a binary.

    Attributes:
        source_suffix, binary_suffix: how its files end, with the dot.
        identity: all that the binary depends on, except the source.
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
        command: the complete build command, with its files; empty for a prebuilt library.
        cached: whether it was there before.
    """

    binary: Path
    command: tuple[str, ...]
    cached: bool


def build(name: str, source: str, compiler: Compiler) -> Artifact:
    """Return the binary of a kernel's source, compiled unless the cache holds it.

    Args:
        name: the kernel's name, for file names that people can tell apart.
        source: its text, which may include headers of the library.
        compiler: what compiles it.

    Raises:
        BuildError: the compiler failed; the error carries its command and log. Or the library lacks a
            header.
    """
    source = library.expanded(source)
    entry = f"{name}-{digest(source, *compiler.identity)}"
    try:
        return _build_in(made_folder(), entry, compiler, source)
    except OSError as error:
        _warn_folder(user_folder(), str(error))
    try:
        return _build_in(_process_folder(), entry, compiler, source)
    except OSError as error:
        raise BuildError(
            f"neither the cache folder nor a temporary folder can be written ({error}); set NSC_CACHE_DIR"
        ) from None


def digest(*parts: str) -> str:
    """Return the part of a file's name that tells texts from other texts."""
    state = hashlib.sha256()
    for part in parts:
        state.update(part.encode() + b"\0")
    return state.hexdigest()[:24]


def binary_of(name: str) -> Path | None:
    """Return a binary of the cache folder by its name; None: there is none that is whole and may be used."""
    folder = user_folder()
    try:
        check_folder(folder)
    except OSError:
        return None
    return folder / name if _valid(folder / name) else None


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


@functools.cache
def _process_folder() -> Path:
    """Return a folder of this process alone, which goes with it."""
    folder = tempfile.mkdtemp(prefix="nsc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _build_in(folder: Path, entry: str, compiler: Compiler, source: str) -> Artifact:
    binary = folder / f"{entry}{compiler.binary_suffix}"
    artifact = Artifact(binary, compiler.command_for(_text_of(binary, compiler), binary), cached=True)
    if _valid(binary):
        return artifact
    import filelock  # not needed where the binary is there

    with notice(f"building {entry.rpartition('-')[0]}, kept in {folder}"):
        lock = filelock.FileLock(folder / f"{entry}.lock", mode=0o600)
        with contextlib.suppress(filelock.Timeout, NotImplementedError):
            lock.acquire(timeout=_LOCK_SECONDS)
        try:
            if _valid(binary):
                return artifact
            _compile(binary, compiler, source)
        finally:
            lock.release()
    return replace(artifact, cached=False)


def _text_of(binary: Path, compiler: Compiler) -> Path:
    return binary.with_suffix(compiler.source_suffix)


def _valid(binary: Path) -> bool:
    """Say whether an entry may be used, and note the time in its record if so."""
    record = binary.with_suffix(".json")
    try:
        said, image = json.loads(record.read_bytes()), binary.read_bytes()
        is_whole = bool(said["sha256"] == hashlib.sha256(image).hexdigest())
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False
    if is_whole:
        note_use(record)
    return is_whole


def _compile(place: Path, compiler: Compiler, source: str) -> None:
    """Compile in a private folder and publish source, binary and record, the record last."""
    with tempfile.TemporaryDirectory(prefix=f".{place.stem}.", dir=place.parent) as private:
        binary = Path(private, place.name)
        text, record = _text_of(binary, compiler), binary.with_suffix(".json")
        text.write_text(source, encoding="utf-8")
        compiler.compile(text, binary)
        facts = {
            "sha256": hashlib.sha256(binary.read_bytes()).hexdigest(),
            "command": shlex.join(compiler.command_for(text, binary)),
        }
        record.write_text(json.dumps(facts, indent=1), encoding="utf-8")
        for part, rights in ((text, 0o600), (binary, 0o700), (record, 0o600)):
            part.chmod(rights)
            os.replace(part, place.parent / part.name)


@functools.cache
def _warn_folder(folder: Path, why: str) -> None:
    warnings.warn(
        f"nsc: the build cache {folder} cannot be used ({why}); kernels are compiled anew for this "
        "process. Set NSC_CACHE_DIR to a folder of yours",
        RuntimeWarning,
        stacklevel=2,
    )
