"""`python -m benchmarks.accuracy`: errors of nsc's losses, and of torch's losses on a stored P."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import nsc
from nsc.atomic import write_whole
from nsc.operators.sorter import Sorter
from nsc.runtime.relaxed import reference

RESULTS = Path(__file__).parent / "results" / "accuracy.md"
# Network, wires, samples.
CASES = [("bitonic", 16, 64), ("odd_even", 16, 64), ("bitonic", 128, 4), ("bitonic", 1024, 1)]
SPREADS = (1, 3, 10)
COLUMNS = ("scores", "loss", "computed", "value off by", "gradient off by", "least cosine", "bad")

Loss = Callable[[Sorter, Tensor, Tensor], Tensor]


def _stored(loss: str) -> Loss:
    """Return torch's loss on a stored P, for each sample; torch cuts logarithms at -100."""

    def losses(op: Sorter, x: Tensor, target: Tensor) -> Tensor:
        P = op.sort_with_permutation(x)[1].clamp(0, 1)
        truth = torch.nn.functional.one_hot(target, op.n).transpose(-1, -2).to(P.dtype)
        if loss == "cross_entropy":
            picked = torch.nn.functional.binary_cross_entropy(P, truth, weight=truth, reduction="none")
            return picked.sum((1, 2)) / op.n
        return torch.nn.functional.binary_cross_entropy(P, truth, reduction="none").mean((1, 2))

    return losses


def _fused(loss: str) -> Loss:
    def losses(op: Sorter, x: Tensor, target: Tensor) -> Tensor:
        return torch.stack([getattr(op, loss)(*sample) for sample in zip(x, target, strict=True)])

    return losses


def _with_gradient(losses: Loss, op: Sorter, x: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    x = x.clone().requires_grad_()
    values = losses(op, x, target)
    (grad,) = torch.autograd.grad(values.sum(), x)
    return values.detach().double(), grad.double()


def _exact(loss: str) -> Loss:
    """Return a loss of the plain torch reference, in float64; tests check it with 50-digit arithmetic."""

    def losses(op: Sorter, x: Tensor, target: Tensor) -> Tensor:
        steepness = torch.full((len(x),), op.default_steepness, dtype=x.dtype)
        return reference.relax(op.kernel, x, steepness, target, loss)[1]

    return losses


def _rows(op: Sorter, batch: int, spread: int) -> Iterator[tuple[str, ...]]:
    x = spread * torch.randn(batch, op.n)
    target = torch.stack([torch.randperm(op.n) for _ in range(batch)])
    for loss in ("cross_entropy", "binary_cross_entropy"):
        exact, exact_grads = _with_gradient(_exact(loss), op, x.double(), target)
        implementations = {
            "nsc, float64": (_fused(loss), x.double()),
            "nsc, float32": (_fused(loss), x),
            "torch on P, float32": (_stored(loss), x),
        }
        for name, (losses, scores) in implementations.items():
            values, grads = _with_gradient(losses, op, scores, target)
            yield (f"{op.name} × {spread}", loss, name, *_errors(values, grads, exact, exact_grads))


def _errors(values: Tensor, grads: Tensor, exact: Tensor, exact_grads: Tensor) -> tuple[str, ...]:
    """Return the worst sample's errors, and the share of samples with a wrong direction or norm."""
    norms, exact_norms = grads.norm(dim=1), exact_grads.norm(dim=1)
    nonzero = exact_norms > 0
    cosines = ((exact_grads * grads).sum(1) / (exact_norms * norms).clamp_min(1e-300))[nonzero]
    errors = ((grads - exact_grads).norm(dim=1) / exact_norms.clamp_min(1e-300))[nonzero]
    bad = (cosines < 0.9999) | ((norms / exact_norms.clamp_min(1e-300))[nonzero].sub(1).abs() > 0.01)
    bad |= ~cosines.isfinite()
    return (
        f"{((values - exact) / exact).abs().max().item():.1e}",
        f"{errors.max().item():.1e}",
        f"{cosines.min().item():.6f}",
        f"{bad.double().mean().item():.0%}",
    )


@click.command()
@click.option(
    "--only", default="", metavar="TEXT", help="Networks whose name contains TEXT; nothing is written."
)
def main(only: str) -> None:
    """Compare losses and gradients with the float64 reference, which tests check with 50-digit arithmetic.

    Scores are N(0, 1) times 1, 3 and 10, targets are random, the steepness is 2 × depth.
    """
    from benchmarks.machine import machine
    from benchmarks.report import paragraph

    cases = [case for case in CASES if only in f"{case[0]}_{case[1]}"]
    if not cases:
        names = ", ".join(f"{network}_{n}" for network, n, _ in CASES)
        raise click.UsageError(f"no network contains {only!r}; there are: {names}")
    torch.manual_seed(0)
    rows: list[tuple[str, ...]] = []
    with Console(stderr=True).status("") as status:
        for network, n, batch in cases:
            op = nsc.compile(network, n, dtypes=("float32", "float64"), name=f"{network}_{n}")
            for spread in SPREADS:
                status.update(f"{op.name} × {spread}")
                rows += _rows(op, batch, spread)
    table = Table(title=machine(), title_justify="left")
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in COLUMNS[:3] else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console = Console(width=max(140, Console().width))
    console.print(table)
    if not only:
        lines = [COLUMNS, (*["---"] * 3, *["---:"] * 4), *rows]
        head = (
            f"`python -m benchmarks.accuracy` on {machine()}. Scores are N(0, 1) "
            "times 1, 3 and 10, targets random, the steepness 2 × depth. Each figure is the worst sample's, "
            "relative to float64 with both tails. Bad is the share of samples whose gradient has a cosine "
            "below 0.9999 or a norm off by more than 1 %. The logarithms of torch's losses are cut at -100, "
            "those of nsc and of the exact value at -80."
        )
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        write_whole(RESULTS, f"# Accuracy of the losses\n\n{paragraph(head)}\n\n{text}\n")
        console.print(f"wrote {RESULTS}", soft_wrap=True)


if __name__ == "__main__":
    main()
