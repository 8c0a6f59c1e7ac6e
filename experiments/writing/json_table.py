"""Finished tables as JSON, written and read strictly: what is read equals what was written."""

from __future__ import annotations

import json
import math
import types
from dataclasses import asdict, fields, is_dataclass
from pathlib import Path
from typing import Any, Union, get_args, get_origin, get_type_hints

from experiments.errors import ExperimentError
from experiments.writing.records import Finished, is_part
from nsc.strict_json import read_json

FORMAT = "nsc experiments table 1"


def to_json(finished: Finished) -> str:
    """Return a table as JSON text; numbers round-trip."""
    return (
        json.dumps({"format": FORMAT, **asdict(finished)}, indent=1, ensure_ascii=False, allow_nan=False)
        + "\n"
    )


def is_table(path: Path) -> bool:
    """Return whether a JSON file is a table, or was one before it was damaged.

    Its name has two or more parts, see `Finished.stem`, and it names the format, or the panels that only
    tables have. An empty file of such a name counts as damaged, and so does one that cannot be read.
    """
    parts = path.stem.split("-")
    if len(parts) < 2 or not all(map(is_part, parts)):
        return False
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True
    return not text.strip() or f'"{FORMAT.rstrip("0123456789")}' in text or '"panels"' in text


def read(path: Path) -> Finished:
    """Return the table of a JSON file.

    Raises:
        ExperimentError: the file cannot be read, or is not exactly what `to_json` writes.
    """
    try:
        found = read_json(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise ValueError(f"it has no format {FORMAT!r}")
        finished: Finished = _build(Finished, {k: v for k, v in found.items() if k != "format"}, "table")
        if path.stem != finished.stem:
            raise ValueError(f"it holds the table {finished.stem}")
    except OSError as error:
        raise ExperimentError(f"cannot read the table {path}: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        advice = "restore the file, delete it, or make the table again"
        raise ExperimentError(f"{path} is not a table of the experiments: {error}; {advice}") from None
    return finished


def _build(kind: Any, value: Any, where: str) -> Any:
    """Return a JSON value as a type of the records; ValueError names the place that does not fit."""
    origin, arguments = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _build_record(kind, value, where)
    if origin in (Union, types.UnionType):
        return None if value is None else _build(arguments[0], value, where)
    if origin is tuple:
        _check(isinstance(value, list), where, "a list", value)
        return tuple(_build(arguments[0], each, f"{where}[{i}]") for i, each in enumerate(value))
    if origin is dict:
        _check(isinstance(value, dict), where, "an object", value)
        return {key: _build(arguments[1], each, f"{where}.{key}") for key, each in value.items()}
    if kind is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _check(is_number and math.isfinite(value), where, "a finite number", value)
        return float(value)
    _check(type(value) is kind, where, f"of type {kind.__name__}", value)
    return value


def _build_record(kind: Any, value: Any, where: str) -> Any:
    _check(isinstance(value, dict), where, "an object", value)
    names = [field.name for field in fields(kind)]
    if set(names) != set(value):
        different = ", ".join(sorted(set(names) ^ set(value)))
        raise ValueError(f"{where} has other fields than {kind.__name__}: {different}")
    hints = get_type_hints(kind)
    return kind(**{name: _build(hints[name], value[name], f"{where}.{name}") for name in names})


def _check(is_right: bool, where: str, wanted: str, found: object) -> None:
    if not is_right:
        raise ValueError(f"{where} must be {wanted}, found {str(found)[:40]!r}")
