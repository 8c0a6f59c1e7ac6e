"""`python -m benchmarks`: measure, show, write."""

from __future__ import annotations

from pathlib import Path

import click
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import report
from benchmarks.cases import CASES
from benchmarks.measure import measure


@click.command()
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(__file__).parent / "results",
    show_default="benchmarks/results",
)
@click.option(
    "--only", default="", metavar="TEXT", help="Cases whose name contains TEXT; nothing is written."
)
def main(out: Path, only: str) -> None:
    """Time nsc against its peers on this machine's CPU, with one and two threads."""
    cases = [case for case in CASES if only in case.name]
    if not cases:
        raise click.UsageError(f"no case contains {only!r}; there are: {'; '.join(c.name for c in CASES)}")
    threads = sorted({1, min(2, torch.get_num_threads())})
    timings = []
    # A row of the table is never folded, even where the output is piped.
    console = Console(width=max(120, Console().width))
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("", total=len(cases) * len(threads))
        for case in cases:
            for count in threads:
                progress.update(task, description=f"{case.name}, {count} thread{'s' if count > 1 else ''}")
                timings += measure(case, count)
                progress.advance(task)
    table = Table(title=report.machine(), title_justify="left")
    for column in report.COLUMNS:
        table.add_column(column, no_wrap=True, justify="left" if column in ("work", "peer") else "right")
    for row in report.rows(timings):
        table.add_row(*row)
    console.print(table)
    if not only:
        for file in report.write(out, timings):
            console.print(f"wrote {file}", soft_wrap=True)


if __name__ == "__main__":
    main()
