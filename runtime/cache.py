"""The build cache: each kernel is compiled once per machine, compiler and source.

The contract of `build`: look for a valid entry; else take the lock, look again under it, compile in
a private folder, check, and publish with an atomic rename. An entry is a shared library and a record
with its SHA-256, checked at every hit, because loading a damaged library would end the process. A
library is never rewritten in place. When locks do not work the rename alone keeps entries whole.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import json
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import uuid
import warnings
from dataclasses import dataclass
from pathlib import Path

import filelock
import platformdirs

from nsc.errors import BuildError
from nsc.runtime.toolchain import Toolchain, find_toolchain

_LOCK_SECONDS = 600
_COMPILE_SECONDS = 600


@dataclass(frozen=True)
class Artifact:
    """A built kernel on disk.

    Attributes:
        library: the shared library.
        command: the complete build command, with its files.
        cached: whether it was there before.
    """

    library: Path
    command: tuple[str, ...]
    cached: bool


def build(name: str, source: str, version: str) -> Artifact:
    """Return the shared library of a kernel's source, compiled unless the cache holds it.

    Args:
        name: the kernel's name, for file names that people can tell apart.
        source: C++ text.
        version: the version of nsc, part of the key.

    Raises:
        ToolchainError: no compiler.
        BuildError: the compiler failed; the error carries its command and log.
    """
    toolchain = find_toolchain()
    key = _key(toolchain, source, version)
    for folder in _folders():
        try:
            return _build_in(folder, f"{name}-{key}", toolchain, source)
        except OSError as error:
            _warn_once(folder, error)
    raise BuildError("neither the cache folder nor a temporary folder can be written; set NSC_CACHE_DIR")


def _key(toolchain: Toolchain, source: str, version: str) -> str:
    state = hashlib.sha256()
    for part in (
        version,
        source,
        shlex.join(toolchain.command),
        toolchain.version,
        toolchain.instruction_set,
        sys.platform,
        platform.machine(),
        "-".join(platform.libc_ver()),
    ):
        state.update(part.encode() + b"\0")
    return state.hexdigest()[:24]


def _folders() -> list[Path]:
    """Return the cache folder and, should it not serve, a temporary one of this process."""
    stated = os.environ.get("NSC_CACHE_DIR")
    return [Path(stated or platformdirs.user_cache_dir("nsc", appauthor=False)), _process_folder()]


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


def _build_in(folder: Path, entry: str, toolchain: Toolchain, source: str) -> Artifact:
    library, record = folder / f"{entry}.so", folder / f"{entry}.json"
    if folder.is_dir():
        _check_owner(folder)
        if _valid(library, record):
            return Artifact(library, _command(toolchain, library), cached=True)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_owner(folder)
    lock = filelock.FileLock(folder / f"{entry}.lock")
    with contextlib.suppress(filelock.Timeout, NotImplementedError):
        lock.acquire(timeout=_LOCK_SECONDS)
    try:
        if _valid(library, record):
            return Artifact(library, _command(toolchain, library), cached=True)
        if lock.is_locked:
            for left_by_a_killed_build in folder.glob(f".{entry}.*"):
                shutil.rmtree(left_by_a_killed_build, ignore_errors=True)
        _compile(folder, entry, toolchain, source)
    finally:
        lock.release()
    return Artifact(library, _command(toolchain, library), cached=False)


def _check_owner(folder: Path) -> None:
    """Refuse a folder in which somebody else could plant code."""
    if not hasattr(os, "getuid"):
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"{folder} belongs to another user or others may write to it: chmod it to 700 or set "
            "NSC_CACHE_DIR"
        )


def _valid(library: Path, record: Path) -> bool:
    try:
        stated = json.loads(record.read_text(encoding="utf-8"))["sha256"]
        return bool(stated == _digest(library))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _command(toolchain: Toolchain, library: Path) -> tuple[str, ...]:
    return (*toolchain.command, str(library.with_suffix(".cpp")), "-o", str(library))


def _compile(folder: Path, entry: str, toolchain: Toolchain, source: str) -> None:
    """Compile in a private folder and publish source, library and record, the record last."""
    with tempfile.TemporaryDirectory(prefix=f".{entry}.", dir=folder) as private:
        work = Path(private)
        text, library, record = work / f"{entry}.cpp", work / f"{entry}.so", work / f"{entry}.json"
        text.write_text(source, encoding="utf-8")
        command = (*toolchain.command, str(text), "-o", str(library))
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=_COMPILE_SECONDS,
                stdin=subprocess.DEVNULL,
            )
        except subprocess.TimeoutExpired:
            raise BuildError(f"the compiler took over {_COMPILE_SECONDS} s", command) from None
        except OSError as error:
            raise BuildError(f"the compiler does not run: {error}", command) from None
        if done.returncode != 0 or not library.is_file():
            raise BuildError(
                f"the compiler failed with exit code {done.returncode}.\ncommand: "
                f"{shlex.join(command)}\n{done.stderr.strip()[-2000:]}",
                command,
                done.stderr,
            )
        record.write_text(
            json.dumps({"sha256": _digest(library), "command": shlex.join(command)}, indent=1),
            encoding="utf-8",
        )
        for part in (text, library, record):
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
