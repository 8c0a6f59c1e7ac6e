"""`python -m benchmarks.columns`: one large sample over processes, which share out the columns of P."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click
import torch
from torch.distributed import ProcessGroup
from torch.testing._internal.distributed.fake_pg import FakeStore

import nsc
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole

RESULTS = Path(__file__).parent / "results" / "columns.md"
PROCESSES = (1, 2, 4)
# Larger groups: one process of them is measured alone, with a process group that exchanges nothing.
LARGER = (8, 64)
ALL_REDUCES = 20


@dataclass(frozen=True)
class Share:
    """What one of several processes takes for a cross entropy and its gradient.

    Attributes:
        loss: the loss.
        gradient: the sum of the gradient's magnitudes.
        seconds: of its processor, for both.
        keys: seconds of its processor for what is not shared out: sorted values and their gradient.
        megabytes: its memory's peak, above what it has before the call.
        all_reduce: seconds by the clock of an all-reduce of n numbers, the median.
    """

    loss: float
    gradient: float
    seconds: float
    keys: float
    megabytes: float
    all_reduce: float


@click.command()
@click.option(
    "--n",
    "sizes",
    type=int,
    multiple=True,
    default=(4096, 16384, 65536),
    show_default=True,
    help="Wires; give it several times.",
)
def main(sizes: tuple[int, ...]) -> None:
    """Measure a cross entropy of one sample and its gradient on 1, 2 and 4 processes of one thread."""
    rows = [_row(n, processes) for n in sizes for processes in (*PROCESSES, *LARGER)]
    head = (
        f"`python -m benchmarks.columns` on {machine()}. One sample of n values through a bitonic network: "
        "the cross entropy against ranks, and its gradient, by processes of one thread that share out the "
        "columns of P. Seconds are of the processor, for the process that takes most; keys are what each "
        "process does for itself. Memory is the largest peak of a process above what it has before. The "
        "all-reduce is one of n numbers, by gloo, by the clock; a call has one of them, and one of "
        f"a number a sample. Of {' and '.join(map(str, LARGER))} processes, one is measured alone, on its "
        "own columns: it has neither the whole loss nor an all-reduce."
    )
    titles = ("n", "processes", "CPU s", "of these keys", "MB", "all-reduce ms", "loss", "gradient")
    lines = [titles, ("---:",) * len(titles), *rows]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    write_whole(RESULTS, f"# Columns over processes\n\n{paragraph(head)}\n\n{table}\n")
    click.echo(f"wrote {RESULTS}")


def _row(n: int, processes: int) -> tuple[str, ...]:
    shares = _shares(n, processes)
    most = {name: max(getattr(each, name) for each in shares) for name in ("seconds", "keys", "megabytes")}
    click.echo(f"n = {n}, processes {processes}: {most['seconds']:.1f} s", err=True)
    cells = (
        f"{n:,}",
        f"{processes}",
        f"{most['seconds']:.2f}",
        f"{most['keys']:.3f}",
        f"{most['megabytes']:.0f}",
    )
    if processes in LARGER:
        return (*cells, "", "", "")
    return (
        *cells,
        f"{1000 * max(each.all_reduce for each in shares):.2f}",
        f"{shares[0].loss:.6f}",
        f"{shares[0].gradient:.5f}",
    )


def _shares(n: int, processes: int) -> list[Share]:
    """Return what each process takes."""
    spawn = get_context("spawn")
    answers = spawn.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        meeting = (Path(folder) / "meeting").as_uri()
        each = [
            spawn.Process(target=_measure, args=(n, rank, processes, meeting, answers))
            for rank in range(1 if processes in LARGER else processes)
        ]
        for process in each:
            process.start()
        for process in each:
            process.join()
        if any(process.exitcode for process in each):
            raise click.ClickException(f"a process of {processes} failed on {n} wires")
        return [answers.get() for _ in each]


def _measure(n: int, rank: int, processes: int, meeting: str, answers: Any) -> None:
    torch.set_num_threads(1)
    if processes in LARGER:
        torch.distributed.init_process_group("fake", store=FakeStore(), rank=rank, world_size=processes)
    else:
        torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=processes)
    group = torch.distributed.group.WORLD
    assert group is not None
    op = nsc.compile("bitonic", n, build=True)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, n, generator=generator).requires_grad_()
    target = torch.randn(1, n, generator=generator).argsort(-1).argsort(-1)
    # Tables, of the keys and of the columns.
    torch.autograd.grad(op.sort(x).sum(), x)
    torch.autograd.grad(op.cross_entropy(x, target, group=group), x)
    start = time.process_time()
    torch.autograd.grad(op.sort(x).sum(), x)
    keys = time.process_time() - start
    before = _megabytes("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    start = time.process_time()
    loss = op.cross_entropy(x, target, group=group)
    (gradient,) = torch.autograd.grad(loss, x)
    seconds, peak = time.process_time() - start, _megabytes("VmHWM")
    answers.put(
        Share(
            loss.item(),
            gradient.double().abs().sum().item(),
            seconds,
            keys,
            peak - before,
            statistics.median(_all_reduce(n, group) for _ in range(ALL_REDUCES)),
        )
    )
    torch.distributed.destroy_process_group()


def _all_reduce(n: int, group: ProcessGroup) -> float:
    numbers = torch.ones(n)
    torch.distributed.barrier(group)
    start = time.perf_counter()
    torch.distributed.all_reduce(numbers, group=group)
    return time.perf_counter() - start


def _megabytes(entry: str) -> float:
    """Return an entry of what Linux says of this process's memory."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    kilobytes = next(line.split()[1] for line in lines if line.startswith(f"{entry}:"))
    return int(kilobytes) / 1024


if __name__ == "__main__":
    sys.exit(main())
