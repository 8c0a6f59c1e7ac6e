"""`python -m benchmarks`: measure, show, write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks import registers, report
from benchmarks.arithmetic import Arithmetic, measure_arithmetic
from benchmarks.building import BUILDS, build_name, measure_build
from benchmarks.cases import AGAINST_LIMIT, GROUPS
from benchmarks.exact import CASES, ExactTime, measure_exact
from benchmarks.kernels import KernelTime, measure_kernels
from benchmarks.machine import file_name, machine
from benchmarks.measure import measure
from benchmarks.memory import MEMORY_CASES, can_measure, measure_memory, memory_name
from benchmarks.tables import Results, Section, sections


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
@click.option(
    "--registers",
    "wanted",
    type=click.Choice(list(registers.CHOICES)),
    help="Build kernels for these vector registers, in place of the widest that the machine has.",
)
@click.option("--redraw", is_flag=True, help="Measure nothing: draw the pictures of all results again.")
def main(out: Path, only: str, wanted: str | None, redraw: bool) -> None:
    """Measure nsc and its peers on this machine's CPU: time, with one and two threads, memory, builds.

    Results are named by the machine's processor and registers, such as cpu-amd-epyc-7763-avx2.md. They are
    written at the end; an interrupted run leaves the old files as they are.
    """
    if redraw:
        for file in report.redraw(out):
            click.echo(f"wrote {file}")
        return
    sets = registers.available()
    if wanted is None:
        _run(out, only, sets)
    elif wanted not in sets:
        raise click.UsageError(f"kernels cannot be built for {wanted} here, only for {', '.join(sets)}")
    else:
        with registers.built_for(wanted):
            _run(out, only, (wanted,))


def _run(out: Path, only: str, sets: Sequence[str]) -> None:
    """Measure and show; write unless a part alone is measured.

    Args:
        out, only: see `main`.
        sets: the sets of registers for kernels alone; the last one serves everything else.
    """
    name = file_name(sets[-1])
    if not only and (others := report.others(out, name)):
        raise click.UsageError(f"{out / name}.json was measured on {others}: give another folder as --out")
    groups = [group for group in GROUPS if any(only in case.name for case in group)]
    exact_cases = [case for case in CASES if only in case.name]
    memory_cases = [case for case in MEMORY_CASES if only in memory_name(case)] if can_measure() else []
    built_networks = [(network, n) for network, n in BUILDS if only in build_name(network, n)]
    if not groups and not exact_cases and not memory_cases and not built_networks:
        names = [case.name for group in GROUPS for case in group] + [case.name for case in CASES]
        names += [memory_name(case) for case in MEMORY_CASES]
        names += [build_name(network, n) for network, n in BUILDS]
        raise click.UsageError(f"no case contains {only!r}; there are: {'; '.join(names)}")
    cases = [case for case in AGAINST_LIMIT if only in case.name]
    most_threads = min(2, torch.get_num_threads())
    threads = sorted({1, most_threads})
    timings, exact, kernels, peaks, builds = [], list[ExactTime](), list[KernelTime](), [], []
    # The rows of tables are never folded, even if the output is piped.
    console = Console(width=max(200, Console().width))
    with Progress(console=Console(stderr=True)) as progress:
        steps = len(groups) + len(exact_cases) + len(cases) + len(memory_cases) + len(built_networks)
        task = progress.add_task("", total=steps)
        arithmetics = _arithmetics(sets)
        for group in groups:
            others = f" and {len(group) - 1} more" if len(group) > 1 else ""
            progress.update(task, description=group[0].name + others)
            timings += measure(group, threads)
            progress.advance(task)
        for each in exact_cases:
            progress.update(task, description=each.name)
            exact += measure_exact(each, threads)
            progress.advance(task)
        for case in cases:
            progress.update(task, description=f"kernels of {case.name}")
            kernels += measure_kernels(case, sets)
            again = _arithmetics(sets)
            arithmetics = {each: limit.or_better(again[each]) for each, limit in arithmetics.items()}
            progress.advance(task)
        for case in memory_cases:
            progress.update(task, description=memory_name(case))
            peaks += measure_memory(case, most_threads)
            progress.advance(task)
        for network, n in built_networks:
            progress.update(task, description=build_name(network, n))
            builds.append(measure_build(network, n))
            progress.advance(task)
    results = Results(timings, arithmetics, kernels, peaks, builds, exact)
    console.print(machine())
    for section in sections(results):
        console.print(_table(section))
    if not only:
        for file in report.write(out, name, results):
            console.print(f"wrote {file}", soft_wrap=True)


def _arithmetics(sets: Sequence[str]) -> dict[str, Arithmetic]:
    limits = {}
    for each in sets:
        with registers.built_for(each):
            limits[each] = measure_arithmetic()
    return limits


def _table(section: Section) -> Table:
    table = Table(title=section.title, title_justify="left", caption=section.text, caption_justify="left")
    for place, column in enumerate(section.columns):
        table.add_column(column, no_wrap=True, justify="left" if place < section.left else "right")
    for row in section.rows:
        table.add_row(*row)
    return table


if __name__ == "__main__":
    main()
