"""Package: the files of a generated folder, and how they and single files reach the disk."""

from __future__ import annotations

import contextlib
import fcntl
import keyword
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from nsc.atomic import write_whole
from nsc.contract.manifest import MANIFEST, PACKAGE_FORMAT
from nsc.errors import LoweringError
from nsc.strict_json import read_json
from nsc.wording import argument

LONGEST_NAME = 100


@dataclass(frozen=True)
class Package:
    """A generated Python package as text.

    Attributes:
        name: a Python identifier, the folder's name.
        files: file name to text, in the order they are listed to the user.
    """

    name: str
    files: MappingProxyType[str, str]

    def __post_init__(self) -> None:
        check_name(self.name)
        object.__setattr__(self, "files", MappingProxyType(dict(self.files)))


def check_name(name: str) -> None:
    """Raise LoweringError unless a package may have a name.

    The name is a plain Python identifier, so that the package stays in its folder. It is no keyword and not
    of the form that Python keeps for itself, so that an import finds it.
    """
    plain = isinstance(name, str) and re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)
    if not plain or len(name) > LONGEST_NAME:
        raise LoweringError(
            f"a package's {argument('name')} must be a Python identifier of at most {LONGEST_NAME} ASCII "
            f"letters, digits and _, got {name!r}"
        )
    if keyword.iskeyword(name) or name == "_":
        raise LoweringError(
            f"{name!r} is a word of Python and cannot be imported: choose another {argument('name')}"
        )
    if name.startswith("__"):
        raise LoweringError(
            f"{name!r} begins as names that Python keeps for itself do: choose another {argument('name')}"
        )


def write(package: Package, folder: Path) -> Path:
    """Write a package to folder/NAME, whole or not at all, and only if it differs from what is there.

    Returns:
        The package's folder.

    Raises:
        LoweringError: the folder cannot be written, or folder/NAME holds something else, even a single
            file in an older package.
    """
    place = folder / package.name
    if _holds(place, package):
        return place
    fresh, old = folder / f".new.{package.name}", folder / f".old.{package.name}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _alone(folder):
            if os.path.lexists(place):
                _check_replaceable(place)
            _mark_importable(folder)
            for left in (fresh, old):  # by a process that was killed
                shutil.rmtree(left, ignore_errors=True)
            fresh.mkdir()
            try:
                for name, text in package.files.items():
                    (fresh / name).write_text(text, encoding="utf-8", newline="\n")
                _exchange(fresh, place, old)
            finally:
                shutil.rmtree(fresh, ignore_errors=True)
                shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        raise LoweringError(f"cannot write the package to {place}: {error}") from None
    return place


def replaces(package: Package, folder: Path) -> bool:
    """Say whether folder/NAME holds something else than the package, which writing it would replace."""
    place = folder / package.name
    return os.path.lexists(place) and not _holds(place, package)


def _check_replaceable(place: Path) -> None:
    """Raise LoweringError unless a folder holds a package that nsc wrote, of any version, and no more."""
    if place.name not in os.listdir(place.parent):  # a file system that takes a for A
        raise LoweringError(
            f"{place.parent} has a folder whose name differs from {place.name} in case alone, and its file "
            f"system takes both for one: choose another {argument('name')}"
        )
    listed = None if os.path.islink(place) else _listed(place)
    if listed is None:
        raise LoweringError(
            f"{place} exists and is no nsc package: choose another {argument('name')} or {argument('folder')}"
        )
    strangers = sorted(set(os.listdir(place)) - {MANIFEST, "__pycache__", *listed})
    if strangers:
        raise LoweringError(
            f"{place} would be replaced, but holds {strangers[0]!r}, which nsc did not write: move it away, "
            f"or choose another {argument('name')} or {argument('folder')}"
        )


def _listed(place: Path) -> list[str] | None:
    """Return the files that a package's manifest lists, None where there is no such manifest."""
    try:
        manifest = read_json((place / MANIFEST).read_text(encoding="utf-8"))
        is_ours = str(manifest["format"]).split("/")[0] == PACKAGE_FORMAT.split("/")[0]
        return [*map(str, manifest["files"])] if is_ours else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other processes from writing packages to a folder, where its file system has locks."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _exchange(fresh: Path, place: Path, old: Path) -> None:
    """Put fresh in the place; if that fails, what was there is put back."""
    replaces = place.exists()
    if replaces:
        os.rename(place, old)
    try:
        os.rename(fresh, place)
    except BaseException:  # an interrupt too
        if replaces:
            os.rename(old, place)
        raise


def _holds(place: Path, package: Package) -> bool:
    try:
        return all((place / name).read_bytes() == text.encode() for name, text in package.files.items())
    except OSError:
        return False


def _mark_importable(folder: Path) -> None:
    """Make a folder named generated, or one that is still empty, a regular package."""
    marker = folder / "__init__.py"
    if not marker.exists() and (folder.name == "generated" or not any(folder.iterdir())):
        marker.write_text('"""Operators that nsc compiled."""\n', encoding="utf-8")


def write_file(place: Path, text: str) -> Path:
    """Write one file, a text in a language or a deployed source, as `write` writes a package.

    Args:
        place: the file; its folder is made if it is not there.
        text: its first line begins with its file's name, its third says "Made by: nsc".

    Returns:
        The file.

    Raises:
        LoweringError: the file cannot be written, or it exists and nsc did not write it.
    """
    check_file(place, text)
    if place.exists() and not replaces_file(place, text):
        return place
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        write_whole(place, text)
    except OSError as error:
        raise LoweringError(f"cannot write {place}: {error}") from None
    return place


def replaces_file(place: Path, text: str) -> bool:
    """Say whether a file holds something else than the text, which writing it would replace."""
    try:
        return place.read_bytes() != text.encode()
    except OSError:
        return os.path.lexists(place)


def check_file(place: Path, text: str) -> None:
    """Raise LoweringError if a file exists and nsc did not write it."""
    if replaces_file(place, text) and not _is_ours(place):
        raise LoweringError(
            f"{place} exists and is no text that nsc wrote: choose another {argument('name')} or "
            f"{argument('folder')}"
        )


def _is_ours(place: Path) -> bool:
    """Whether a file is one that nsc wrote, of any version."""
    try:
        with place.open("rb") as file:
            begin = file.read(4096).decode(errors="replace").splitlines()
    except OSError:
        return False
    return (
        not place.is_symlink()
        and len(begin) > 3
        and begin[0].lstrip("/*-! ").startswith(f"{place.stem}.")
        and begin[2].lstrip("/*-! ").startswith("Made by: nsc ")
    )
