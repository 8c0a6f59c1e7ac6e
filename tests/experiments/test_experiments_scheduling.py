"""Runs in processes and on a Dask cluster: whatever dies, every result is there once, and is the same."""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any

import pytest
import torch
from torch_works import train_after_a_death
from works import (
    attempts,
    die_always,
    die_at_first,
    fail,
    grade,
    graded,
    process_of,
    run_of,
    threads,
)

from experiments.data import fingerprint, load
from experiments.errors import ExperimentError
from experiments.making import do
from experiments.run import Result, Run
from experiments.scheduling import execute, processes

pytestmark = pytest.mark.nightly("models are trained, in processes and on a cluster")

ROOT = Path(__file__).parents[2]
RUNS = [run_of(seed) for seed in range(6)]
ONCE = dict.fromkeys(range(6), 1)


class Notes(list[Result]):
    """The results of an execution in order, and the seeds that began."""

    def __init__(self) -> None:
        self.begun: list[int] = []

    @property
    def seeds(self) -> list[int]:
        return sorted(result.run.seed for result in self)


def executed(
    work: Callable[[Run], Result], runs: list[Run] = RUNS, jobs: int = 2, scheduler: str | None = None
) -> Notes:
    notes = Notes()
    execute(
        work,
        runs,
        jobs=jobs,
        scheduler=scheduler,
        done=notes.append,
        begun=lambda run: notes.begun.append(run.seed),
    )
    return notes


def failed(work: Callable[[Run], Result], jobs: int = 2, scheduler: str | None = None) -> tuple[Notes, str]:
    notes = Notes()
    with pytest.raises(ExperimentError) as caught:
        execute(work, RUNS, jobs=jobs, scheduler=scheduler, done=notes.append)
    return notes, caught.value.format_message()


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    """Every execution ends its processes. Those of a cluster belong to the cluster."""
    yield
    assert [process for process in multiprocessing.active_children() if "Dask" not in process.name] == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_run_is_done_once(tmp_path: Path, jobs: int) -> None:
    runs = [*RUNS[:4], RUNS[1], dataclasses.replace(RUNS[2])]
    notes = executed(partial(grade, tmp_path), runs, jobs)
    assert sorted(notes, key=lambda result: result.run.seed) == [graded(run) for run in RUNS[:4]]
    assert notes.begun == [0, 1, 2, 3]
    assert attempts(tmp_path) == dict.fromkeys(range(4), 1)


def test_processes_share_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "cores", lambda: 7)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert {result.machine for result in executed(threads, RUNS[:2], jobs=2)} == {"3"}
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert {result.machine for result in executed(threads, RUNS[:2], jobs=2)} == {"5"}


def test_the_run_of_a_killed_process_is_done_again(tmp_path: Path) -> None:
    notes = executed(partial(die_at_first, tmp_path, 1))
    assert sorted(notes, key=lambda result: result.run.seed) == [graded(run) for run in RUNS]
    assert attempts(tmp_path) == ONCE | {1: 2}
    assert sorted(notes.begun) == [0, 1, 1, 2, 3, 4, 5]


def test_a_run_that_always_kills_fails_alone(tmp_path: Path) -> None:
    notes, message = failed(partial(die_always, tmp_path, 1))
    assert notes.seeds == [0, 2, 3, 4, 5]
    assert attempts(tmp_path) == ONCE | {1: 4}
    assert "1 of 6 runs failed" in message
    assert f"{RUNS[1].key}: {RUNS[1]}" in message
    assert "died 4 times, at last by SIGKILL" in message


@pytest.mark.parametrize("jobs", [1, 2])
def test_failed_work_does_not_stop_the_others(tmp_path: Path, jobs: int) -> None:
    notes, message = failed(partial(fail, tmp_path, (0, 2, 4)), jobs)
    assert notes.seeds == [1, 3, 5]
    assert attempts(tmp_path) == ONCE
    assert message.startswith("3 of 6 runs failed")
    assert re.search(rf"\n  no images at all\n    {RUNS[0].key}: Run\(.*seed=0\)(\n|$)", message)
    others = r"\n  ValueError: a wrong shape \(works.py:\d+\)\n.*seed=[24]\) and 1 more(\n|$)"
    assert re.search(others, message)


def start(folder: Path) -> tuple[subprocess.Popen[str], IO[str]]:
    """Start the command of `works`, and return it with its output once seed 1, which never ends, is alone."""
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "experiments")])
    command = subprocess.Popen(
        [sys.executable, "-c", "import works; works.command()", str(folder)],
        env=os.environ | {"PYTHONPATH": paths},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A shell starts what runs in the background deaf to Ctrl-C, and its children stay so.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert command.stdout is not None
    assert {command.stdout.readline() for _ in range(3)} == {"0\n", "2\n", "3\n"}
    return command, command.stdout


def is_alive(process: int) -> bool:
    """Return whether a process runs; one that nobody has waited for yet does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def wait_for_end(process: int) -> None:
    end = time.monotonic() + 30
    while is_alive(process):
        assert time.monotonic() < end, f"process {process} is left behind"
        time.sleep(0.01)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_no_process_outlives_its_parent(tmp_path: Path) -> None:
    command, _ = start(tmp_path)
    command.kill()
    _, err = command.communicate(timeout=120)
    assert err == ""
    wait_for_end(process_of(tmp_path, 1))


# Dashboards import much and nobody looks.
PLAIN = {
    "scheduler_kwargs": {"dashboard": False},
    "dashboard_address": ":0",
    "worker_dashboard_address": None,
    "threads_per_worker": 1,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(processes=True, n_workers=2, **PLAIN) as cluster:
        yield cluster


def test_trainings_are_the_same_on_a_cluster_when_a_worker_is_killed(tmp_path: Path, cluster: Any) -> None:
    pytest.importorskip("sklearn")
    digits = {
        "data": "digits",
        "data_digest": fingerprint(load("digits")),
        "model": "half",
        "method": "odd_even",
    }
    sizes = {"n": 4, "batch": 2, "steps": 4, "validations": 1, "validation": 20, "test": 20}
    runs = [dataclasses.replace(run_of(seed), **digits, **sizes) for seed in range(3)]
    notes = executed(partial(train_after_a_death, tmp_path), runs, scheduler=cluster.scheduler_address)
    assert notes.seeds == [0, 1, 2]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as the workers have: bits depend on the threads
    try:
        local = {run: do(run, root=None, device="cpu", out=None) for run in runs}
    finally:
        torch.set_num_threads(threads)
    for result in notes:
        assert result.losses == local[result.run].losses
        assert result.test == local[result.run].test


def test_a_cluster_reports_failed_work(tmp_path: Path, cluster: Any) -> None:
    notes, message = failed(partial(fail, tmp_path, (0, 2)), scheduler=cluster.scheduler_address)
    assert notes.seeds == [1, 3, 4, 5]
    assert attempts(tmp_path) == ONCE
    assert "no images at all" in message
    assert "ValueError: a wrong shape (works.py:" in message


def test_a_worker_that_cannot_import_the_work(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module is known to this process alone."""
    elsewhere = types.ModuleType("elsewhere")
    exec("def work(run): return run", vars(elsewhere))
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)
    _, message = failed(vars(elsewhere)["work"], scheduler=cluster.scheduler_address)
    assert "6 of 6 runs failed" in message
    assert re.search(
        r"a worker cannot begin it: ModuleNotFoundError.*elsewhere.*; start workers in a checkout", message
    )


def test_a_scheduler_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("experiments.scheduling.cluster.PATIENCE", 0.5)
    with pytest.raises(ExperimentError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 within"):
        executed(graded, scheduler="tcp://127.0.0.1:9")
