"""`python -m benchmarks.autocast`: print what bfloat16 autocast costs the gradients of a loss, in Markdown.

A figure is the cosine between the gradient under autocast and the gradient in float32, of the same model on
the same samples, before training: the median over SEEDS.
"""

from __future__ import annotations

from statistics import median

import torch
from torch import Tensor

import nsc

SIZES = (8, 32, 128)
SEEDS = range(5)
SAMPLES, FEATURES, HIDDEN = 100, 16, 64


def main() -> None:
    """Print the table of docs/numbers.md."""
    print(f"| gradient of | trick λ | {' | '.join(f'n = {n}' for n in SIZES)} |")
    print(f"|---|---|{'---:|' * len(SIZES)}")
    for art_lambda in (0.25, 0.0):
        operators = [nsc.compile("bitonic", n, art_lambda=art_lambda, build=True) for n in SIZES]
        for last_in_float32, where in ((False, "all under autocast"), (True, "last layer in float32")):
            found = [[cosines(op, seed, last_in_float32) for seed in SEEDS] for op in operators]
            for place, of in enumerate(("the scores", "the parameters")):
                cells = " | ".join(f"{median(each[place] for each in seeds):.3f}" for seeds in found)
                print(f"| {of}, {where} | {art_lambda:g} | {cells} |")


def cosines(op: nsc.Sorter, seed: int, last_in_float32: bool) -> tuple[float, float]:
    """Return the cosines of the gradients of the scores and of the parameters."""
    torch.manual_seed(seed)
    body = torch.nn.Sequential(
        torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, HIDDEN), torch.nn.ReLU()
    )
    head = torch.nn.Linear(HIDDEN, 1)
    x, ranks = torch.randn(SAMPLES, op.n, FEATURES), torch.rand(SAMPLES, op.n).argsort(-1)
    parameters = [*body.parameters(), *head.parameters()]

    def gradients(is_cast: bool) -> tuple[Tensor, Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_cast):
            hidden = body(x)
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_cast and not last_in_float32):
                scores = head(hidden.float()).squeeze(-1)
            loss = op.cross_entropy(scores, ranks)
        first, *others = torch.autograd.grad(loss, [scores, *parameters])
        return first.double().flatten(), torch.cat([other.double().flatten() for other in others])

    pairs = zip(gradients(is_cast=True), gradients(is_cast=False), strict=True)
    of_scores, of_parameters = (torch.cosine_similarity(a, b, dim=0).item() for a, b in pairs)
    return of_scores, of_parameters


if __name__ == "__main__":
    main()
