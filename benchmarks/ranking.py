"""`python -m benchmarks.ranking`: losses against their obvious form in torch, and lists of any length.

Writes results/ranking.md. The obvious form takes P from diffsort, which stores it, and works the loss out of
it in torch. Both take turns, forward and backward, on one thread. Lists of lengths that are uniform in 1 … n
take turns with full ones.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import diffsort
import torch
from torch import Tensor

import nsc
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole
from nsc.nn import functional

RESULTS = Path(__file__).parent / "results" / "ranking.md"
SIZES = ((32, 100), (256, 8))
LISTS = ((32, 1000), (128, 64), (128, 256), (256, 64))
ROUNDS, SECONDS = 7, 6.0
STEEPNESS = 10.0

Call = Callable[[], object]


def losses(n: int, batch: int) -> dict[str, tuple[Call, Call]]:
    """Return the calls of nsc and of torch of each loss, forward and backward."""
    op = nsc.compile("bitonic", n, art_lambda=0, build=True)
    net = diffsort.DiffSortNet("bitonic", n, steepness=STEEPNESS, distribution="logistic")
    x = torch.randn(batch, n, requires_grad=True)
    target = torch.rand(batch, n).argsort(-1)
    grades = torch.randint(0, 4, (batch, n))
    shares = torch.rand(batch, n, n).softmax(-2)
    first = (grades.unsqueeze(-2) < grades.unsqueeze(-1)).sum(-1)
    last = (grades.unsqueeze(-2) <= grades.unsqueeze(-1)).sum(-1) - 1
    rows = torch.arange(n).unsqueeze(-1)
    is_in = (first.unsqueeze(-2) <= rows) & (rows <= last.unsqueeze(-2))
    truth = target.unsqueeze(-2) == rows

    relevant = (grades == 3).float()
    gains = grades.exp2() - 1.0
    discounts = 1 / torch.arange(n + 1, 1, -1).log2()  # of the ranks, the last of which is the first position
    ideal = (gains.sort(-1).values * discounts).sum(-1)
    centred = target - (n - 1) / 2

    def p() -> Tensor:
        return net(x)[1].transpose(-1, -2).clamp_min(1e-30)  # type: ignore[no-any-return]

    def routed(items: Tensor) -> Tensor:
        return (p() @ items.unsqueeze(-1)).squeeze(-1)

    def correlation() -> Tensor:
        ranks = (p() * rows).sum(-2) - (n - 1) / 2
        return (ranks * centred).sum(-1) / (ranks.norm(dim=-1) * centred.norm(dim=-1))

    def reciprocal() -> Tensor:
        stops = routed(relevant).flip(-1)
        goes_on = torch.cat([torch.ones(batch, 1), (1 - stops[:, :-1]).cumprod(-1)], -1)
        return (stops * goes_on / torch.arange(1, n + 1)).sum(-1)

    return {
        "cross entropy": (
            lambda: op.cross_entropy(x, target, STEEPNESS),
            lambda: -(p().gather(-2, target.unsqueeze(-2)).log()).mean(),
        ),
        "binary cross entropy": (
            lambda: op.binary_cross_entropy(x, target, STEEPNESS),
            lambda: torch.nn.functional.binary_cross_entropy(p().clamp_max(1), truth.float()),
        ),
        "cross entropy, graded": (
            lambda: op.cross_entropy(x, relevance=grades, steepness=STEEPNESS),
            lambda: -(p() * is_in).sum(-2).log().mean(),
        ),
        "cross entropy, shares": (
            lambda: op.cross_entropy(x, shares, STEEPNESS),
            lambda: -(shares * p().log()).sum(-2).mean(),
        ),
        "Spearman": (
            lambda: functional.spearman_loss(op, x, target, STEEPNESS),
            lambda: (1 - correlation()).mean(),
        ),
        "NDCG": (
            lambda: functional.ndcg_loss(op, x, grades, STEEPNESS),
            lambda: (1 - (routed(gains) * discounts).sum(-1) / ideal).mean(),
        ),
        "precision at 10": (
            lambda: functional.precision_at_k_loss(op, x, relevant, STEEPNESS, k=10),
            lambda: (1 - routed(relevant)[:, -10:].mean(-1)).mean(),
        ),
        "MRR": (
            lambda: functional.mrr_loss(op, x, relevant, STEEPNESS),
            lambda: (1 - reciprocal()).mean(),
        ),
        "median": (
            lambda: functional.median(op, x, STEEPNESS).mean(),
            lambda: net(x)[0][:, n // 2 - 1 : n // 2 + 1].mean(),
        ),
    }


def lists(n: int, batch: int) -> dict[str, tuple[Call, Call]]:
    """Return the calls with full lists, and with lengths that are uniform in 1 … n."""
    op = nsc.compile("bitonic", n, build=True)
    x = torch.randn(batch, n, requires_grad=True)
    lengths = torch.randint(1, n + 1, (batch,))
    grades = torch.randint(0, 4, (batch, n))
    full = x.detach().argsort(-1).argsort(-1)
    within = torch.where(torch.arange(n) < lengths.unsqueeze(-1), x.detach(), torch.inf)
    target = within.argsort(-1).argsort(-1)
    return {
        "cross entropy": (
            lambda: op.cross_entropy(x, full),
            lambda: op.cross_entropy(x, target, lengths=lengths),
        ),
        "cross entropy, graded": (
            lambda: op.cross_entropy(x, relevance=grades),
            lambda: op.cross_entropy(x, relevance=grades, lengths=lengths),
        ),
        "P": (
            lambda: op.sort_with_permutation(x)[1].square().sum(),
            lambda: op.sort_with_permutation(x, lengths=lengths)[1].square().sum(),
        ),
        "values": (lambda: op.sort(x).square().sum(), lambda: op.sort(x, lengths=lengths).square().sum()),
    }


def in_turns(calls: tuple[Call, Call]) -> tuple[float, float]:
    """Return the median seconds of two calls and their backward passes, which take turns."""
    times: tuple[list[float], list[float]] = ([], [])
    start = time.perf_counter()
    while len(times[0]) < ROUNDS or time.perf_counter() - start < SECONDS:
        for call, found in zip(calls, times, strict=True):
            begin = time.perf_counter()
            call().backward()  # type: ignore[attr-defined]
            found.append(time.perf_counter() - begin)
    return median(times[0][1:]), median(times[1][1:])


def main() -> None:
    """Measure, and write the page."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    lines = [
        "| loss | n | batch | nsc, ms | torch, ms | nsc is faster |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, batch in SIZES:
        for name, calls in losses(n, batch).items():
            own, other = in_turns(calls)
            lines.append(
                f"| {name} | {n} | {batch} | {own * 1e3:.3g} | {other * 1e3:.3g} | {other / own:.3g}× |"
            )
            print(lines[-1], flush=True)
    lines += [
        "",
        "| call | n | batch | full lists, ms | lengths 1 … n, ms | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, batch in LISTS:
        for name, calls in lists(n, batch).items():
            in_turns(calls)  # until the kernels of the size classes are built
            full, some = in_turns(calls)
            lines.append(
                f"| {name} | {n} | {batch} | {full * 1e3:.3g} | {some * 1e3:.3g} | {some / full:.2f} |"
            )
            print(lines[-1], flush=True)
    head = (
        f"`python -m benchmarks.ranking` on {machine()}. Forward and backward, float32, one thread, medians. "
        "The first table has losses, and a statistic, against the same of diffsort's P in torch; the second "
        "calls with lengths against calls with full lists."
    )
    write_whole(RESULTS, "\n".join(["# Ranking", "", paragraph(head), "", *lines, ""]))


if __name__ == "__main__":
    main()
