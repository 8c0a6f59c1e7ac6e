"""What type checkers infer of calls; mypy reads this file, nothing runs it.

The last calls are wrong: mypy reports an ignored error that does not occur.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from typing_extensions import assert_type

import nsc


def compiled(select: nsc.Selection | None, options: nsc.Selection) -> None:
    assert_type(nsc.compile("bitonic", 16), nsc.Sorter)
    assert_type(nsc.compile(Path("net.json"), select=None, unproved=True), nsc.Sorter)
    assert_type(nsc.compile([(0, 1)], select=nsc.top_k(1)), nsc.Selector)
    assert_type(nsc.compile("best", n=9, relaxation=nsc.Relaxation("cauchy"), select=options), nsc.Selector)
    either = nsc.compile("bitonic", 16, select=select)
    assert_type(either, nsc.Sorter | nsc.Selector)
    operator: nsc.Operator = either
    assert_type(operator.network, nsc.Network)
    assert_type(operator.proof, nsc.Proof)


def loaded(x: Tensor) -> None:
    operator = nsc.load("generated/bitonic_16")
    assert_type(operator, nsc.Operator | nsc.Filter)
    if isinstance(operator, nsc.Selector):
        assert_type(operator.select_with_rows(x), tuple[Tensor, Tensor])
    elif isinstance(operator, nsc.Sorter):
        assert_type(operator.loss("cross_entropy", x, torch.arange(16)), Tensor)
        assert_type(operator.sort_with_permutation(x, 2.0), tuple[Tensor, Tensor])


def trained(x: Tensor) -> None:
    assert_type(nsc.nn.SortingNetwork("bitonic", 16, learnable=True, art_lambda=0.5).sort(x), Tensor)
    assert_type(nsc.nn.SelectionNetwork("best", 9, select=nsc.median()).select(x), Tensor)
    assert_type(nsc.nn.TopKCrossEntropy(100, (0.5, 0.5), m=16, relaxation="cauchy")(x, x.argmax(-1)), Any)
    assert_type(nsc.nn.TopKCrossEntropy(100, [1]).forward(x, x.argmax(-1)), Tensor)
    assert_type(nsc.nn.NDCGLoss("bitonic", 16, k=10).forward(x, x, lengths=x.argmax(-1)), Tensor)
    assert_type(nsc.nn.Quantile("best", 9, q=(0.25, 0.75), relaxation="cauchy").forward(x, dim=0), Tensor)
    assert_type(nsc.nn.functional.soft_top_k(nsc.compile("bitonic", 16), x, 4), Tensor)
    assert_type(nsc.verify("bitonic", 16, property="median"), nsc.Proof)


def of_any_number(x: Tensor) -> None:
    sizes = nsc.compile_sizes("bitonic", relaxation="cauchy")
    assert_type(sizes, nsc.Sizes)
    assert_type(sizes.sorter(9), nsc.Sorter)
    assert_type(sizes.sort(x, 2.0, dim=0), Any)  # lists of the kind that x is
    assert_type(sizes.topk(x, 2, fill=-1.0), tuple[Tensor, Tensor])
    assert_type(sizes.cross_entropy((x, x.argmax(-1)), x.argsort(-1), label_smoothing=0.1), Tensor)
    assert_type(sizes.loss("cross_entropy", x, relevance=x), Tensor)
    assert_type(nsc.nn.SpearmanLoss().forward(x, x), Tensor)
    assert_type(nsc.nn.OrderLoss(n=16, orders=4).forward(x, x, mask=x > 0), Tensor)
    assert_type(nsc.nn.functional.median(sizes, x), Tensor)


def refused() -> None:
    nsc.compile("bitonic", 16, top_k=8)  # type: ignore[call-overload]
    nsc.compile("bitonic", 16, select="median")  # type: ignore[call-overload]
    nsc.compile("bitonic", 16, nsc.median())  # type: ignore[call-overload]
    nsc.compile("bitonic", "16")  # type: ignore[call-overload]
    nsc.nn.SelectionNetwork("bitonic", 16, top_k=8)  # type: ignore[call-arg]
    nsc.nn.TopKCrossEntropy(100, [1], select=nsc.top_k(1))  # type: ignore[call-arg]
    nsc.nn.Quantile("bitonic", 16)  # type: ignore[call-arg]
    nsc.top_k("8")  # type: ignore[arg-type]
    nsc.compile("bitonic", 16).select(torch.zeros(16))  # type: ignore[attr-defined]
    nsc.compile_sizes("bitonic").topk(torch.zeros(16), "2")  # type: ignore[arg-type]
    nsc.compile_sizes("bitonic").sort(torch.zeros(16), dims=0)  # type: ignore[call-arg]
