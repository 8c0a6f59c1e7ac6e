"""`python -m benchmarks.gpu`: check and time in the order of what is learned, and write after each job."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

from benchmarks.gpu import carried, report
from benchmarks.gpu.building import VARIANTS, Architecture, Builds, Form
from benchmarks.gpu.failing import failure
from benchmarks.gpu.jobs import FORMS, JOBS, Job
from benchmarks.gpu.results import Results, path_of
from benchmarks.gpu.running import Run
from benchmarks.gpu.worker import NoAnswerError, Worker
from nsc.runtime.devices.launches import SHARED_KIB
from nsc.wording import count

RESULTS = Path(__file__).parents[1] / "results"


@click.command(help="Check the CUDA kernels on this machine's GPU, and time them against their peers.")
@click.option("--minutes", type=click.FloatRange(min=0), default=8, show_default=True, help="The run's time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results.  [default: benchmarks/results]",
)
@click.option(
    "--continue",
    "earlier",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Keep the results in this JSON file, and run the other jobs.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Jobs whose name contains TEXT; may be repeated. Without --out nothing is written.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice([*VARIANTS]),
    help="Of the forms of relaxed kernels that wait for a decision time this one; may be repeated.",
)
@click.option(
    "--build",
    "build_for",
    type=click.Choice([*SHARED_KIB]),
    help="Only build the kernels, for GPUs of this architecture, into benchmarks/gpu/carried; needs no GPU.",
)
@click.option(
    "--report",
    "reported",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Only write the tables of docs/gpu.md from the results in FOLDER.",
)
def main(
    minutes: float,
    out: Path | None,
    earlier: Path | None,
    only: tuple[str, ...],
    variants: tuple[str, ...],
    build_for: str | None,
    reported: Path | None,
) -> None:
    """Run jobs, write after each, and exit with 1 if any of them failed."""
    begin = time.monotonic()
    if reported is not None:
        report.write_page([Results.of_file(path) for path in sorted(reported.glob("gpu-*.json"))])
        return
    jobs = [
        job
        for job in JOBS
        if (not only or any(text in job.name for text in only))
        and (not variants or job.part != FORMS or set(job.variants) <= set(variants))
    ]
    if not jobs:
        names = "; ".join(job.name for job in JOBS)
        raise click.UsageError(f"no job contains {' or '.join(map(repr, only))}; there are: {names}")
    if earlier is not None and out is not None:
        raise click.UsageError(f"--continue writes to {earlier} itself: leave out --out")
    if build_for is not None:
        sys.exit(not _build(jobs, Architecture(build_for, SHARED_KIB[build_for] << 10)))
    carried.choose()
    sys.exit(not _run(jobs, begin + 60 * minutes, out, earlier, writes=not only or out is not None))


def _run(jobs: Sequence[Job], end: float, out: Path | None, earlier: Path | None, writes: bool) -> bool:
    """Run jobs; return whether none of them failed."""
    worker = Worker()
    try:
        machine = worker.machine()
        path = earlier or path_of(out or RESULTS, machine.device)
        results = Results(machine.device) if earlier is None else Results.of_file(earlier)
        click.echo(f"{machine.device}, {machine.versions}")
        with Builds(_needed(jobs), machine.architecture) as builds:
            run = Run(results, path if writes or earlier else None, worker, builds, end)
            run.do(jobs)
    except NoAnswerError as error:
        raise click.UsageError(str(error)) from None
    finally:
        worker.end()
    if run.path is not None:
        click.echo(f"{path}\n{path.with_suffix('.md')}")
    failures = results.failures(results.outcomes)
    if run.left:
        words = f"--continue {path} runs them" if run.path is not None else "give more --minutes"
        click.echo(f"no time for {count(len(run.left), 'job')}: {words}")
    click.echo(f"{count(len(results.outcomes), 'job')} run, {count(len(failures), 'failure')}")
    return not failures


def _needed(jobs: Iterable[Job]) -> dict[Form, set[str]]:
    """Return what jobs need, each with the types that its exact kernel is built for."""
    needed: dict[Form, set[str]] = {}
    for job in jobs:
        for form in job.forms:
            needed.setdefault(form, set()).update(job.exact)
    return needed


def _build(jobs: Sequence[Job], target: Architecture) -> bool:
    """Build what jobs need; return whether all of it was built, and is small enough to be carried."""
    needed, failures = _needed(jobs), 0
    carried.begin()
    with Builds(needed, target) as builds:
        for form in needed:
            try:
                build = builds.subject(form).build
                click.echo(f"{form}: {build.text + build.binary:.1f} s")
            except Exception as error:
                failures += 1
                click.echo(f"FAILED: {form}: {failure(error)}")
    size = carried.finish()
    click.echo(f"{count(len(needed) - failures, 'kernel')} built, {count(failures, 'failure')}")
    click.echo(f"{carried.FOLDER}: {size / 1e6:.1f} MB, at most {carried.MOST_BYTES / 1e6:.0f}")
    return not failures and size <= carried.MOST_BYTES


if __name__ == "__main__":
    main()
