"""A run: the jobs one after another against a clock, with everything that is known on disk after each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing import TimeoutError as BuildTimeoutError
from pathlib import Path

import click

from benchmarks.gpu import report
from benchmarks.gpu.building import Builds, Form, Subject
from benchmarks.gpu.failing import failure
from benchmarks.gpu.jobs import FIRST, PARTS, Job, Outcome, watched
from benchmarks.gpu.results import Results, write
from benchmarks.gpu.tools import SANITIZERS, watch
from benchmarks.gpu.worker import NoAnswerError, Worker

# A job is ended after so many times what it was expected to take, and not before so many seconds.
PATIENCE, LEAST_SECONDS = 4, 20


@dataclass
class Run:
    """A run of jobs.

    Attributes:
        results: the results so far, with those kept from earlier runs.
        path: the JSON file; None writes nothing.
        worker: what runs jobs.
        builds: what compiles networks.
        end: the time of `time.monotonic` at which it ends.
        left: jobs for which there was no time.
    """

    results: Results
    path: Path | None
    worker: Worker
    builds: Builds
    end: float
    left: list[Job] = field(default_factory=list)
    _begin: float = field(default_factory=time.monotonic)
    _watched: set[str] = field(default_factory=set)

    def do(self, jobs: Sequence[Job]) -> None:
        """Run the jobs that are not done and for which there is time."""
        part = -1
        for job in jobs:
            if job.name in self.results.outcomes:
                continue
            if job.part != part:
                part = job.part
                self._say(f"-- {PARTS[part]}")
            self._take(job)

    def _take(self, job: Job) -> None:
        if job.seconds > self._seconds:
            self.left.append(job)
            return
        outcome = self._outcome(job)
        self._keep(outcome)
        if outcome.failures and job.part == FIRST and job.tool is None and job.kind not in self._watched:
            self._watched.add(job.kind)
            for tool in SANITIZERS:
                self._take(watched(job, tool))

    @property
    def _seconds(self) -> float:
        """What is left of the run's time."""
        return self.end - time.monotonic()

    def _outcome(self, job: Job) -> Outcome:
        try:
            subjects = [self._subject(form) for form in job.forms]
            most = min(max(LEAST_SECONDS, PATIENCE * job.seconds), self._seconds)
            if job.tool is not None:
                return watch(job.name, job.tool, most)
            return self.worker.ask(job, subjects, self.results.limits, most)
        except BuildTimeoutError:
            return Outcome(job.name, ("its kernel was not built in time",))
        except (NoAnswerError, RuntimeError) as error:
            return Outcome(job.name, (failure(error),))

    def _subject(self, form: Form) -> Subject:
        subject = self.builds.subject(form, max(0, self._seconds))
        self.results.builds[form] = subject.build
        return subject

    def _keep(self, outcome: Outcome) -> None:
        versions = self.worker.machine().versions
        self.results.outcomes[outcome.name] = replace(outcome, versions=versions)
        if self.path is not None:
            write(self.path, self.results, report.markdown(self.results))
        for line in _shown(outcome):
            self._say(line)

    def _say(self, line: str) -> None:
        click.echo(f"{time.monotonic() - self._begin:4.0f} s  {line}")


def _shown(outcome: Outcome) -> Iterator[str]:
    for text in outcome.failures:
        yield f"FAILED: {outcome.name}: {text}"
    for t in outcome.timings:
        facts = (f"{t.nanoseconds_per_sample:,.1f} ns a sample", report.share_of_limit(t))
        yield f"{outcome.name}, batch {t.batch}: {t.peer} {', '.join(filter(None, facts))}"
    if outcome.limits is not None:
        yield str(outcome.limits)
    if outcome.memory is not None:
        yield f"{outcome.name}: {outcome.memory:.2f} × P above inputs and outputs"
    if outcome.counters:
        yield f"{outcome.name}: {', '.join(f'{word} {number}' for word, number in outcome.counters.items())}"
    if outcome == Outcome(outcome.name, seconds=outcome.seconds):
        yield f"{outcome.name}: right ({outcome.seconds:.1f} s)"
