"""What can be refused before anything is trained."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import torch

from experiments.data import load
from experiments.errors import ExperimentError
from experiments.run import Run
from experiments.scheduling.outcomes import reason
from experiments.store import Store
from experiments.tables.plan import PlannedPanel
from experiments.training import TASKS
from experiments.user_files import path_of


def check_titles(panels: Sequence[PlannedPanel]) -> None:
    """Refuse rows that could not be told from each other.

    Raises:
        ExperimentError: two methods of a panel have one title.
    """
    for panel in panels:
        seeds: dict[tuple[str, str], set[int]] = {}
        for planned in panel.runs:
            place = planned.row.title, planned.column.title
            if planned.run.seed in seeds.setdefault(place, set()):
                raise ExperimentError(
                    f"two rows have the title {planned.row.title!r}: the methods are the same, or two files "
                    "have one name; leave one out or rename a file"
                )
            seeds[place].add(planned.run.seed)


def check_begun(runs: Iterable[Run], store: Store) -> None:
    """Refuse to choose for the user what becomes of interrupted runs, which may hold days of work.

    Args:
        runs: all that a table may need.
        store: has their checkpoints.

    Raises:
        ExperimentError: a run has a checkpoint and no result.
    """
    begun = {run for run in runs if store.checkpoint(run).exists() and not store.has(run)}
    if begun:
        were = "1 run was" if len(begun) == 1 else f"{len(begun)} runs were"
        them = "it" if len(begun) == 1 else "them"
        raise ExperimentError(
            f"{were} begun in {store.folder}: --resume goes on with {them}, --restart begins {them} anew"
        )


def check_starts(runs: Iterable[Run], root: Path | None) -> None:
    """Start the task of each method at each n once, without a step.

    A network is proved, but no kernel is built. Cost: the data are read once, and about a second for the
    largest networks.

    Args:
        runs: planned runs.
        root: the folder of the data, if it needs one.

    Raises:
        ExperimentError: a method that cannot be used with its data and n.
    """
    distinct = {(run.task, run.data, run.side, run.method, run.n): run for run in runs}.values()
    sources = dict.fromkeys((run.data, run.side) for run in distinct)
    data = {(name, side): load(name, root, side) for name, side in sources}
    for run in distinct:
        try:
            TASKS[run.task](run, data[run.data, run.side], torch.device("cpu"), torch.Generator())
        except ExperimentError:
            raise
        except Exception as error:  # a user's file may raise any kind
            where = f" with n = {run.n}" if run.n > 1 else ""
            raise ExperimentError(
                f"method {path_of(run.method)!r}{where} cannot start: {reason(error)}"
            ) from None
