"""What is measured: works, sizes, and the peers that can do them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import diffsort
import torch
from torch import Tensor

import nsc
from nsc.runtime import reference

STEEPNESS = 20.0
ART_LAMBDA = 0.25

Call = Callable[[], object]


@dataclass(frozen=True)
class Case:
    """One work on one batch.

    Attributes:
        work: a key of WORKS.
        network: a family that all peers of the work know.
        n: values per sample.
        batch: samples per call.
    """

    work: str
    network: str
    n: int
    batch: int

    @property
    def name(self) -> str:
        """The case in words, for tables."""
        return f"{self.work}, {self.network} {self.n}, batch {self.batch}"


def permutation_and_gradient(case: Case) -> dict[str, Call]:
    """P forward, and the gradient of x for a dense gradient of P."""
    x = torch.randn(case.batch, case.n, requires_grad=True)
    upstream = torch.randn(case.batch, case.n, case.n)
    op = nsc.compile(case.network, case.n)
    steepness = torch.full((), STEEPNESS).expand(case.batch)
    peer = diffsort.DiffSortNet(
        case.network, case.n, steepness=STEEPNESS, art_lambda=ART_LAMBDA, distribution="logistic_phi"
    )

    def gradient(P: Tensor) -> Tensor:
        return torch.autograd.grad(P, x, upstream)[0]

    return {
        "nsc": lambda: gradient(op.sort_with_permutation(x, STEEPNESS)[1]),
        "diffsort": lambda: gradient(peer(x)[1].transpose(1, 2)),  # its convention is x @ P
        "indexed torch": lambda: gradient(reference.relax(op.kernel, x, steepness, None, "permutation")[1]),
    }


def cross_entropy_and_gradient(case: Case) -> dict[str, Call]:
    """The loss against true ranks and its gradient; nsc never stores P."""
    x = torch.randn(case.batch, case.n, requires_grad=True)
    ranks = x.detach().argsort(-1).argsort(-1)
    op = nsc.compile(case.network, case.n)
    peer = diffsort.DiffSortNet(
        case.network, case.n, steepness=STEEPNESS, art_lambda=ART_LAMBDA, distribution="logistic_phi"
    )

    def through_P() -> Tensor:
        # diffsort's P[c, r] is the weight of input c at rank r.
        loss = torch.nn.functional.nll_loss(peer(x)[1].clamp_min(1e-12).log().flatten(0, 1), ranks.flatten())
        return torch.autograd.grad(loss, x)[0]

    return {
        "nsc": lambda: torch.autograd.grad(op.cross_entropy(x, ranks, STEEPNESS), x)[0],
        "diffsort": through_P,
    }


def values_and_gradient(case: Case) -> dict[str, Call]:
    """Relaxed sorted values and the gradient of their weighted sum."""
    x = torch.randn(case.batch, case.n, requires_grad=True)
    upstream = torch.randn(case.batch, case.n)
    op = nsc.compile(case.network, case.n)
    steepness = torch.full((), STEEPNESS).expand(case.batch)
    return {
        "nsc": lambda: torch.autograd.grad(op.sort(x, STEEPNESS), x, upstream)[0],
        "indexed torch": lambda: torch.autograd.grad(
            reference.relax(op.kernel, x, steepness, None, "none")[0], x, upstream
        )[0],
    }


def exact_sort(case: Case) -> dict[str, Call]:
    """Exact values and indices."""
    x = torch.randn(case.batch, case.n)
    op = nsc.compile(case.network, case.n)
    return {"nsc": lambda: op.hard_sort(x), "torch.sort": lambda: torch.sort(x)}


WORKS: dict[str, Callable[[Case], dict[str, Call]]] = {
    "P + gradient": permutation_and_gradient,
    "cross entropy + gradient": cross_entropy_and_gradient,
    "values + gradient": values_and_gradient,
    "exact sort": exact_sort,
}

# Batches keep a call of the slowest peer at a few seconds at most.
CASES = (
    *(
        Case("P + gradient", "bitonic", n, batch)
        for n, batch in (
            (4, 100),
            (8, 100),
            (16, 100),
            (32, 100),
            (64, 16),
            (128, 16),
            (256, 4),
            (512, 1),
            (1024, 1),
        )
    ),
    Case("P + gradient", "odd_even", 32, 100),
    Case("P + gradient", "odd_even", 128, 4),
    Case("cross entropy + gradient", "bitonic", 128, 16),
    Case("cross entropy + gradient", "bitonic", 1024, 1),
    Case("values + gradient", "bitonic", 16, 1000),
    Case("values + gradient", "bitonic", 128, 1000),
    Case("values + gradient", "bitonic", 1024, 100),
    Case("exact sort", "merge_exchange", 16, 65536),
    Case("exact sort", "merge_exchange", 64, 65536),
)
