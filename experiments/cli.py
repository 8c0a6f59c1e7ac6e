"""`python -m experiments`: list, a table, report."""

from __future__ import annotations

import importlib
import io
import os
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as Grid

from experiments import methods
from experiments.data import DATA, find, fingerprint, load
from experiments.errors import ExperimentError
from experiments.making import Begun, Place, make
from experiments.methods import classes
from experiments.profiles import PROFILES
from experiments.scheduling import message_of
from experiments.tables import TABLES, runtime
from experiments.tables.plan import Settings, Table
from experiments.writing import report, show, write
from experiments.writing.records import Finished
from nsc.cli.interrupts import INTERRUPTED, raise_instead
from nsc.errors import NscError
from nsc.runtime.devices.threads import cores


class _Folder(click.Path):
    """A folder, in which a leading ~ is the home: shells leave it as it is in --out=~/results."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return super().convert(os.path.expanduser(value), param, ctx)


class _Errors(click.Group):
    """The group of commands; errors that a user can mend are one line."""

    def invoke(self, ctx: click.Context) -> object:
        raise_instead()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a console that has no λ shows "?"
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except NscError as error:
            raise ExperimentError(str(error)) from None
        except KeyboardInterrupt:
            click.echo("stopped", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None


@click.group(cls=_Errors, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """The paper's tables, each by one command.

    Source: Petersen et al., Differentiable Sorting Networks for Scalable Sorting and Ranking Supervision,
    ICML 2021.
    """


@main.command("list")
def list_() -> None:
    """Show the tables, the profiles, the data sets and the methods."""
    console = Console(highlight=False)
    tables = [(t.name, f"{t.title}; {t.source}; of {' or '.join(t.kinds)}") for t in TABLES.values()]
    tables.append((runtime.NAME, f"{runtime.TITLE}; {runtime.SOURCE}"))
    for title, rows in {
        "Tables": tables,
        "Profiles": [(p.name, p.about) for p in PROFILES.values()],
        "Data": [(s.name, f"{s.title}; {s.kind}; {s.files}") for s in DATA.values()],
        "Methods": [(m.name, f"{m.title}; {m.source}") for m in methods.METHODS.values()],
        "Methods of topk": [(name, classes.find(name).title) for name in classes.METHODS],
    }.items():
        grid = Grid(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, text in rows:
            grid.add_row(name, text)
        console.print(grid)
        console.print()
    console.print(methods.GRAMMAR)
    console.print(classes.CLASS_GRAMMAR)


_OUT = click.option(
    "--out",
    type=_Folder(path_type=Path, file_okay=False),
    default="results",
    show_default=True,
    help="Folder of the results.",
)
_METHOD = click.option(
    "--method", "names", multiple=True, metavar="NAME|FILE", help="Rows, see list; may be repeated."
)
_N = click.option("--n", "sizes", multiple=True, type=click.IntRange(2), help="Columns; may be repeated.")
_OPTIONS = (
    click.option("--data", metavar="NAME|FILE.py", help="Data set, see list.  [default: the profile's]"),
    click.option("--root", type=_Folder(path_type=Path), help="Folder of the data, if it needs one."),
    click.option(
        "--profile",
        type=click.Choice(list(PROFILES)),
        default="quick",
        show_default=True,
        help="How long runs are and on what, see list.",
    ),
    click.option("--seeds", type=click.IntRange(1), help="Runs of each cell.  [default: the profile's]"),
    click.option(
        "--most-seeds",
        type=click.IntRange(1),
        help="Runs of cells that cannot be told from the best of their column.  [default: as --seeds]",
    ),
    _METHOD,
    click.option(
        "--jobs",
        type=click.IntRange(1),
        help="Processes.  [default: one a core; on other devices than the CPU 1]",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Send the runs to a Dask cluster."),
    click.option("--device", default="cpu", show_default=True, help="Device of torch, such as cuda."),
    click.option("--resume", is_flag=True, help="Go on with interrupted runs from their checkpoints."),
    click.option("--restart", is_flag=True, help="Begin interrupted runs anew."),
    _OUT,
)


def _command(table: Table) -> click.Command:
    """Return the command of a table of trainings."""

    def run(
        data: str | None,
        root: Path | None,
        profile: str,
        seeds: int | None,
        most_seeds: int | None,
        names: tuple[str, ...],
        jobs: int | None,
        scheduler: str | None,
        device: str,
        resume: bool,
        restart: bool,
        out: Path,
        sizes: tuple[int, ...] = (),
    ) -> None:
        chosen = PROFILES[profile]
        sources = (data,) if data else table.data(chosen)
        for source in sources:
            _check_kind(table, source)
        if scheduler is None:
            _check_device(device)
        elif resume or restart:
            flag = "--resume" if resume else "--restart"
            raise click.UsageError(f"{flag} goes with runs on this machine: a cluster keeps no checkpoints")
        elif jobs:
            raise click.UsageError("--jobs goes with runs on this machine: a cluster has its own workers")
        if resume and restart:
            raise click.UsageError("--resume goes on with interrupted runs, --restart does not: choose one")
        _check_pictures()
        # What is wrong with the data shows before anything is trained.
        data_sets = tuple((source, fingerprint(load(source, root))) for source in sources)
        rows, columns = tuple(dict.fromkeys(names)), _distinct(sizes)
        seeds = seeds or chosen.seeds
        if most_seeds is not None and most_seeds < seeds:
            raise click.UsageError(f"--most-seeds {most_seeds} is less than the {seeds} seeds of every cell")
        settings = Settings(chosen, data_sets, seeds, rows, columns, most_seeds or 0)
        begun: Begun = "resume" if resume else "restart" if restart else "refuse"
        place = Place(out, root, device, jobs or (cores() if device == "cpu" else 1), scheduler, begun)
        _make(table, settings, place)

    wrapped: Callable[..., Any] = run
    for option in reversed((*_OPTIONS, _N) if table.ranks else _OPTIONS):
        wrapped = option(wrapped)
    return click.command(table.name, help=f"{table.title}: {table.source} of the paper.")(wrapped)


def _make(table: Table, settings: Settings, place: Place) -> None:
    """Make a table, write its files and show it.

    Raises:
        click.ClickException: the files are written, but some runs have no result.
    """
    with _progress() as progress:
        bars: dict[str, TaskID] = {}

        def advance(what: str, finished: int, total: int) -> None:
            if total and what not in bars:
                bars[what] = progress.add_task(what, total=total)
            if total:
                progress.update(bars[what], completed=finished, total=total)

        try:
            made = make(table, settings, place, _typed(), advance)
        except KeyboardInterrupt:
            # A cluster keeps no checkpoints.
            rest = "start again for the rest" if place.scheduler else "--resume goes on with what was begun"
            click.echo(f"stopped; what is finished is kept; {rest}", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
    _finish(made.finished, place.out)
    if made.failures:
        why = message_of(made.failures, made.runs)
        raise click.ClickException(f"{why}\nThe same command tries them again.")


for _table in TABLES.values():
    main.add_command(_command(_table))


@main.command(runtime.NAME, help=f"{runtime.TITLE}: {runtime.SOURCE} of the paper.")
@_METHOD
@_N
@_OUT
def runtime_(names: tuple[str, ...], sizes: tuple[int, ...], out: Path) -> None:
    _check_pictures()
    with _progress() as progress:
        task = progress.add_task("", total=None)
        finished = runtime.make(
            tuple(dict.fromkeys(names)),
            _distinct(sizes),
            _typed(),
            lambda work: progress.update(task, description=work),
        )
    _finish(finished, out)


@main.command("report")
@_OUT
def report_(out: Path) -> None:
    """Write one page of all tables in a folder and their pictures, and print where it is."""
    click.echo(f"wrote {report(out)}")


def _finish(finished: Finished, out: Path) -> None:
    """Write a table's files and show it, in this order: whatever the console does, the files are there."""
    files = write(out, finished)
    Console(highlight=False).print(show(finished))
    for file in files:
        click.echo(f"wrote {file}")


def _progress() -> Progress:
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    return Progress(TextColumn("{task.description}", markup=False), *columns, console=Console(stderr=True))


def _check_kind(table: Table, name: str) -> None:
    kind = find(name).kind
    if kind not in table.kinds:
        known = ", ".join(source.name for source in DATA.values() if source.kind in table.kinds)
        raise click.UsageError(
            f"{table.name} needs {' or '.join(table.kinds)}, {name} has {kind}; known: {known}"
        )


def _check_device(device: str) -> None:
    """Refuse a device that torch does not have here, before anything is trained."""
    try:
        torch.ones(1, device=device).add(1).item()
    except Exception as error:  # torch and the backends that it imports raise many kinds
        reason = (str(error).splitlines() or [""])[0]
        if isinstance(error, NotImplementedError | ImportError) or "INTERNAL ASSERT" in reason:
            reason = "this torch does not compute on such a device"
        raise click.UsageError(f"--device {device}: torch cannot use it here: {reason}") from None


def _check_pictures() -> None:
    """Refuse to train for a table whose picture cannot be drawn."""
    try:
        importlib.import_module("matplotlib")
    except ImportError as error:
        raise ExperimentError(
            f"pictures need matplotlib, which cannot be imported ({error}): pip install -e '.[experiments]'"
        ) from None


def _distinct(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(set(sizes)))


def _typed() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["python", "-m", "experiments", *sys.argv[1:]])
