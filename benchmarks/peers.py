"""The peers: nsc and others, the works of each, its largest size and the reason for that limit."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import diffsort
import torch
from torch import Tensor

import nsc
from benchmarks import cases, indexed
from benchmarks.cases import Case
from benchmarks.networks import network, selector
from nsc.operators.selector import Selector
from nsc.operators.sorter import Sorter

STEEPNESS = 20.0
ART_LAMBDA = 0.25
LEAST_PROBABILITY = 1e-12
K = 8  # how many of the largest values

Call = Callable[[], object]


@dataclass(frozen=True)
class Problem:
    """The inputs of a case, the same for all peers.

    Attributes:
        case: the case.
        op: nsc's operator of the whole network.
        x: (batch, n), requires a gradient.
        ranks: (batch, n), the true ranks of x.
    """

    case: Case
    op: Sorter
    x: Tensor
    ranks: Tensor


@dataclass(frozen=True)
class Peer:
    """An implementation of a work.

    Attributes:
        name: for tables.
        start: takes a problem, returns a function that computes the output of the work.
        widest: most wires, if there is a limit.
        deepest: most layers, if there is a limit.
        why: the reason for the limit.
        module: the module that it needs, if that may be missing.
        own_relaxation: whether it computes another relaxation: then only its times are comparable.
    """

    name: str
    start: Callable[[Problem], Callable[[], Any]]
    widest: int | None = None
    deepest: int | None = None
    why: str = ""
    module: str | None = None
    own_relaxation: bool = False

    def takes(self, case: Case) -> bool:
        """Return whether the peer takes part in a case."""
        return (
            (self.name == "nsc" or not case.alone)
            and (self.widest is None or case.n <= self.widest)
            and (self.deepest is None or network(case.network, case.n).depth <= self.deepest)
            and (self.module is None or importable(self.module))
        )


@dataclass(frozen=True)
class Work:
    """A computation that peers are timed on.

    Attributes:
        peers: its implementations, nsc first.
        differentiated: whether it includes the gradient of x.
        output: the shape of the differentiated output; () is a loss.
    """

    peers: tuple[Peer, ...]
    differentiated: bool = True
    output: Callable[[Case], tuple[int, ...]] = lambda _: ()


@cache
def importable(module: str) -> bool:
    """Return whether a module can be imported; one built for another torch cannot."""
    try:
        importlib.import_module(module)
    except (ImportError, OSError):
        return False
    return True


def pose(case: Case, op: Sorter) -> Problem:
    """Draw the inputs of a case."""
    x = torch.randn(case.batch, case.n)
    return Problem(case, op, x.requires_grad_(), x.detach().argsort(-1).argsort(-1))


def calls(problem: Problem, only: str | None = None) -> dict[str, Call]:
    """Return a call that does the whole work, for each peer that takes part, or for `only` one."""
    case = problem.case
    work = WORKS[case.work]
    shape = work.output(case)
    upstream = torch.randn(shape) if shape else None

    def differentiated(output: Callable[[], Tensor]) -> Call:
        return lambda: torch.autograd.grad(output(), problem.x, upstream)[0]

    peers = [peer for peer in work.peers if peer.takes(case) and only in (None, peer.name)]
    outputs = {peer.name: peer.start(problem) for peer in peers}
    return {name: differentiated(f) if work.differentiated else f for name, f in outputs.items()}


def _selected(
    call: Callable[[Selector, Problem], Any], select: nsc.Selection
) -> Callable[[Problem], Callable[[], Any]]:
    """Return a start that calls the operator of some ranks of the case's network."""

    def start(problem: Problem) -> Callable[[], Any]:
        op = selector(problem.case.network, problem.case.n, select)
        return lambda: call(op, problem)

    return start


def _largest_rows(
    permutation: Callable[[Problem], Callable[[], Tensor]],
) -> Callable[[Problem], Callable[[], Tensor]]:
    """Return a start that computes P and takes its rows for the K largest values, largest first."""

    def start(problem: Problem) -> Callable[[], Tensor]:
        P = permutation(problem)
        return lambda: P()[:, -K:].flip(1)

    return start


def _diffsort(problem: Problem) -> Callable[[], Tensor]:
    """Return P, (batch, n, n); diffsort's own convention is x @ P."""
    case, x = problem.case, problem.x
    sorter = diffsort.DiffSortNet(
        case.network, case.n, steepness=STEEPNESS, art_lambda=ART_LAMBDA, distribution="logistic_phi"
    )
    return lambda: sorter(x)[1].transpose(1, 2)


def _indexed(problem: Problem) -> Callable[[], Tensor]:
    layers, x = indexed.layers_of(network(problem.case.network, problem.case.n)), problem.x
    return lambda: indexed.permutation(layers, x, STEEPNESS, ART_LAMBDA)


def _indexed_values(problem: Problem) -> Callable[[], Tensor]:
    layers, x = indexed.layers_of(network(problem.case.network, problem.case.n)), problem.x
    return lambda: indexed.sort(layers, x, STEEPNESS, ART_LAMBDA)


def _loss_of(
    permutation: Callable[[Problem], Callable[[], Tensor]],
) -> Callable[[Problem], Callable[[], Tensor]]:
    """Return a start that computes P and takes the cross entropy of it."""

    def start(problem: Problem) -> Callable[[], Tensor]:
        rows, P = problem.ranks.unsqueeze(-2), permutation(problem)
        return lambda: -P().gather(-2, rows).clamp_min(LEAST_PROBABILITY).log().mean()

    return start


def _compiled(
    start: Callable[[Problem], Callable[[], Tensor]],
) -> Callable[[Problem], Callable[[], Tensor]]:
    """Return a start through torch.compile, which compiles at the first call, outside the timing.

    It compiles again for each number of threads, half a minute for 10 layers: deeper networks are left out.
    """

    def start_compiled(problem: Problem) -> Callable[[], Tensor]:
        torch.compiler.reset()  # torch keeps only a few sizes of a function
        return torch.compile(start(problem), dynamic=False)

    return start_compiled


def _torchsort(problem: Problem) -> Callable[[], Any]:
    torchsort = importlib.import_module("torchsort")
    return lambda: torchsort.soft_sort(problem.x, regularization_strength=1.0)


DENSE = "a dense n × n matrix per layer, 3 s a call at 1,024 and eight times that at 2,048"
KEPT = "autograd keeps copies of P of every layer, 5 GB at 2,048"
COMPILING = "torch.compile takes half a minute for 10 layers, longer with every layer"

WORKS: dict[str, Work] = {
    cases.P: Work(
        (
            Peer("nsc", lambda p: lambda: p.op.sort_with_permutation(p.x, STEEPNESS)[1]),
            Peer("diffsort", _diffsort, widest=1024, why=DENSE),
            Peer("indexed torch", _indexed, widest=1024, why=KEPT),
            Peer("compiled torch", _compiled(_indexed), deepest=10, why=COMPILING),
        ),
        output=lambda case: (case.batch, case.n, case.n),
    ),
    cases.LOSS: Work(
        (
            Peer("nsc", lambda p: lambda: p.op.cross_entropy(p.x, p.ranks, STEEPNESS)),
            Peer("diffsort", _loss_of(_diffsort), widest=1024, why=DENSE),
            Peer("indexed torch", _loss_of(_indexed), widest=1024, why=KEPT),
        ),
    ),
    cases.VALUES: Work(
        (
            Peer("nsc", lambda p: lambda: p.op.sort(p.x, STEEPNESS)),
            Peer("torchsort", _torchsort, module="torchsort", own_relaxation=True),
            Peer("indexed torch", _indexed_values),
            Peer("compiled torch", _compiled(_indexed_values), deepest=10, why=COMPILING),
        ),
        output=lambda case: (case.batch, case.n),
    ),
    cases.LARGEST_ROWS: Work(
        (
            Peer("nsc", _selected(lambda op, p: op.select_with_rows(p.x, STEEPNESS)[1], nsc.top_k(K))),
            Peer("nsc, whole network", lambda p: lambda: p.op.topk(p.x, K, STEEPNESS)[1]),
            Peer("diffsort", _largest_rows(_diffsort), widest=1024, why=DENSE),
            Peer("indexed torch", _largest_rows(_indexed), widest=1024, why=KEPT),
        ),
        output=lambda case: (case.batch, K, case.n),
    ),
}


def left_out() -> list[str]:
    """Return the peers that cannot be imported here."""
    modules = {peer.module for work in WORKS.values() for peer in work.peers if peer.module}
    return sorted(module for module in modules if not importable(module))
