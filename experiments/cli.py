"""`python -m experiments`: list, a table, report."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

import click
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
from experiments.data import DATA
from experiments.errors import ExperimentError
from experiments.making import Place, make
from experiments.profiles import PROFILES
from experiments.tables import TABLES
from experiments.tables.plan import Settings, Table
from experiments.writing import report, show, write
from nsc.errors import NscError

RESULTS = Path(__file__).parent / "results"
INTERRUPTED = 130


class _Errors(click.Group):
    """The group of commands; errors that a user can mend are one line."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except NscError as error:
            raise ExperimentError(str(error)) from None
        except KeyboardInterrupt:
            click.echo("stopped; the same command with --resume goes on", err=True)
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
    for title, rows in {
        "Tables": [(t.name, f"{t.title}; {t.source}; data: {' or '.join(t.kinds)}") for t in TABLES.values()],
        "Profiles": [(p.name, p.about) for p in PROFILES.values()],
        "Data": [(s.name, f"{s.title}; {s.kind}; {s.files}") for s in DATA.values()],
        "Methods": [(m.name, f"{m.title}; {m.source}") for m in methods.METHODS.values()],
    }.items():
        grid = Grid(title=title, title_justify="left", show_header=False, box=None, padding=(0, 2, 0, 0))
        for name, text in rows:
            grid.add_row(name, text)
        console.print(grid)
        console.print()
    console.print(methods.GRAMMAR)


def _command(table: Table) -> click.Command:
    """Return the command of a table."""

    @click.command(table.name, help=f"{table.title}: {table.source} of the paper.")
    @click.option("--data", type=click.Choice(list(DATA)), help="Data set.  [default: the profile's]")
    @click.option(
        "--root", type=click.Path(path_type=Path), help="Folder of the data, for sets that need one."
    )
    @click.option("--profile", type=click.Choice(list(PROFILES)), default="quick", show_default=True)
    @click.option("--seeds", type=click.IntRange(1), help="Runs of each cell.  [default: the profile's]")
    @click.option("--method", "names", multiple=True, metavar="NAME", help="Rows; may be repeated; see list.")
    @click.option("--n", "sizes", multiple=True, type=click.IntRange(2), help="Columns; may be repeated.")
    @click.option("--jobs", type=click.IntRange(1), help="Processes.  [default: the processors]")
    @click.option(
        "--scheduler", metavar="ADDRESS", help="Send the runs to the Dask cluster of this scheduler."
    )
    @click.option("--device", default="cpu", show_default=True, help="Device of torch, such as cuda.")
    @click.option("--resume", is_flag=True, help="Runs that were interrupted go on from their checkpoints.")
    @click.option(
        "--out",
        type=click.Path(path_type=Path, file_okay=False),
        default=RESULTS,
        show_default="experiments/results",
    )
    def run(
        data: str | None,
        root: Path | None,
        profile: str,
        seeds: int | None,
        names: tuple[str, ...],
        sizes: tuple[int, ...],
        jobs: int | None,
        scheduler: str | None,
        device: str,
        resume: bool,
        out: Path,
    ) -> None:
        chosen = PROFILES[profile]
        names_of_data = (data,) if data else table.data(chosen)
        for name in names_of_data:
            _check_kind(table, name)
        settings = Settings(chosen, names_of_data, seeds or chosen.seeds, names, sizes)
        place = Place(out, root, device, jobs or os.cpu_count() or 1, scheduler, resume)
        with Progress(*_COLUMNS, console=Console(stderr=True)) as progress:
            bars: dict[str, TaskID] = {}

            def show_progress(what: str, finished: int, total: int) -> None:
                if total and what not in bars:
                    bars[what] = progress.add_task(what, total=total)
                if total:
                    progress.update(bars[what], completed=finished)

            finished = make(table, settings, place, _words(), show_progress)
        Console(highlight=False).print(show(finished))
        for file in write(out, finished):
            click.echo(f"wrote {file}")

    return run


def _check_kind(table: Table, name: str) -> None:
    if DATA[name].kind not in table.kinds:
        known = ", ".join(source.name for source in DATA.values() if source.kind in table.kinds)
        raise click.UsageError(
            f"{table.name} needs {' or '.join(table.kinds)}, {name} has {DATA[name].kind}; known: {known}"
        )


_COLUMNS = (
    TextColumn("{task.description}"),
    BarColumn(),
    MofNCompleteColumn(),
    TimeElapsedColumn(),
    TimeRemainingColumn(),
)


def _words() -> str:
    """Return the command as the user typed it."""
    return shlex.join(["python", "-m", "experiments", *sys.argv[1:]])


for _table in TABLES.values():
    main.add_command(_command(_table))


@main.command("report")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    show_default="experiments/results",
)
def report_(out: Path) -> None:
    """Write one page of all tables in a folder, and print where it is."""
    click.echo(f"wrote {report(out)}")
