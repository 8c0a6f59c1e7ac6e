"""Results on disk, each by the hash of its run: OUT/runs/KEY.json, OUT/checkpoints/KEY.pt."""

from __future__ import annotations

import json
import math
import os
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from experiments.errors import ExperimentError
from experiments.run import Result, Run
from nsc.strict_json import read_json


@dataclass(frozen=True)
class Store:
    """A folder of results.

    A file counts only if it holds exactly what `write` writes for its run. Any other file under its name,
    damaged or of another run, counts as missing: `read` says so, the run is done again, and its result
    replaces the file.

    Attributes:
        folder: OUT; `prepare` makes it.
    """

    folder: Path

    def result(self, run: Run) -> Path:
        """Return the path of a run's result."""
        return self.folder / "runs" / f"{run.key}.json"

    def checkpoint(self, run: Run) -> Path:
        """Return the path of a run's checkpoint, which `experiments.training` writes."""
        return self.folder / "checkpoints" / f"{run.key}.pt"

    def prepare(self) -> None:
        """Make the folders, before hours of training whose result could not be written.

        Raises:
            ExperimentError: a folder that cannot be made or written to.
        """
        for folder in (self.folder / "runs", self.folder / "checkpoints"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                beside = folder / f".{uuid.uuid4().hex}.tmp"
                beside.touch()
                beside.unlink()
            except OSError as error:
                raise ExperimentError(
                    f"cannot write results to {folder}: {error.strerror}; name another folder with --out"
                ) from None

    def has(self, run: Run) -> bool:
        """Return whether `read` returns a result of the run."""
        return self.read(run) is not None

    def read(self, run: Run) -> Result | None:
        """Return the result of a run, or None; if its file holds something else, a line on stderr says so.

        Raises:
            ExperimentError: the file exists and the system does not let it be read.
        """
        path = self.result(run)
        try:
            text = path.read_bytes().decode()
            return _result(run, read_json(text))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ExperimentError(f"cannot read the result {path}: {error.strerror}") from None
        except (ValueError, OverflowError, RecursionError) as error:
            click.echo(f"{path} is not the result of its run ({error}); the run is done again", err=True)
            return None

    def write(self, result: Result) -> Path:
        """Write a result, whole or not at all, and return its path; `prepare` comes first.

        Every float comes back with its bits. A loss or a validation that is not finite is written as null,
        which JSON has, and comes back as NaN. An older result is replaced.

        Raises:
            ExperimentError: a file that cannot be written, or another number that is not finite.
        """
        path = self.result(result.run)
        try:
            text = json.dumps(_fields(result), allow_nan=False, indent=1)
        except ValueError:
            raise ExperimentError(
                f"the result of run {result.run.key} has a number that is not finite, other than a loss or "
                "a validation; a training that diverges returns a failure instead"
            ) from None
        try:
            _replace(path, text + "\n")
        except OSError as error:
            raise ExperimentError(f"cannot write the result {path}: {error.strerror}") from None
        return path


def _fields(result: Result) -> dict[str, Any]:
    curves = {name: [[step, _or_null(value)] for step, value in getattr(result, name)] for name in _CURVES}
    return asdict(result) | curves


def _or_null(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _replace(path: Path, text: str) -> None:
    """Write beside the path and rename: nobody ever finds half a result, not even after a power cut."""
    beside = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with beside.open("x", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(beside, path)
    except BaseException:  # Ctrl-C too: nothing is left behind
        beside.unlink(missing_ok=True)
        raise


# The fields of a result that are a list of (step, value).
_CURVES = ("validations", "losses")
# The metrics of a task.
_METRICS = {"ranking": ("em", "ew", "em5"), "topk": ("top1", "top5")}


def _result(run: Run, fields: Any) -> Result:
    """Return the result that a file's fields state.

    Raises:
        ValueError: they are not exactly the fields of a result of this run, or contradict each other.
    """
    if not isinstance(fields, dict) or set(fields) != set(Result.__dataclass_fields__):
        raise ValueError(f"its fields are not {', '.join(Result.__dataclass_fields__)}")
    # Compared as text, as for the key: in Python 1 == 1.0 == True.
    if json.dumps(fields["run"], sort_keys=True) != json.dumps(asdict(run), sort_keys=True):
        raise ValueError("it states another run")
    result = Result(
        run=run,
        failure=_text(fields, "failure"),
        test=_metrics(fields, "test", run.task),
        training=_metrics(fields, "training", run.task),
        validations=_curve(fields, "validations"),
        losses=_curve(fields, "losses"),
        seconds=_number(fields["seconds"], "seconds"),
        machine=_text(fields, "machine"),
    )
    if bool(result.failure) == bool(result.test) or (result.failure and result.training):
        raise ValueError("it has neither a failure nor metrics, or both")
    if not result.failure and not any(math.isfinite(score) for _, score in result.validations):
        raise ValueError("it has no failure and no validation")
    return result


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise ValueError(f"{name} is not text")
    return value


def _metrics(fields: dict[str, Any], name: str, task: str) -> dict[str, float]:
    value = fields[name]
    if not isinstance(value, dict):
        raise ValueError(f"{name} is not an object of metrics")
    for metric, share in value.items():
        if metric not in _METRICS[task]:
            raise ValueError(f"{name} has the metric {metric!r}; {task} has {', '.join(_METRICS[task])}")
        if not 0 <= _number(share, name) <= 1:
            raise ValueError(f"{name} has {metric} = {share}, a share is in [0, 1]")
    return value


def _curve(fields: dict[str, Any], name: str) -> tuple[tuple[int, float], ...]:
    value = fields[name]
    if not isinstance(value, list):
        raise ValueError(f"{name} is not a list")
    points = []
    for point in value:
        if not isinstance(point, list) or len(point) != 2 or type(point[0]) is not int:
            raise ValueError(f"{name} has an entry that is no step with its value")
        step, at_step = point
        points.append((step, math.nan if at_step is None else _number(at_step, name)))
    return tuple(points)


def _number(value: object, name: str) -> float:
    """Return a finite number as it is. Python reads NaN and Infinity as JSON; no file of `write` has them."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return value
    raise ValueError(f"{name} has {value!r} where a finite number belongs")
