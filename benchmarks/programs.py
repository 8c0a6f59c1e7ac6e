"""Public programs that use diffsort, difftopk or torchsort, as their lines say, and with nsc.compat.

`python -m benchmarks.programs` writes results/programs.md: the time and the peak memory of a loss step of
each, with either package. The tests hold their results together, where the relaxation is the same.

Each program is rebuilt from the lines of its repository that use the package, on random inputs.
"""

from __future__ import annotations

import contextlib
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from benchmarks.fresh import run_fresh
from benchmarks.machine import machine
from benchmarks.report import paragraph
from nsc.atomic import write_whole

RESULTS = Path(__file__).parent / "results" / "programs.md"
# A package, and what stands in its place.
PACKAGES = {"diffsort": "nsc.compat", "difftopk": "nsc.compat.difftopk", "torchsort": "nsc.compat.torchsort"}
ROUNDS, SECONDS = 5, 3.0
# Values of the step that comes before the measured one.
FEW = 6

# The loss of inputs, which get a gradient.
Step = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Program:
    """A program's use of a package.

    Attributes:
        name: the program's, with its repository.
        shape: of its inputs.
        make: takes the package and the number of values, and returns the loss.
        package: a key of PACKAGES.
        is_same: whether what stands in its place has the same relaxation.
    """

    name: str
    shape: tuple[int, ...]
    make: Callable[[Any, int], Step]
    package: str = "diffsort"
    is_same: bool = True


def neco(package: Any, n: int) -> Step:
    """NeCo: patches ordered by their distances should be ordered as the teacher's."""
    device = torch.device("cpu")
    student = package.DiffSortNet("bitonic", n, device=device, steepness=100)
    teacher = package.DiffSortNet("bitonic", n, device=device, steepness=100)

    def loss(scores: Tensor) -> Tensor:
        with torch.no_grad():
            _, wanted = teacher(scores.roll(1, 0) / 10)
        _, found = student(scores / 10)
        return -torch.mean(torch.sum(wanted * torch.log(found + 1e-12), dim=2))

    return loss


def groco(package: Any, n: int) -> Step:
    """GroCo: positives should take the last group of ranks."""
    sorter = package.DiffSortNet(
        sorting_network_type="odd_even",
        interpolation_type="cauchy",
        size=n,
        device="cpu",
        steepness=1,
        art_lambda=0.25,
    )
    sorter.sorting_network = [[m.to("cpu") for m in s] for s in sorter.sorting_network]
    positive = torch.arange(n) >= n - 2

    def loss(scores: Tensor) -> Tensor:
        _, p = sorter(scores)
        share = p[:, positive][:, :, positive].sum(1)
        return torch.nn.functional.binary_cross_entropy(share.clamp(1e-8, 1 - 1e-8), torch.ones_like(share))

    return loss


def diffsurv(package: Any, n: int) -> Step:
    """diffsurv: an item whose event is censored may have any later rank."""
    layers = [[torch.as_tensor(m).float() for m in layer] for layer in package.bitonic_network(n)]
    ranks = torch.arange(n)
    may_have = (ranks.unsqueeze(-1) >= ranks).float()

    def loss(scores: Tensor) -> Tensor:
        _, p = package.functional.execute_sort(layers, scores, steepness=30, distribution="cauchy")
        mass = (may_have * p).sum(1).clamp(1e-8, 1 - 1e-8)
        return torch.nn.functional.binary_cross_entropy(mass, torch.ones_like(mass))

    return loss


def info_cp(package: Any, n: int) -> Step:
    """info_cp: a quantile of conformity scores, trained through; it makes a sorter in every call."""

    def loss(scores: Tensor) -> Tensor:
        sorter = package.DiffSortNet("bitonic", scores.shape[1], steepness=10, device=scores.device)
        values, _ = sorter(scores)
        level = 0.9 * (scores.shape[1] - 1)
        low = int(level)
        return torch.lerp(values[:, low], values[:, low + 1], level - low).mean()

    return loss


def paper(package: Any, n: int) -> Step:
    """The paper's experiments: the binary cross entropy of P and the true permutation."""
    sorter = package.DiffSortNet("odd_even", n, steepness=20, art_lambda=0.25, distribution="logistic_phi")

    def loss(scores: Tensor) -> Tensor:
        _, p = sorter(scores / 10)  # further apart, entries round to 1 and BCELoss cuts them
        truth = torch.eye(n, dtype=p.dtype).expand_as(p)
        return torch.nn.BCELoss()(p.clamp(0, 1), truth)  # type: ignore[no-any-return]

    return loss


def difftopk(package: Any, n: int) -> Step:
    """difftopk: the weights of the largest values, by a network's layers."""
    network = package.networks.bitonic_network(n)
    layers = [[torch.as_tensor(m).float() for m in layer] for layer in network]

    def loss(scores: Tensor) -> Tensor:
        _, p = package.sort(layers, scores, steepness=10, distribution="cauchy")
        return -torch.log(p[:, 0, -5:].sum(-1) + 1e-6).mean()

    return loss


def dftopk(package: Any, n: int) -> Step:
    """DFTopK's list-wise loss: P of the scores against a nearly exact P of the labels, descending."""
    options = {"art_lambda": 0.25, "interpolation_type": None, "distribution": "cauchy"}
    sorter = package.DiffSortNet("odd_even", n, device="cpu", steepness=5, **options)
    exact = package.DiffSortNet("odd_even", n, device="cpu", steepness=1000, **options)

    def loss(scores: Tensor) -> Tensor:
        _, p = sorter(-scores)
        with torch.no_grad():
            _, wanted = exact(-scores.flip(0))
        return -(wanted * torch.log(p + 1e-6)).sum(1).mean()

    return loss


def drpo(package: Any, n: int) -> Step:
    """DRPO's trainer: 1 - NDCG of the softly sorted gains."""
    sorter = package.DiffSortNet(
        sorting_network_type="odd_even",
        size=n,
        steepness=10.0,
        art_lambda=0.25,
        interpolation_type=None,
        distribution="cauchy",
    )

    def loss(scores: Tensor) -> Tensor:
        _, p = sorter(-scores)
        gains = 2 ** torch.linspace(0, 2, n, dtype=p.dtype) - 1
        discounts = 1 / torch.log2(torch.arange(n, dtype=p.dtype) + 2)
        ideal = (gains.flip(0) * discounts).sum()
        return 1 - ((gains @ p) * discounts).sum(-1).div(ideal).mean()

    return loss


def tpu_graph(package: Any, n: int) -> Step:
    """The TPU-graph ranker: configurations in the order of their run times."""
    sorter = package.DiffSortNet(
        sorting_network_type="odd_even", size=n, device="cpu", steepness=10, art_lambda=0.25
    )

    def loss(scores: Tensor) -> Tensor:
        _, p = sorter(scores)
        truth = torch.eye(n, dtype=p.dtype).expand_as(p)
        return torch.nn.functional.binary_cross_entropy(p.clamp(1e-7, 1 - 1e-7), truth)

    return loss


def cifar_100(package: Any, n: int) -> Step:
    """difftopk's training on CIFAR-100: the top-k cross entropy over all classes."""
    loss_fn = package.TopKCrossEntropyLoss(
        diffsort_method="bitonic__non_sparse",  # the other methods of networks need torch-sparse
        inverse_temperature=0.5,
        p_k=[0.2, 0.2, 0.2, 0.2, 0.2],
        n=n,
        m=None,
        distribution="logistic_phi",
        art_lambda=0.5,
        device="cpu",
        top1_mode="smce",
    )

    def loss(scores: Tensor) -> Tensor:
        labels = torch.arange(len(scores)) * 7 % n
        return loss_fn(scores, labels)  # type: ignore[no-any-return]

    return loss


def spearman(package: Any, n: int) -> Step:
    """torchsort's page: 1 - Spearman's correlation of soft ranks with the ranks of a target."""
    target = package.soft_rank(torch.arange(n).float().unsqueeze(0))
    target = target - target.mean()
    target = target / target.norm()

    def loss(scores: Tensor) -> Tensor:
        ranks = package.soft_rank(scores)
        ranks = ranks - ranks.mean(-1, keepdim=True)
        return 1 - (ranks * target).sum(-1).div(ranks.norm(dim=-1)).mean()

    return loss


PROGRAMS = {
    each.make.__name__: each
    for each in (
        Program("NeCo (vpariza/NeCo)", (98, 49), neco),
        Program("GroCo (ninatu/learning_by_sorting)", (64, 12), groco),
        Program("diffsurv (andre-vauvelle/diffsurv)", (8, 128), diffsurv),
        Program("info_cp (Qualcomm-AI-research/info_cp)", (1, 250), info_cp),
        Program("the paper's experiments (Felix-Petersen/diffsort)", (100, 16), paper),
        Program("difftopk's networks (Felix-Petersen/difftopk)", (16, 64), difftopk),
        Program("DFTopK's list-wise loss (zhangzhen97/DFTOPK)", (32, 50), dftopk),
        Program("DRPO's NDCG trainer", (16, 8), drpo),
        Program("the TPU-graph ranker", (4, 100), tpu_graph),
        Program("difftopk's training on CIFAR-100", (128, 100), cifar_100, "difftopk"),
        Program("torchsort's Spearman loss (teddykoker/torchsort)", (128, 32), spearman, "torchsort", False),
    )
}


def package_of(name: str) -> Any:
    """Return a package, with the modules of diffsort that programs read as attributes."""
    with contextlib.redirect_stdout(sys.stderr):  # difftopk prints what it does not find
        package = import_module(name)
    if name in ("diffsort", PACKAGES["diffsort"]):
        for module in ("networks", "functional"):
            import_module(f"{name}.{module}")
    return package


def inputs_of(program: Program, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return the inputs of a program, that need a gradient."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(program.shape, generator=generator, dtype=dtype).requires_grad_()


def gradient(step: Step, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return a program's loss and its gradient."""
    loss = step(scores)
    return loss.detach(), torch.autograd.grad(loss, scores)[0]


def measured(key: str, name: str) -> None:
    """Print the median seconds of a step, and the MB that the steps added to the process, as JSON."""
    torch.set_num_threads(1)
    program, package = PROGRAMS[key], package_of(name)
    few = torch.randn(2, FEW, requires_grad=True)
    gradient(program.make(package, FEW), few)  # loads the code of a step
    scores, times = inputs_of(program), []
    step = program.make(package, program.shape[1])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gradient(step, scores)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    start = perf_counter()
    while len(times) < ROUNDS or perf_counter() - start < SECONDS:
        begin = perf_counter()
        gradient(step, scores)
        times.append(perf_counter() - begin)
    print(json.dumps([median(times), peak / 1024]))


def main() -> None:
    """Measure, and write the page."""
    lines = [
        "| program | shape | before, ms | nsc, ms | nsc is faster | before, MB | nsc, MB |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for key, program in PROGRAMS.items():
        if find_spec(program.package) is None:
            print(f"left out, as {program.package} is not installed: {program.name}")
            continue
        (slow, large), (quick, small) = (
            run_fresh("benchmarks.programs", key, name)
            for name in (program.package, PACKAGES[program.package])
        )
        shape = " × ".join(map(str, program.shape))
        lines.append(
            f"| {program.name} | {shape} | {slow * 1e3:.3g} | {quick * 1e3:.3g} | {slow / quick:.3g}× | "
            f"{large:.3g} | {small:.3g} |"
        )
        print(lines[-1], flush=True)
    head = (
        f"`python -m benchmarks.programs` on {machine()}. A loss step of public programs, forward and "
        "backward, with diffsort 0.2.0, difftopk 0.2.0 or torchsort 0.1.10, and with one import changed; in "
        "place of torchsort stands another relaxation. float32, one thread, medians. Memory "
        "is what a step adds to the peak of a process that has made its network, and has "
        f"done a step with 2 × {FEW} values, so has loaded the code of one."
    )
    write_whole(RESULTS, "\n".join(["# Public programs", "", paragraph(head), "", *lines, ""]))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measured(*sys.argv[1:])
    else:
        main()
