"""A user's own method or data set: one Python file that states a record."""

from __future__ import annotations

import functools
import hashlib
import runpy
from pathlib import Path
from typing import TypeVar

from experiments.errors import ExperimentError

Record = TypeVar("Record")


def is_file_of(name: str, suffix: str = ".py") -> bool:
    """Return whether a name stands for a file: a path, or a path and its digest."""
    return path_of(name).endswith(suffix)


def path_of(name: str) -> str:
    """Return the path in the name of a file, without the digest."""
    return name.partition("#")[0]


def with_digest(name: str) -> str:
    """Return a file's path, "#" and the digest of its content: a name for records.

    So a run is done again when the file has changed. A name that has a digest is returned as it is.

    Raises:
        ExperimentError: no such file.
    """
    return name if "#" in name else f"{name}#{digest(name)}"


def checked(name: str) -> Path:
    """Return the path in the name of a file; the digest in the name, if there is one, must be the file's.

    Raises:
        ExperimentError: no such file, or one of another digest.
    """
    path, _, stated = name.partition("#")
    if stated and digest(path) != stated:
        raise ExperimentError(f"{path} has changed since the run was planned: start the command anew")
    return Path(path)


def digest(path: str) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a file.

    Raises:
        ExperimentError: no such file, or one that cannot be read.
    """
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()[:12]
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from None


def load_record(name: str, variable: str, kind: type[Record]) -> Record:
    """Run a Python file and return the record that it states.

    A process runs the same content once: later calls return the same record.

    Args:
        name: the file's path, which may be followed by "#" and its digest.
        variable: of the file, such as METHOD.
        kind: the record's class.

    Raises:
        ExperimentError: the file cannot be read, has changed, raises, or states no such record.
    """
    path = checked(name)
    content = digest(str(path))
    try:
        found = _stated(path.resolve(), content, variable)
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        raise ExperimentError(f"{path}: it raises {in_a_line(error)}") from None
    if not isinstance(found, kind):
        state = "is missing" if found is None else f"is of type {type(found).__name__}"
        raise ExperimentError(f"{path}: it must state {variable}, a {kind.__name__}; {variable} {state}")
    return found


def check_line(field: str, value: object) -> None:
    """Check a name or title of a record that a user's file may state: it stands in a cell of a table.

    Raises:
        ValueError: it is no text, blank, or of several lines.
    """
    if not isinstance(value, str) or not value.strip() or len(value.splitlines()) > 1:
        raise ValueError(f"{field} must be a text of one line, got {value!r}")


def in_a_line(error: BaseException) -> str:
    """Return the kind of an error and its message, in one line.

    >>> in_a_line(ValueError("a\\nb"))
    'ValueError: a b'
    """
    return ": ".join(filter(None, [type(error).__name__, " ".join(str(error).split())]))


@functools.lru_cache
def _stated(path: Path, content: str, variable: str) -> object:
    """Return the value of a variable of a file; None if it has none. `content` is the file's digest."""
    return runpy.run_path(str(path)).get(variable)
