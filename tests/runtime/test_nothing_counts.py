"""Catches samples in which nothing counts that change a mean, or have a gradient that is not 0."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from called import METHODS
from torch import Tensor

import nsc
from nsc.nn import functional

N, DOUBLE = 6, torch.float64
# One sample that counts, and two in which nothing does.
EMPTY = torch.tensor([False, True, True])
SORTER = nsc.compile("bitonic", N, dtypes="float64")
SIZES = nsc.compile_sizes("bitonic", dtypes="float64")
SELECTOR = nsc.compile("bitonic", N, select=nsc.top_k(2), dtypes="float64")
RANKS = torch.tensor([[2, 0, 1, 5, 4, 3]]).expand(3, N)
GRADES = torch.tensor([[2, 0, 1, 0, 3, 0]]).expand(3, N)
SHARES = torch.eye(N, dtype=DOUBLE)[RANKS].transpose(-1, -2)
ROWS = SHARES[:, :2]


def _with_labels(name: str, call: Callable[..., Tensor], **fixed: Any) -> Callable[..., Tensor]:
    """Return a loss whose labels are the argument of a name."""
    return lambda x, labels, steepness, **options: call(
        x, steepness=steepness, **{name: labels}, **fixed, **options
    )


def _of_ranking(loss: Callable[..., Tensor], **fixed: Any) -> dict[str, tuple[Any, Tensor, tuple[str, ...]]]:
    name = "target" if loss in (functional.order_loss, functional.spearman_loss) else "relevance"
    at_none = ("lengths", "mask", "weight", "batch")
    counts_always = (functional.order_loss, functional.precision_at_k_loss)
    ways = at_none if loss in counts_always else (*at_none, "labels")
    return {
        f"{loss.__name__}{''.join(f' {value}' for value in fixed.values())} of {type(operator).__name__}": (
            _with_labels(name, partial(loss, operator), **fixed),
            GRADES,
            ways,
        )
        for operator in (SORTER, SIZES)
    }


OF_ITEMS = ("lengths", "mask", "weight", "weight of items", "batch")
LOSSES: dict[str, tuple[Callable[..., Tensor], Tensor | tuple[Tensor, Tensor], tuple[str, ...]]] = {
    **{
        f"{name} of {form} by {type(operator).__name__}": (
            _with_labels(argument, partial(getattr(operator, name)), **fixed),
            labels,
            OF_ITEMS if argument == "relevance" or form == "shares" else (*OF_ITEMS, "-100"),
        )
        for operator in (SORTER, SIZES)
        for name in ("cross_entropy", "binary_cross_entropy")
        for form, argument, labels, fixed in (
            ("ranks", "target", RANKS, {}),
            ("intervals", "target", (RANKS, RANKS), {}),
            ("smoothed ranks", "target", RANKS, {"label_smoothing": 0.1}),
            ("shares", "target", SHARES, {}),
            ("grades", "relevance", GRADES, {}),
        )
        if not (form == "shares" and operator is SIZES)
    },
    **{
        f"{name} of rows": (
            _with_labels("target", getattr(SELECTOR, name)),
            ROWS,
            ("lengths", "mask", "weight", "batch"),
        )
        for name in ("cross_entropy", "binary_cross_entropy")
    },
    **_of_ranking(functional.order_loss),
    **_of_ranking(functional.spearman_loss, orders=3),
    **_of_ranking(functional.spearman_loss),
    **_of_ranking(functional.ndcg_loss),
    **_of_ranking(functional.ndcg_loss, by="ranks"),
    **_of_ranking(functional.mrr_loss),
    **_of_ranking(functional.precision_at_k_loss, k=2),
    "list_rank_loss": (
        lambda x, labels, steepness, **options: (
            functional.list_rank_loss(x, labels, **options) + 0 * steepness
        ),
        GRADES,
        ("lengths", "mask", "weight", "batch"),
    ),
    "top-k cross entropy": (
        lambda x, labels, steepness, reduction: nsc.nn.TopKCrossEntropy(
            N, [0.5, 0.5], network=TOP, reduction="none"
        )._loss(x, labels, steepness, reduction),
        torch.tensor([1, 2, 3]),
        ("batch",),
    ),
}
TOP = nsc.compile("bitonic", N, select=nsc.top_k(2), dtypes="float64")
CASES = [(name, way) for name, (_, _, ways) in LOSSES.items() for way in ways]


def _emptied(labels: Any, way: str) -> tuple[Any, dict[str, Tensor]]:
    """Return labels and options of samples of which the EMPTY ones have nothing that counts."""
    empty = EMPTY.unsqueeze(-1)
    match way:
        case "lengths":
            return labels, {"lengths": torch.where(EMPTY, 0, N)}
        case "mask":
            return labels, {"mask": ~empty.expand(3, N)}
        case "weight":
            return labels, {"weight": torch.where(EMPTY, 0.0, 2.0)}
        case "weight of items":
            return labels, {"weight": torch.where(empty, 0.0, 2.0).expand(3, N)}
        case "labels":
            return torch.where(empty, 0, labels), {}
        case "-100" if isinstance(labels, tuple):
            return tuple(torch.where(empty, -100, each) for each in labels), {}
        case "-100":
            return torch.where(empty, -100, labels), {}
    return labels, {}


def _taken(value: Any, samples: Tensor) -> Any:
    return tuple(_taken(each, samples) for each in value) if isinstance(value, tuple) else value[samples]


def _called(name: str, way: str, samples: Tensor, reduction: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return a loss of some samples, and the gradients of scores and steepness."""
    loss, labels, _ = LOSSES[name]
    labels, options = _emptied(labels, way)
    x = torch.randn(3, N, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))[samples].requires_grad_()
    steepness = torch.tensor(3.0, dtype=DOUBLE, requires_grad=True)
    options = {key: value[samples] for key, value in options.items()}
    value = loss(x, _taken(labels, samples), steepness, reduction=reduction, **options)
    return value, *torch.autograd.grad(value.sum(), (x, steepness))


@pytest.mark.parametrize(("name", "way"), CASES)
def test_nothing_has_the_loss_and_the_gradient_0(name, way):
    samples = torch.tensor([], dtype=torch.int64) if way == "batch" else EMPTY.nonzero().flatten()
    for reduction in ("mean", "sum", "none"):
        value, of_x, of_steepness = _called(name, way, samples, reduction)
        assert value.tolist() == ([0.0] * len(samples) if reduction == "none" else 0)
        assert of_x.eq(0).all()
        assert of_steepness == 0


@pytest.mark.parametrize(("name", "way"), [case for case in CASES if case[1] != "batch"])
def test_nothing_is_not_in_the_mean(name, way):
    alone = _called(name, way, torch.tensor([0]), "mean")
    among = _called(name, way, torch.tensor([1, 0, 2]), "mean")
    assert alone[0] != 0
    for one, other in zip(alone, (among[0], among[1][1:2], among[2]), strict=True):
        torch.testing.assert_close(one, other)
    assert among[1][::2].eq(0).all()


@pytest.mark.parametrize(
    "statistic",
    [
        partial(functional.quantile, q=[0.3, 0.5]),
        functional.median,
        partial(functional.trimmed_mean, proportion=0.2),
        functional.median_absolute_deviation,
    ],
)
@pytest.mark.parametrize("operator", [SORTER, SIZES])
def test_a_statistic_of_nothing_is_nan_and_its_gradient_0(operator, statistic):
    """It has no value, which a caller sees; but the weights of a model stay numbers."""
    x = torch.randn(3, N, dtype=DOUBLE, requires_grad=True)
    steepness = torch.tensor(3.0, dtype=DOUBLE, requires_grad=True)
    found = statistic(operator, x, steepness=steepness, lengths=torch.where(EMPTY, 0, N))
    assert found.isnan().broadcast_to(*found.shape[:-1], 3).eq(EMPTY).all()
    of_x, of_steepness = torch.autograd.grad(found.sum(), (x, steepness))
    assert of_x[EMPTY].eq(0).all()
    assert of_x[~EMPTY].any()
    assert of_steepness.isfinite()


@pytest.mark.parametrize("method", [name for name in METHODS if name != "ranks"])
@pytest.mark.parametrize("operator", [SORTER, SIZES])
def test_results_of_nothing_have_the_gradient_0(operator, method):
    x = torch.randn(3, N, dtype=DOUBLE, requires_grad=True)
    steepness = torch.tensor(3.0, dtype=DOUBLE, requires_grad=True)
    found = METHODS[method](operator, x, steepness=steepness, lengths=torch.zeros(3, dtype=torch.int64))
    grads = torch.autograd.grad(found.sum(), (x, steepness))
    assert all(each.eq(0).all() for each in (found, *grads))
