"""`python -m benchmarks.gpu`: the CUDA kernels on this machine's GPU, checked first, then timed.

Needs torch, CuPy, jinja2, networkx, click and numpy, no installation and no network:
`PYTHONPATH=. python -m benchmarks.gpu`. Writes benchmarks/results/DEVICE.json and .md.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import os
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import click
import torch
from torch import Tensor

import nsc
from benchmarks import indexed
from nsc.compiler.codelets import CONE_COLUMNS, work_on_permutation
from nsc.compiler.families import family_network
from nsc.compiler.schedule import schedule
from nsc.runtime import cuda, reference
from nsc.runtime.operator import Operator

DEVICE = "cuda"
STEEPNESS = 20.0
ART_LAMBDA = 0.25
ROUNDS = 11
ROUND_SECONDS = 0.05
# What a peer's call may take of the device's memory; P of a case takes up to P_BYTES.
PEER_BYTES = 16 << 30
P_BYTES = 1 << 30
MOST_SAMPLES = 1 << 16
# Comparators that diffsort's dense matrices can do in a few seconds.
DIFFSORT_WIDEST = 512
# Operations of a mix per column: two products and two fused ones forward; backward the same again to
# recompute, the same for the gradient, and a difference, a difference times it, and a sum over columns.
FORWARD_OPERATIONS = 4
BACKWARD_OPERATIONS = 11
# Relative to the largest entry; float32 through up to a hundred layers. The steepness is low, since the
# logarithm of a probability near 0 hangs on its last bits.
TOLERANCE = 2e-3
CHECKED_STEEPNESS = 2.0

P, P_GRAD, LOSS_GRAD, KEYS, EXACT = "P", "P + gradient", "cross entropy + gradient", "values", "exact sort"
CASES = (
    *(
        (work, n)
        for n in (4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)
        for work in (P, P_GRAD, LOSS_GRAD)
    ),
    *((KEYS, n) for n in (16, 128, 1024)),
    *((EXACT, n) for n in (4, 8, 16, 32, 64, 256)),
)
CHECKED = (
    ("bitonic", 4),
    ("bitonic", 16),
    ("odd_even", 32),
    ("merge_exchange", 33),
    ("bitonic", 128),
    ("bitonic", 1024),
)
ROUTINGS = ("none", "permutation", "route", "transposed", "rows", "cross_entropy", "binary_cross_entropy")

Call = Callable[[], object]


@dataclass(frozen=True)
class Limits:
    """What the device does at best.

    Attributes:
        bytes_per_second: read and written by a copy.
        operations_per_second: float32 fused multiply-adds.
    """

    bytes_per_second: float
    operations_per_second: float


@dataclass(frozen=True)
class Timing:
    """What was measured of one peer on one case.

    Attributes:
        work, n, batch: the case, on a bitonic network.
        peer: who did it.
        seconds: the median time of a call.
        low, high: the quickest and the slowest round.
        share: the limit of arithmetic or memory, whichever is longer, over that time; None for peers.
    """

    work: str
    n: int
    batch: int
    peer: str
    seconds: float
    low: float
    high: float
    share: float | None

    @property
    def nanoseconds_per_sample(self) -> float:
        return self.seconds / self.batch * 1e9


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
    """Check every CUDA kernel against the reference on this GPU, then time it against its peers."""
    cases = [(work, n) for work, n in CASES if only in case_name(work, n)]
    if not cases:
        raise click.UsageError(
            f"no case contains {only!r}; there are: {'; '.join(case_name(*case) for case in CASES)}"
        )
    if not torch.cuda.is_available():
        raise click.UsageError("torch sees no CUDA device: this benchmark is for machines with a GPU")
    if importlib.util.find_spec("platformdirs") is None:
        os.environ.setdefault("NSC_CACHE_DIR", tempfile.mkdtemp(prefix="nsc-"))
    wrong = [problem for network, n in CHECKED for problem in check(network, n)]
    for problem in wrong:
        click.echo(f"WRONG: {problem}")
    if wrong:
        sys.exit(1)
    click.echo(f"checked: {', '.join(f'{network} {n}' for network, n in CHECKED)}")
    limits = measure_limits()
    click.echo(f"limits: {limits}")
    timings = []
    for work, n in cases:
        for timing in measure(work, n, limits):
            timings.append(timing)
            share = "" if timing.share is None else f", {timing.share:.0%} of the limit"
            click.echo(
                f"{case_name(work, n)}, batch {timing.batch}: {timing.peer} "
                f"{timing.nanoseconds_per_sample:,.1f} ns a sample{share}"
            )
    peak = memory_above_outputs(1024, 64)
    click.echo(f"memory above inputs and outputs, P + gradient, n = 1024, batch 64: {peak:.2f} × P")
    if not only:
        for path in write(out, limits, timings, peak):
            click.echo(path)


def case_name(work: str, n: int) -> str:
    """Return a case in words."""
    return f"{work}, bitonic {n}"


# ------------------------------------------------------------------------------------------ checks


@cache
def operator(network: str, n: int) -> Operator:
    """Return the CUDA operator of a family."""
    return nsc.compile(network, n, art_lambda=ART_LAMBDA, targets=("cuda",), unproved=True)


def check(network: str, n: int) -> Iterator[str]:
    """Yield what differs from the plain torch reference: values, what is routed, and all gradients."""
    kernel, batch = operator(network, n).kernel, 3
    torch.manual_seed(0)
    for routing in ROUTINGS:
        x = torch.randn(batch, n, device=DEVICE, requires_grad=True)
        steepness = torch.full((batch,), CHECKED_STEEPNESS, device=DEVICE, requires_grad=True)
        payload = _payload(routing, batch, n)
        wanted = reference.relax(kernel, x, steepness, payload, routing)
        leaves = [x, steepness, *([payload] if payload is not None and payload.requires_grad else [])]
        inputs = x.detach(), steepness.detach(), None if payload is None else payload.detach()
        found = cuda.relax_unchecked(*inputs, routing, kernel.spec)
        grads = [torch.randn_like(t) for t in wanted]
        wanted_grads = torch.autograd.grad(
            [t for t in wanted if t.numel()], leaves, [g for g in grads if g.numel()]
        )
        found_grads = cuda.relax_backward_unchecked(
            grads[0], grads[1] if grads[1].numel() else None, *inputs, routing, kernel.spec
        )
        pairs: dict[str, tuple[Tensor | None, Tensor]] = {"values": (found[0], wanted[0])}
        if routing != "none":
            pairs["routed"] = found[1], wanted[1]
        pairs |= {
            f"gradient {k}": (f, w) for k, (f, w) in enumerate(zip(found_grads, wanted_grads, strict=False))
        }
        for what, (f, w) in pairs.items():
            assert f is not None
            error = _error(f, w.detach())
            if not error <= TOLERANCE:
                yield f"{network} {n}, {routing}, {what}: off by {error:.1e}"
    x = torch.randn(100, n, device=DEVICE).round()
    for a, b in zip(cuda.hard_sort(x, kernel.spec), reference.hard_sort(kernel, x), strict=True):
        if not torch.equal(a, b):
            yield f"{network} {n}, hard_sort differs"


def _payload(routing: str, batch: int, n: int) -> Tensor | None:
    if routing in ("route", "transposed"):
        return torch.randn(batch, n, 3, device=DEVICE, requires_grad=True)
    if routing == "rows":
        return torch.arange(min(2, n), device=DEVICE).expand(batch, -1)
    if routing.endswith("entropy"):
        return torch.rand(batch, n, device=DEVICE).argsort(-1)
    return None


def _error(found: Tensor, wanted: Tensor) -> float:
    scale = wanted.abs().max().clamp_min(1e-6)
    return float((found - wanted).abs().max() / scale)


# ------------------------------------------------------------------------------------------ limits

FMA_SOURCE = r"""
extern "C" __global__ void multiply_add(float *out, int count) {
    float a[8];
    for (int k = 0; k < 8; ++k) a[k] = threadIdx.x + k;
    for (int i = 0; i < count; ++i)
        for (int k = 0; k < 8; ++k) a[k] = a[k] * 0.999f + 0.5f;
    float sum = 0;
    for (int k = 0; k < 8; ++k) sum += a[k];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
"""


def measure_limits() -> Limits:
    """Measure the bandwidth of a copy and the rate of multiply-adds; the best round of each."""
    cupy: Any = importlib.import_module("cupy")
    source = torch.empty(1 << 30, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    copy = min(rounds(lambda: target.copy_(source)))
    kernel = cupy.RawKernel(FMA_SOURCE, "multiply_add")
    blocks, threads, count = 8 * torch.cuda.get_device_properties(0).multi_processor_count, 256, 4096
    out = torch.empty(blocks * threads, device=DEVICE)
    arguments = (cupy.int64(out.data_ptr()), cupy.int32(count))
    # On the default stream, which is torch's current one here and CuPy's.
    fma = min(rounds(lambda: kernel((blocks,), (threads,), arguments)))
    return Limits(2 * source.numel() / copy, blocks * threads * count * 8 / fma)


def limit_seconds(work: str, n: int, batch: int, limits: Limits) -> float:
    """Return the time of a kernel's arithmetic on mixes, or of its inputs and outputs if that is longer."""
    network = family_network("bitonic", n)
    mixes = work_on_permutation(n, schedule(network).codelets).comparators * min(n, CONE_COLUMNS)
    square = 4 * n * n
    operations, size = {
        P: (FORWARD_OPERATIONS * mixes, square),
        P_GRAD: ((FORWARD_OPERATIONS + BACKWARD_OPERATIONS) * mixes, 2 * square),
        LOSS_GRAD: (BACKWARD_OPERATIONS * mixes, 16 * n),
        KEYS: (FORWARD_OPERATIONS * network.size, 8 * n),
        EXACT: (2 * network.size, 16 * n),
    }[work]
    return batch * max(operations / limits.operations_per_second, size / limits.bytes_per_second)


# ------------------------------------------------------------------------------------------ timing


def measure(work: str, n: int, limits: Limits) -> list[Timing]:
    """Return a timing of each peer on a case; they take turns, and one that is out of memory is left out."""
    batch = 1 << 20 if work == EXACT else max(1, min(MOST_SAMPLES, P_BYTES // (4 * n * n)))
    made: dict[str, tuple[int, Call, list[float]]] = {}
    for peer, (size, start) in peers(work, n, batch).items():
        try:
            call = start(size)
            call()
            made[peer] = size, call, []
        except torch.OutOfMemoryError:
            click.echo(f"{case_name(work, n)}: {peer} is out of memory at batch {size}")
    for _ in range(ROUNDS):
        for _, call, seconds in made.values():
            seconds.append(statistics.median(rounds(call, 1)))
    return [
        Timing(
            work,
            n,
            size,
            peer,
            statistics.median(seconds),
            min(seconds),
            max(seconds),
            limit_seconds(work, n, size, limits) / statistics.median(seconds) if peer == "nsc" else None,
        )
        for peer, (size, _, seconds) in made.items()
    ]


def peers(work: str, n: int, batch: int) -> dict[str, tuple[int, Callable[[int], Call]]]:
    """Return who does a work: for each a batch that it has memory for, and how to start it."""
    op = operator("bitonic", n)
    if work == EXACT:
        return {
            "nsc": (batch, lambda size: _on(size, n, op.hard_sort)),
            "torch.sort": (batch, lambda size: _on(size, n, torch.sort)),
        }
    if work == KEYS:
        return {"nsc": (batch, lambda size: _on(size, n, lambda x: op.sort(x, STEEPNESS)))}
    network = family_network("bitonic", n)
    fits = PEER_BYTES // (4 * n * n * 6 * max(1, network.depth))
    layers = indexed.layers_of(network, DEVICE)
    found = {
        "nsc": (
            batch,
            lambda size: _differentiated(work, size, n, lambda x: op.sort_with_permutation(x, STEEPNESS)[1]),
        )
    }
    if work == LOSS_GRAD:
        found["nsc"] = batch, lambda size: _loss(size, n, op)
    if fits:
        found["indexed torch"] = (
            min(batch, fits),
            lambda size: _differentiated(
                work, size, n, lambda x: indexed.permutation(layers, x, STEEPNESS, ART_LAMBDA)
            ),
        )
        if n <= DIFFSORT_WIDEST and importlib.util.find_spec("diffsort") is not None:
            sorter = importlib.import_module("diffsort").DiffSortNet(
                "bitonic",
                n,
                device=DEVICE,
                steepness=STEEPNESS,
                art_lambda=ART_LAMBDA,
                distribution="logistic_phi",
            )
            found["diffsort"] = (
                min(batch, fits),
                lambda size: _differentiated(work, size, n, lambda x: sorter(x)[1].transpose(1, 2)),
            )
    return found


def _on(size: int, n: int, run: Callable[[Tensor], object]) -> Call:
    x = torch.randn(size, n, device=DEVICE)
    return lambda: run(x)


def _loss(size: int, n: int, op: Operator) -> Call:
    x = torch.randn(size, n, device=DEVICE, requires_grad=True)
    ranks = x.detach().argsort(-1).argsort(-1)
    return lambda: torch.autograd.grad(op.cross_entropy(x, ranks, STEEPNESS), x)


def _differentiated(work: str, size: int, n: int, permutation: Callable[[Tensor], Tensor]) -> Call:
    x = torch.randn(size, n, device=DEVICE, requires_grad=work != P)
    if work == P:
        return lambda: permutation(x)
    if work == LOSS_GRAD:
        rows = x.detach().argsort(-1).argsort(-1).unsqueeze(-2)
        return lambda: torch.autograd.grad(-permutation(x).gather(-2, rows).clamp_min(1e-12).log().mean(), x)
    grad = torch.randn(size, n, n, device=DEVICE)
    return lambda: torch.autograd.grad(permutation(x), x, grad)


def rounds(call: Call, count: int = ROUNDS) -> list[float]:
    """Return the seconds of a call, in rounds of many, by CUDA events."""
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]

    def seconds(repeats: int) -> float:
        start.record()
        for _ in range(repeats):
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / repeats

    seconds(1)
    repeats = max(1, int(ROUND_SECONDS / max(seconds(1), 1e-6)))
    return [seconds(repeats) for _ in range(count)]


def memory_above_outputs(n: int, batch: int) -> float:
    """Return the peak memory of P and its backward above inputs and outputs, in sizes of P."""
    op = operator("bitonic", n)
    x = torch.randn(batch, n, device=DEVICE, requires_grad=True)
    grad = torch.randn(batch, n, n, device=DEVICE)
    torch.autograd.grad(op.sort_with_permutation(x, STEEPNESS)[1], x, grad)
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    torch.autograd.grad(op.sort_with_permutation(x, STEEPNESS)[1], x, grad)
    torch.cuda.synchronize()
    size = 4 * batch * n * n
    return (torch.cuda.max_memory_allocated() - before - size) / size


# ------------------------------------------------------------------------------------------ report


def write(folder: Path, limits: Limits, timings: list[Timing], peak: float) -> list[Path]:
    """Write JSON and Markdown named after the device, by renames; return their paths."""
    device = torch.cuda.get_device_name()
    versions = f"torch {torch.__version__}, nsc {nsc.__version__}"
    facts = {
        "device": device,
        "versions": versions,
        "limits": dataclasses.asdict(limits),
        "memory_above_outputs": peak,
        "timings": [dataclasses.asdict(timing) for timing in timings],
    }
    name = re.sub(r"[^a-z0-9]+", "_", device.lower()).strip("_")
    contents = {
        f"{name}.json": json.dumps(facts, indent=1) + "\n",
        f"{name}.md": markdown(device, versions, limits, timings, peak),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for file, text in contents.items():
        (folder / f".{file}.partial").write_text(text, encoding="utf-8")
    for file in contents:
        os.replace(folder / f".{file}.partial", folder / file)
    return [folder / file for file in contents]


def markdown(device: str, versions: str, limits: Limits, timings: list[Timing], peak: float) -> str:
    """Return the report: a table of medians, with nsc's share of the limit and how many times peers take."""
    lines = [
        f"# {device}",
        "",
        f"`python -m benchmarks.gpu` with {versions}. float32, steepness {STEEPNESS:g}, logistic with "
        f"ART {ART_LAMBDA:g}, bitonic. A copy moves {limits.bytes_per_second / 1e9:,.0f} GB/s, "
        f"multiply-adds run at {limits.operations_per_second / 1e12:.1f} T/s. Medians of {ROUNDS} rounds "
        "in which the peers take turns, by CUDA events. Memory above inputs and outputs, P + gradient at "
        f"n = 1024, batch 64: {peak:.2f} × P.",
        "",
        "| work | n | who | batch | ns per sample | low – high | share of the limit | times nsc |",
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    own = {(t.work, t.n): t.nanoseconds_per_sample for t in timings if t.peer == "nsc"}
    for t in timings:
        spread = f"{t.low / t.batch * 1e9:,.1f} – {t.high / t.batch * 1e9:,.1f}"
        share = "" if t.share is None else f"{t.share:.0%}"
        times = "" if t.peer == "nsc" else f"{t.nanoseconds_per_sample / own[t.work, t.n]:,.1f}"
        lines.append(
            f"| {t.work} | {t.n} | {t.peer} | {t.batch:,} | {t.nanoseconds_per_sample:,.1f} | {spread} | "
            f"{share} | {times} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
