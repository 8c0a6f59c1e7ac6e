"""`python -m benchmarks.gpu`: check, time, and write after each case."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
import torch

import nsc
from benchmarks.gpu import limits, report
from benchmarks.gpu.building import VARIANTS, Architecture, Builds, Form, Subject, architecture
from benchmarks.gpu.failing import failure
from benchmarks.gpu.jobs import JOBS, Job, Outcome
from benchmarks.gpu.plan import PLAN
from benchmarks.gpu.results import Results, path_of, write
from nsc.runtime.devices.launches import SHARED_KIB
from nsc.wording import count

RESULTS = Path(__file__).parents[1] / "results"
LIMITS = "limits"


@click.command(help="Check the CUDA kernels on this machine's GPU, and time them against their peers.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the results.  [default: benchmarks/results]",
)
@click.option(
    "--only",
    multiple=True,
    metavar="TEXT",
    help="Cases whose name contains TEXT; may be repeated. Without --out nothing is written; with it "
    "these cases replace cases of the same names in its files.",
)
@click.option("--resume", is_flag=True, help="Keep the results in the files, and run the other cases.")
@click.option(
    "--variant",
    "variants",
    multiple=True,
    type=click.Choice(["all", *VARIANTS]),
    help="Time this form of relaxed kernels too, in turn with what is shipped; may be repeated.",
)
@click.option(
    "--build",
    "build_for",
    type=click.Choice([*SHARED_KIB]),
    help="Only build the kernels, for GPUs of this architecture; needs no GPU.",
)
@click.option("--plan", is_flag=True, help="Print the commands of a run in parts of eight minutes.")
def main(
    out: Path | None,
    only: tuple[str, ...],
    resume: bool,
    variants: tuple[str, ...],
    build_for: str | None,
    plan: bool,
) -> None:
    """Run jobs, write after each, and exit with 1 if any of them failed."""
    if plan:
        click.echo(PLAN, nl=False)
        return
    variants = tuple(VARIANTS) if "all" in variants else variants
    jobs = [job for job in JOBS if not only or any(text in job.name for text in only)]
    if not jobs:
        names = "; ".join(job.name for job in JOBS)
        raise click.UsageError(f"no case contains {' or '.join(map(repr, only))}; there are: {names}")
    if resume and only and out is None:
        raise click.UsageError("--resume needs results, --only without --out writes none: state --out too")
    if build_for is not None:
        sys.exit(not _build(jobs, variants, Architecture(build_for, SHARED_KIB[build_for] << 10)))
    if not torch.cuda.is_available():
        raise click.UsageError("torch sees no CUDA device: this benchmark is for machines with a GPU")
    if importlib.util.find_spec("platformdirs") is None:
        os.environ.setdefault("NSC_CACHE_DIR", tempfile.mkdtemp(prefix="nsc-"))
    device = torch.cuda.get_device_name()
    path = None if only and out is None else path_of(out or RESULTS, device)
    results = _stored(path) if path is not None and (only or resume) else None
    run = Run(results or Results(device), path, versions(), variants)
    if not resume:
        run.forget(jobs)
    pending = [job for job in jobs if job.name not in run.results.outcomes]
    if not run.do(pending) and path is not None:
        click.echo("The GPU no longer answers. A new process runs the other cases.")
        options = ["--out", str(path.parent), "--resume"]
        options += [word for text in only for word in ("--only", text)]
        options += [word for name in variants for word in ("--variant", name)]
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.gpu", *options])
    if path is not None:
        click.echo(f"{path}\n{path.with_suffix('.md')}")
    not_run = [job.name for job in jobs if job.name not in run.results.outcomes]
    failures = run.results.failures([LIMITS, *(job.name for job in jobs)])
    for name in not_run:
        click.echo(f"NOT RUN, because the GPU no longer answered: {name}")
    for name, text in failures:
        click.echo(f"FAILED: {name}: {text}")
    click.echo(f"{count(len(jobs) - len(not_run), 'case')} run, {count(len(failures), 'failure')}")
    sys.exit(bool(failures or not_run))


def _needed(jobs: Iterable[Job], variants: Sequence[str]) -> dict[Form, set[str]]:
    """Return what jobs need, each with the types that its exact kernel is built for."""
    needed: dict[Form, set[str]] = {}
    for job in jobs:
        for form in job.forms(variants):
            needed.setdefault(form, set()).update(job.exact)
    return needed


def _build(jobs: Sequence[Job], variants: Sequence[str], target: Architecture) -> bool:
    """Build what jobs need; return whether all of it was built."""
    needed, failures = _needed(jobs, variants), 0
    with Builds(needed, target) as builds:
        for form in needed:
            try:
                build = builds.subject(form).build
                click.echo(f"{form}: {build.text + build.binary:.1f} s")
            except Exception as error:
                failures += 1
                click.echo(f"FAILED: {form}: {failure(error)}")
    click.echo(f"{count(len(needed) - failures, 'kernel')} built, {count(failures, 'failure')}")
    return not failures


def versions() -> str:
    """Return the versions that build and run the kernels."""
    cupy: Any = importlib.import_module("cupy")
    nvrtc = ".".join(map(str, cupy.cuda.nvrtc.getVersion()))
    return f"torch {torch.__version__}, CuPy {cupy.__version__}, NVRTC {nvrtc}, nsc {nsc.__version__}"


def _stored(path: Path) -> Results | None:
    if not path.exists():
        return None
    try:
        return Results.from_json(path.read_text(encoding="utf-8"))
    except (ValueError, KeyError, TypeError) as error:
        raise click.UsageError(f"{path} holds no results of this version ({error}): remove it") from None


@dataclass
class Run:
    """A run of jobs.

    Attributes:
        results: the results so far, with those kept from earlier runs.
        path: the JSON file; None writes nothing.
        versions: the versions that the jobs run with.
        variants: of the kernels, which are timed too.
    """

    results: Results
    path: Path | None
    versions: str
    variants: tuple[str, ...] = ()

    def forget(self, jobs: Iterable[Job]) -> None:
        """Drop earlier results of jobs, and the limits if a job needs them."""
        for job in jobs:
            self.results.outcomes.pop(job.name, None)
            if job.is_timed:
                self.results.outcomes.pop(LIMITS, None)

    def do(self, jobs: Sequence[Job]) -> bool:
        """Run jobs; return whether the GPU still answers."""
        if not jobs:
            return True
        with Builds(_needed(jobs, self.variants), architecture()) as builds:
            for job in jobs:
                if job.is_timed and LIMITS not in self.results.outcomes and not self._keep(self._limits()):
                    return False
                if not self._keep(self._outcome(job, builds)):
                    return False
        return True

    def _limits(self) -> Outcome:
        start = time.perf_counter()
        try:
            self.results.limits = limits.measure()
            click.echo(f"limits: {self.results.limits}")
        except Exception as error:
            return Outcome(LIMITS, (failure(error),))
        return Outcome(LIMITS, seconds=time.perf_counter() - start)

    def _outcome(self, job: Job, builds: Builds) -> Outcome:
        try:
            start = time.perf_counter()
            subject, *variants = (self._subject(form, builds) for form in job.forms(self.variants))
            waited = time.perf_counter() - start
            outcome = job.run(subject, self.results.limits, variants)
        except Exception as error:
            return Outcome(job.name, (failure(error),))
        return replace(outcome, seconds=time.perf_counter() - start - waited)

    def _subject(self, form: Form, builds: Builds) -> Subject:
        subject = builds.subject(form)
        self.results.builds[form] = subject.build
        return subject

    def _keep(self, outcome: Outcome) -> bool:
        """Record, write and print an outcome; return whether the GPU still answers."""
        self.results.outcomes[outcome.name] = replace(outcome, versions=self.versions)
        if self.path is not None:
            write(self.path, self.results, report.markdown(self.results))
        for line in _shown(outcome):
            click.echo(line)
        if not outcome.failures:
            return True
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except Exception:  # after an access to a wrong address, every CUDA call of the process fails
            return False
        return True


def _shown(outcome: Outcome) -> Iterator[str]:
    for text in outcome.failures:
        yield f"FAILED: {outcome.name}: {text}"
    for t in outcome.timings:
        share = report.share_of_limit(t)
        yield (
            f"{outcome.name}, batch {t.batch}: {t.peer} {t.nanoseconds_per_sample:,.1f} ns a sample"
            f"{share and ', '}{share}"
        )
    for launch in outcome.launches:
        yield f"    {launch.share:4.0%}  {launch.launches} × {launch.function}, {launch.blocks} blocks"
    if outcome.memory is not None:
        yield f"{outcome.name}: {outcome.memory:.2f} × P above inputs and outputs"
    if not (outcome.failures or outcome.timings or outcome.memory is not None):
        yield f"{outcome.name}: right ({outcome.seconds:.1f} s)"


if __name__ == "__main__":
    main()
