"""What happens to a run: it begins, it has a result, it fails."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.user_files import in_a_line

# How often a run is done again after its process died. Dask's own default is the same.
AGAIN = 3

Work = Callable[[Run], Result]


@dataclass(frozen=True)
class Failure:
    """A run that has no result, and why."""

    run: Run
    why: str


Events = Generator[Run | Result | Failure, None, None]
"""Each run as it begins, and what came of it."""


def attempt(work: Work, run: Run) -> Result | Failure:
    """Return what came of a run; an error that it raised is a failure."""
    try:
        result = work(run)
        if not isinstance(result, Result):
            raise TypeError(f"the work returns a Result, got {result!r:.80}")
        return result
    except (Exception, SystemExit) as error:  # a user's method may end the process
        return Failure(run, reason(error))


def reason(error: BaseException) -> str:
    """Return an error as one line; one that the user cannot mend has the place where it was raised."""
    if isinstance(error, ExperimentError):
        return error.format_message()
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{in_a_line(error)}{place}"
