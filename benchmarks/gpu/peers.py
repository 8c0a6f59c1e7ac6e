"""The peers: who does a work, with how large a batch, and by which call."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks import indexed
from benchmarks.gpu.building import ART_LAMBDA, Subject
from benchmarks.gpu.events import DEVICE, Call
from nsc.compiler.families import family_network

STEEPNESS = 20.0
P, P_GRAD, LOSS_GRAD, KEYS = "P", "P + gradient", "cross entropy + gradient", "values"
RANKS = "ranks"
# Samples of a call, and of a step of training.
STEPS = (1, 100, 1024)


@dataclass(frozen=True)
class SoftWork:
    """A work of the relaxed kernels.

    Attributes:
        result: P, P_GRAD, LOSS_GRAD, KEYS or RANKS.
        real: the arithmetic type.
        batch: samples; None: as many as fill the device.
    """

    result: str
    real: str = "float32"
    batch: int | None = None


@dataclass(frozen=True)
class ExactWork:
    """Exact sorting, or the largest values, by the operators.

    Attributes:
        dtype: of the values.
        axis: that is sorted, 0 or 1 of two.
        values_only: whether there are no indices.
        top_k: how many of the largest values; 0: all are sorted.
    """

    dtype: torch.dtype
    axis: int
    values_only: bool = False
    top_k: int = 0

    @property
    def value_bytes(self) -> int:
        """What is read and written for a value."""
        return 2 * self.dtype.itemsize + (0 if self.values_only else 8)


# By the names of works.
SOFT_WORKS = {
    **{result: SoftWork(result) for result in (P, P_GRAD, LOSS_GRAD, KEYS)},
    **{f"{result}, float64": SoftWork(result, real="float64") for result in (P_GRAD, LOSS_GRAD)},
    **{
        f"{result}, batch {batch}": SoftWork(result, batch=batch)
        for batch in STEPS
        for result in (P_GRAD, LOSS_GRAD, RANKS)
    },
}
EXACT_WORKS = {
    "hard_sort, float32": ExactWork(torch.float32, 1),
    "top 4, float32": ExactWork(torch.float32, 1, top_k=4),
    "hard_sort, float32, axis 0": ExactWork(torch.float32, 0),
    "hard_sort, float32, axis 0, values": ExactWork(torch.float32, 0, values_only=True),
    "hard_sort, uint8, axis 0, values": ExactWork(torch.uint8, 0, values_only=True),
}

# The size of P in a case. The call of a peer may take one part in PEER_PARTS of the device's memory.
P_BYTES = 1 << 30
PEER_PARTS = 5
MOST_SAMPLES = 1 << 16
# Up to SMALL wires a call on MOST_SAMPLES is too short to time.
SMALL, MOST_SMALL_SAMPLES = 8, 1 << 20
# Exact sorts take so many values at most.
MOST_VALUES = 1 << 26
# The most wires for which diffsort's dense matrices take a few seconds.
DIFFSORT_WIDEST = 512
NSC = "nsc"


@dataclass(frozen=True)
class Peer:
    """An implementation of a work.

    Attributes:
        name: in the report.
        batch: takes a work and a compiled network, returns how many samples it has memory for; 0 where it
            takes no part.
        start: takes the work, the network and the batch, returns the call that is timed.
    """

    name: str
    batch: Callable[[str, Subject], int]
    start: Callable[[str, Subject, int], Call]


def batch_of(work: str, subject: Subject) -> int:
    """Return the number of samples of a case."""
    n = subject.n
    if work in EXACT_WORKS:
        return min(MOST_SMALL_SAMPLES, MOST_VALUES // n)
    stated = SOFT_WORKS[work].batch
    if stated is not None:
        return min(stated, MOST_SAMPLES)
    most = MOST_SMALL_SAMPLES if n <= SMALL else MOST_SAMPLES
    return max(1, min(most, P_BYTES // (subject.dtype.itemsize * n * n)))


def _nsc(work: str, subject: Subject, batch: int) -> Call:
    op, result = subject.sorter, SOFT_WORKS[work].result
    if result == KEYS:
        x = torch.randn(batch, op.n, device=DEVICE)
        return lambda: op.sort(x, STEEPNESS)
    if result == RANKS:
        x = _scores(batch, subject)[0].detach()
        return lambda: op.rank(x, STEEPNESS)
    if result == LOSS_GRAD:
        x, ranks = _scores(batch, subject)
        return lambda: torch.autograd.grad(op.cross_entropy(x, ranks, STEEPNESS), x)
    return _of_permutation(work, subject, batch, lambda x: op.sort_with_permutation(x, STEEPNESS)[1])


def _in_a_graph(work: str, subject: Subject, batch: int) -> Call:
    """Return the replay of a CUDA graph that captured the call, as a training step may."""
    call = _nsc(work, subject, batch)
    with torch.cuda.stream(torch.cuda.Stream()):  # type: ignore[no-untyped-call]
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return partial(_replay, graph, call)


def _replay(graph: torch.cuda.CUDAGraph, captured: Call) -> None:
    """Replay a graph; the call that it captured owns the tensors that it reads."""
    graph.replay()


def _of_permutation(work: str, subject: Subject, batch: int, permutation: Callable[[Tensor], Tensor]) -> Call:
    """Return the call of a work on the P that `permutation` returns."""
    x, ranks = _scores(batch, subject)
    result = SOFT_WORKS[work].result
    if result in (P, RANKS):
        x, places = x.detach(), torch.arange(subject.n, device=DEVICE, dtype=subject.dtype)
        return (lambda: permutation(x)) if result == P else lambda: places @ permutation(x)
    if result == LOSS_GRAD:
        rows = ranks.unsqueeze(-2)
        return lambda: torch.autograd.grad(-permutation(x).gather(-2, rows).clamp_min(1e-12).log().mean(), x)
    grad = torch.randn(batch, subject.n, subject.n, device=DEVICE, dtype=subject.dtype)
    return lambda: torch.autograd.grad(permutation(x), x, grad)


def _scores(batch: int, subject: Subject) -> tuple[Tensor, Tensor]:
    x = torch.randn(batch, subject.n, device=DEVICE, dtype=subject.dtype, requires_grad=True)
    return x, x.detach().argsort(-1).argsort(-1)


def _reference(subject: Subject) -> Callable[[Tensor], Tensor]:
    layers = indexed.layers_of(family_network(subject.network, subject.n), DEVICE)
    return lambda x: indexed.permutation(layers, x, STEEPNESS, ART_LAMBDA)


def _indexed(work: str, subject: Subject, batch: int) -> Call:
    return _of_permutation(work, subject, batch, _reference(subject))


def _compiled(work: str, subject: Subject, batch: int) -> Call:
    return _of_permutation(work, subject, batch, torch.compile(_reference(subject)))


def _copy(work: str, subject: Subject, batch: int) -> Call:
    """Return a copy of P, which no kernel that writes it is quicker than."""
    source = torch.randn(batch, subject.n, subject.n, device=DEVICE, dtype=subject.dtype)
    return partial(torch.empty_like(source).copy_, source)


def _diffsort(work: str, subject: Subject, batch: int) -> Call:
    sorter = importlib.import_module("diffsort").DiffSortNet(
        subject.network,
        subject.n,
        device=DEVICE,
        steepness=STEEPNESS,
        art_lambda=ART_LAMBDA,
        distribution="logistic_phi",
    )
    return _of_permutation(work, subject, batch, lambda x: sorter(x)[1].transpose(1, 2))


def _hard_sort(work: str, subject: Subject, batch: int) -> Call:
    exact, x = _to_sort(work, subject, batch)
    if exact.top_k:
        return lambda: subject.selector.hard_select(x, exact.axis)
    op = subject.sorter
    if exact.values_only:
        return lambda: op.hard_sort(x, exact.axis, values_only=True)
    return lambda: op.hard_sort(x, exact.axis)


def _sorted_by_torch(work: str, subject: Subject, batch: int) -> Call:
    exact, x = _to_sort(work, subject, batch)
    if exact.top_k:
        return lambda: torch.topk(x, exact.top_k, dim=exact.axis)
    return lambda: torch.sort(x, dim=exact.axis, stable=not exact.values_only)


def _to_sort(work: str, subject: Subject, batch: int) -> tuple[ExactWork, Tensor]:
    exact = EXACT_WORKS[work]
    shape = (batch, subject.n) if exact.axis else (subject.n, batch)
    return exact, torch.rand(shape, device=DEVICE).mul(256).to(exact.dtype)


def _fitting(work: str, subject: Subject) -> int:
    """Return the batch of a peer that keeps six tensors of the size of P for each layer."""
    n, depth = subject.n, family_network(subject.network, subject.n).depth
    properties: Any = torch.cuda.get_device_properties(0)
    each = subject.dtype.itemsize * n * n * 6 * depth
    fitting: int = properties.total_memory // PEER_PARTS // each
    return min(batch_of(work, subject), fitting)


def _fitting_diffsort(work: str, subject: Subject) -> int:
    takes_part = subject.n <= DIFFSORT_WIDEST and importlib.util.find_spec("diffsort") is not None
    return _fitting(work, subject) if takes_part else 0


OWN = Peer(NSC, batch_of, _nsc)
_INDEXED = Peer("indexed torch", _fitting, _indexed)
_OF_PERMUTATION = (OWN, _INDEXED, Peer("diffsort", _fitting_diffsort, _diffsort))
_OF_STEP = (OWN, Peer("nsc in a CUDA graph", batch_of, _in_a_graph), *_OF_PERMUTATION[1:])
_COPY = Peer("a copy of P", batch_of, _copy)
COMPILED = Peer("compiled torch", _fitting, _compiled)
# Work to peers; nsc is the first of each.
PEERS: dict[str, tuple[Peer, ...]] = {
    **{
        work: (_OF_PERMUTATION if soft.batch is None else _OF_STEP) + (_COPY,) * (soft.result == P_GRAD)
        for work, soft in SOFT_WORKS.items()
    },
    KEYS: (OWN,),
    **dict.fromkeys(
        EXACT_WORKS, (Peer(NSC, batch_of, _hard_sort), Peer("torch", batch_of, _sorted_by_torch))
    ),
}
