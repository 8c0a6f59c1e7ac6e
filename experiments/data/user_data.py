"""The data of a user's own file: what its read() returns, checked before anything is trained."""

from __future__ import annotations

from pathlib import Path

from experiments.data.records import Data, Part, Source
from experiments.errors import ExperimentError
from experiments.user_files import in_a_line, path_of


def read_users(source: Source, root: Path | None) -> Data:
    """Return what the read() of a user's source returns.

    Args:
        source: its name is the path of the file, which may be followed by "#" and its digest.
        root: the folder for a source that needs one, None for the others.

    Raises:
        ExperimentError: read() raises, or what it returns is no Data or does not fit the source. An
            ExperimentError of read() itself is passed on: it says what to do.
    """
    file = path_of(source.name)
    try:
        data = source.read() if root is None else source.read(root)
    except ExperimentError:
        raise
    except (Exception, SystemExit) as error:  # whatever a user's file raises
        raise ExperimentError(f"{file}: read() raises {in_a_line(error)}") from None
    if not isinstance(data, Data):
        raise ExperimentError(f"{file}: read() must return Data, it returns a value of type {_kind(data)}")
    for name in ("training", "validation", "test"):
        if problem := _problem(getattr(data, name), source, data):
            raise ExperimentError(f"{file}: the {name} part of read() {problem}")
    return data


def _problem(part: object, source: Source, data: Data) -> str:
    """Return what is wrong with a part; "" if nothing is. The training part is looked at first."""
    if not isinstance(part, Part):
        return f"must be a Part, it is of type {_kind(part)}"
    if not len(part.labels):
        return "has no images"
    channels, height, width = part.images.shape[1:]
    if not channels or (height, width) != (source.side, source.side):
        found = f"{channels}×{height}×{width}"
        return f"must have images of side {source.side}, as SOURCE says, found {found}"
    if channels != data.training.images.shape[1]:
        return f"has images of {channels} channels, the training part has {data.training.images.shape[1]}"
    least, most = int(part.labels.min()), int(part.labels.max())
    if least < 0:
        return f"has the label {least}, labels are 0 or more"
    if source.kind == "digits" and most > 9:
        return f"has the label {most}, digits are 0 to 9"
    return ""


def _kind(value: object) -> str:
    return type(value).__name__
