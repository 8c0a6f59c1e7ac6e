"""`python -m benchmarks.accuracy`: how right the losses are, and torch's on a stored P."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

import nsc
from nsc.operators.sorter import Sorter
from nsc.runtime import reference

RESULTS = Path(__file__).parent / "results" / "accuracy.md"
# Networks with the samples of each.
CASES = [("bitonic", 16, 64), ("odd_even", 16, 64), ("bitonic", 128, 4), ("bitonic", 1024, 1)]
SPREADS = (1, 3, 10)
COLUMNS = ("scores", "loss", "computed", "value off by", "gradient off by", "least cosine", "bad")

Loss = Callable[[Sorter, Tensor, Tensor], Tensor]


def _stored(loss: str) -> Loss:
    """Return a loss as torch has it of a stored P, logarithms cut at -100, for each sample."""

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
    """Return a loss by the plain torch reference, in float64; the tests hold it to 50 digits."""

    def losses(op: Sorter, x: Tensor, target: Tensor) -> Tensor:
        steepness = torch.full((len(x),), op.default_steepness, dtype=x.dtype)
        return reference.relax(op.kernel, x, steepness, target, loss)[1]

    return losses


def _rows(op: Sorter, batch: int, spread: int) -> Iterator[tuple[str, ...]]:
    x = spread * torch.randn(batch, op.n)
    target = torch.stack([torch.randperm(op.n) for _ in range(batch)])
    for loss in ("cross_entropy", "binary_cross_entropy"):
        values, grads = _with_gradient(_exact(loss), op, x.double(), target)
        ways = {
            "nsc, float64": (_fused(loss), x.double()),
            "nsc, float32": (_fused(loss), x),
            "torch on P, float32": (_stored(loss), x),
        }
        for name, (losses, keys) in ways.items():
            found, found_grads = _with_gradient(losses, op, keys, target)
            yield (f"{op.name} × {spread}", loss, name, *_errors(values, grads, found, found_grads))


def _errors(values: Tensor, grads: Tensor, found: Tensor, found_grads: Tensor) -> tuple[str, ...]:
    """Return the worst of the samples, and the share of those whose gradient points or reaches elsewhere."""
    norms, found_norms = grads.norm(dim=1), found_grads.norm(dim=1)
    there = norms > 0
    cosines = ((grads * found_grads).sum(1) / (norms * found_norms).clamp_min(1e-300))[there]
    off = ((found_grads - grads).norm(dim=1) / norms.clamp_min(1e-300))[there]
    bad = (cosines < 0.9999) | ((found_norms / norms.clamp_min(1e-300))[there].sub(1).abs() > 0.01)
    bad |= ~cosines.isfinite()
    return (
        f"{((found - values) / values).abs().max().item():.1e}",
        f"{off.max().item():.1e}",
        f"{cosines.min().item():.6f}",
        f"{bad.double().mean().item():.0%}",
    )


@click.command()
@click.option(
    "--only", default="", metavar="TEXT", help="Networks whose name contains TEXT; nothing is written."
)
def main(only: str) -> None:
    """Compare losses and gradients with float64, which the tests hold to 50 digits.

    Scores are N(0, 1) times 1, 3 and 10, targets are random, the steepness is 2 × depth.
    """
    from benchmarks.report import machine

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
            f"# Accuracy of the losses\n\n`python -m benchmarks.accuracy` on {machine()}. Scores are N(0, 1) "
            "times 1, 3 and 10, targets random, the steepness 2 × depth. Each figure is the worst sample's, "
            "relative to float64 with both tails. Bad is the share of samples whose gradient has a cosine "
            "below 0.9999 or a norm off by more than 1 %. The logarithms of torch's losses are cut at -100, "
            "those of nsc and of the exact value at -80."
        )
        text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        partial = RESULTS.with_suffix(".partial")
        partial.write_text(f"{head}\n\n{text}\n", encoding="utf-8")
        os.replace(partial, RESULTS)
        console.print(f"wrote {RESULTS}", soft_wrap=True)


if __name__ == "__main__":
    main()
