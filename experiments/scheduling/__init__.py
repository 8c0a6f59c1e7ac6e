"""Many runs: in processes of this machine, or on a Dask cluster.

A run whose process is killed, by hand or for want of memory, is done again, at most AGAIN times. A run whose
work raises an error is not: it would raise it again. Neither keeps other runs from finishing.

    outcomes   what happens to a run: it begins, it has a result, it fails
    processes  runs in processes of this machine
    cluster    runs on a Dask cluster
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing

from experiments.errors import ExperimentError
from experiments.run import Result, Run
from experiments.scheduling.cluster import on_cluster
from experiments.scheduling.outcomes import Failure, Work
from experiments.scheduling.processes import here, in_processes


def execute(
    work: Work,
    runs: Sequence[Run],
    *,
    jobs: int,
    scheduler: str | None,
    done: Callable[[Result], None],
    begun: Callable[[Run], None] | None = None,
    failed: Callable[[Failure], None] | None = None,
) -> None:
    """Do the work of every run, and hand over each result as soon as it is there.

    Equal runs are done once. Ctrl-C and an error of `done` end the work at once; results that were handed
    over stay with the caller.

    Args:
        work: trains a run. A function of a module, or a `functools.partial` of one: others import it.
        runs: what to do, in the order of beginning.
        jobs: processes of this machine; 1 is this process itself. Each uses its share of the cores, unless
            OMP_NUM_THREADS says otherwise. With a scheduler, jobs has no effect.
        scheduler: address of a Dask scheduler, such as tcp://10.0.0.1:8786, to use instead. Its workers
            import `work` and read the data. Results travel back: no shared file system is needed.
        done: takes each result, in this process, in the order of completion.
        begun: takes each run that begins, in this process; again when it is done again.
        failed: takes each run that has no result, in this process; None: they are raised as one error.

    Raises:
        ExperimentError: no scheduler answers, or it is lost; or, without `failed`, after all other runs
            have finished, some runs failed. The message names them.
    """
    if jobs < 1:
        raise ExperimentError(f"runs need at least 1 process, got jobs {jobs}")
    distinct = list({run.key: run for run in runs}.values())
    if scheduler is not None:
        events = on_cluster(work, distinct, scheduler)
    elif jobs == 1:
        events = here(work, distinct)
    else:
        events = in_processes(work, distinct, jobs)
    failures = []
    with closing(events):  # ends processes as soon as this function is left, whatever the reason
        for event in events:
            if isinstance(event, Failure):
                failures.append(event)
                if failed is not None:
                    failed(event)
            elif isinstance(event, Result):
                done(event)
            elif begun is not None:
                begun(event)
    if failures and failed is None:
        raise ExperimentError(message_of(failures, len(distinct)))


def message_of(failures: Sequence[Failure], runs: int) -> str:
    """Return a message with every reason once, each with its first run.

    Args:
        failures: at least one.
        runs: how many there were, with those that did not fail.
    """
    of_reason: dict[str, list[Run]] = {}
    for failure in failures:
        of_reason.setdefault(failure.why, []).append(failure.run)
    lines = [f"{len(failures)} of {runs} runs failed; the results of all others are kept"]
    for why, failed in of_reason.items():
        more = f" and {len(failed) - 1} more" if len(failed) > 1 else ""
        lines.append(f"  {why}\n    {failed[0].key}: {failed[0]}{more}")
    return "\n".join(lines)
