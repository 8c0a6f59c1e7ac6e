"""What users call with a tensor, kind by kind: the columns of the table of torch modes.

A public method of an operator, a module of nsc.nn or nsc.compat, and whatever else takes tensors, is in one
of COLUMNS, as a function of x alone. Payloads and the steepness are made of x, so that the derivative in x
covers theirs.
"""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import nsc
from nsc.compat import DiffSortNet
from nsc.compat.difftopk import DiffTopkNet, TopKCrossEntropyLoss
from nsc.compat.torchsort import soft_rank, soft_sort
from nsc.nn import (
    ListRankLoss,
    Median,
    MedianAbsoluteDeviation,
    MedianFilter2d,
    MRRLoss,
    NDCGLoss,
    OrderLoss,
    PrecisionAtK,
    Quantile,
    RankFilter2d,
    SelectionNetwork,
    SoftTopK,
    SortingNetwork,
    SpearmanLoss,
    TopKCrossEntropy,
    TrimmedMean,
)

N = 3
BOTH = ("float32", "float64")
# Losses of rankings, and statistics, as modules: what each needs beside its network.
LOSSES_AND_STATISTICS: dict[type[Any], dict[str, Any]] = {
    SpearmanLoss: {},
    NDCGLoss: {"k": 3},
    OrderLoss: {},
    PrecisionAtK: {"k": 2},
    MRRLoss: {"k": 2},
    Quantile: {"q": 0.3},
    Median: {},
    TrimmedMean: {"proportion": 0.3},
    MedianAbsoluteDeviation: {},
    SoftTopK: {"k": 2},
}


# Methods of a sorter as functions of it and of x, of which payloads and shares are made too.
METHODS: dict[str, Callable[..., Tensor]] = {
    "sort": lambda op, x, **lists: op.sort(x, **lists),
    "sort_with_permutation": lambda op, x, **lists: op.sort_with_permutation(x, **lists)[1],
    "rank": lambda op, x, **lists: op.rank(x, **lists),
    "route": lambda op, x, **lists: op.route(x, torch.stack([x.sin(), x.cos()], -1), **lists),
    "topk": lambda op, x, **lists: op.topk(x, 2, **lists)[1],
    "top_k_weights": lambda op, x, **lists: op.top_k_weights(x, 2, **lists),
    "ranks": lambda op, x, **lists: op.cross_entropy(x, x.argsort(-1).argsort(-1), **lists),
    "relevance": lambda op, x, **lists: op.cross_entropy(x, relevance=(3 * x.detach()).round(), **lists),
    "shares": lambda op, x, **lists: op.loss(
        "binary_cross_entropy", x, x.unsqueeze(-1).mul(x.unsqueeze(-2)).sigmoid(), **lists
    ),
}


@dataclass(frozen=True)
class Call:
    """A call of a subject, an operator or a module, with x."""

    name: str
    subject: Any
    call: Callable[[Any, Tensor], Any]


@dataclass(frozen=True)
class Column:
    """A kind of things.

    Attributes:
        heading: in the table of docs/torch-modes.md.
        make: returns its calls, on subjects that were not called before where they can be.
        shape: of x; the first axis is that of samples.
    """

    heading: str
    make: Callable[[], list[Call]]
    shape: tuple[int, ...] = (2, N)

    def program(self) -> Program:
        return Program(self.make())


class Program(torch.nn.Module):
    """The calls of a column, as one module: x to a tuple of tensors."""

    def __init__(self, calls: list[Call]) -> None:
        super().__init__()
        self.calls = [(each.call, f"subject{place}") for place, each in enumerate(calls)]
        for (_, name), each in zip(self.calls, calls, strict=True):
            setattr(self, name, each.subject)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(joined(call(getattr(self, name), x)) for call, name in self.calls)


def joined(result: Any) -> Tensor:
    """Return values and the rows of P beside them, or other results, as one tensor; without indices."""
    if isinstance(result, Tensor):
        return result
    values, other = result
    return torch.cat((values.unsqueeze(-1), other), -1) if other.dim() > values.dim() else values


# What torch.fx traces cannot be looked at.
torch.fx.wrap("joined")


def dense(x: Tensor) -> Tensor:
    """Return x, of which operands are made; or in its place, where it has no dense memory, another tensor."""
    if isinstance(x, Tensor) and (x.layout is not torch.strided or x.is_nested or x.is_quantized):
        return torch.zeros(2, N)
    return x


def steepness(x: Tensor) -> Tensor:
    return 1 + dense(x).square().mean()


def payload(x: Tensor) -> Tensor:
    return torch.stack((dense(x).square(), 1 - dense(x)), -1)


def ranks(x: Tensor) -> Tensor:
    """Return 2, 0, 1 for each sample, by operations alone, which take tensors of every kind."""
    return torch.ones_like(dense(x), dtype=torch.int64).cumsum(-1).add(1).remainder(N)


def some(x: Tensor) -> Tensor:
    """Return a mask of two entries of each sample."""
    return ranks(x) < 2


def shares(x: Tensor) -> Tensor:
    return dense(x).unsqueeze(-1).mul(dense(x).unsqueeze(-2)).sigmoid()


def weights(x: Tensor) -> Tensor:
    return 1.0 + ranks(x)


def labels(x: Tensor) -> Tensor:
    return torch.ones_like(dense(x)[..., 0], dtype=torch.int64)


def exactly(result: Any) -> Tensor:
    """Return values where they stand, each times its place, so that wrong places show."""
    values, indices = result
    return values * (1 + indices)


def _sorter() -> list[Call]:
    op = nsc.compile("bitonic", N, dtypes=BOTH)
    calls: dict[str, Callable[[Any, Tensor], Any]] = {
        "sort": lambda op, x: op.sort(x, steepness(x)),
        "sort_with_permutation": lambda op, x: op.sort_with_permutation(x, steepness(x)),
        "rank": lambda op, x: op.rank(x, 2.0),
        "route": lambda op, x: op.route(x, payload(x), steepness(x)),
        "topk": lambda op, x: op.topk(x, 2),
        "top_k_weights": lambda op, x: op.top_k_weights(x, 2, steepness(x)),
        "sort_with_permutation, of some": lambda op, x: op.sort_with_permutation(x, mask=some(x)),
        "topk, of some": lambda op, x: op.topk(x, 2, mask=some(x)),
    }
    return [Call(f"Sorter.{name.split(',')[0]}", op, call) for name, call in calls.items()]


def _losses() -> list[Call]:
    op = nsc.compile("bitonic", N, dtypes=BOTH)
    calls: dict[str, Callable[[Any, Tensor], Any]] = {
        "loss": lambda op, x: op.loss("cross_entropy", x, ranks(x)),
        "cross_entropy": lambda op, x: op.cross_entropy(x, ranks(x), steepness(x)),
        "binary_cross_entropy": lambda op, x: op.binary_cross_entropy(x, ranks(x), steepness(x)),
        "cross_entropy, smoothed": lambda op, x: op.cross_entropy(x, ranks(x), 2.0, label_smoothing=0.1),
        "cross_entropy, relevance": lambda op, x: op.cross_entropy(
            x, relevance=ranks(x).clamp_max(1), mask=some(x)
        ),
        "binary_cross_entropy, shares": lambda op, x: op.binary_cross_entropy(
            x, shares(x), weight=weights(x), reduction="none"
        ),
    }
    return [Call(f"Sorter.{name.split(',')[0]}", op, call) for name, call in calls.items()]


def _sizes() -> list[Call]:
    sizes = nsc.compile_sizes("bitonic", dtypes=BOTH)
    calls: dict[str, Callable[[Any, Tensor], Any]] = {
        "sort": lambda sizes, x: sizes.sort(x, steepness(x)),
        "sort_with_permutation": lambda sizes, x: sizes.sort_with_permutation(x, steepness(x)),
        "rank": lambda sizes, x: sizes.rank(x, mask=some(x)),
        "route": lambda sizes, x: sizes.route(x, payload(x), 2.0),
        "topk": lambda sizes, x: sizes.topk(x, 4, steepness(x)),
        "top_k_weights": lambda sizes, x: sizes.top_k_weights(x, 2),
        "loss": lambda sizes, x: sizes.loss("binary_cross_entropy", x, ranks(x), mask=ranks(x) >= 0),
        "cross_entropy": lambda sizes, x: sizes.cross_entropy(x, ranks(x), steepness(x)),
        "binary_cross_entropy": lambda sizes, x: sizes.binary_cross_entropy(x, shares(x), weight=weights(x)),
    }
    return [Call(f"Sizes.{name}", sizes, call) for name, call in calls.items()]


def _selector() -> list[Call]:
    op = nsc.compile("bitonic", N, select=nsc.top_k(2), dtypes=BOTH)
    calls: dict[str, Callable[[Any, Tensor], Any]] = {
        "select": lambda op, x: op.select(x, steepness(x)),
        "select_with_rows": lambda op, x: op.select_with_rows(x),
        "select_with_rows, of some": lambda op, x: op.select_with_rows(x, mask=some(x)),
        "route": lambda op, x: op.route(x, payload(x), steepness(x)),
        "loss": lambda op, x: op.loss("cross_entropy", x, shares(x)[..., :2, :], steepness(x)),
        "cross_entropy": lambda op, x: op.cross_entropy(x, shares(x)[..., :2, :]),
        "binary_cross_entropy": lambda op, x: op.binary_cross_entropy(
            x, shares(x)[..., :2, :], mask=some(x), reduction="none"
        ),
    }
    return [Call(f"Selector.{name.split(',')[0]}", op, call) for name, call in calls.items()]


def _exact() -> list[Call]:
    sorter, selector = nsc.compile("bitonic", N), nsc.compile("bitonic", N, select=nsc.top_k(2))
    return [
        Call("Sorter.hard_sort", sorter, lambda op, x: exactly(op.hard_sort(x))),
        Call("Sorter.hard_sort", sorter, lambda op, x: op.hard_sort(x, descending=True, values_only=True)),
        Call("Sizes.hard_sort", nsc.compile_sizes(), lambda sizes, x: exactly(sizes.hard_sort(x))),
        Call("Selector.hard_select", selector, lambda op, x: exactly(op.hard_select(x))),
        Call("Selector.hard_select", selector, lambda op, x: op.hard_select(x, values_only=True)),
        Call("Selector.hard_select", selector, lambda op, x: exactly(op.hard_select(x, mask=some(x)))),
    ]


def _filter() -> list[Call]:
    return [
        Call("Filter.__call__", nsc.compile_filter(2, 2), lambda op, x: op(x)),
        Call("Filter.__call__", nsc.compile_filter((1, 3), 0), lambda op, x: op(x, "constant", 0.25, (0, 1))),
        Call(
            "Filter.__call__", nsc.compile_filter(footprint=[[1, 0, 1, 1]]), lambda op, x: op(x, mask=some(x))
        ),
    ]


def _relaxed_filter() -> list[Call]:
    return [
        Call("Filter.relaxed", nsc.compile_filter((1, 2), 1), functools.partial(_relaxed, mode))
        for mode in ("nearest", "mirror", "constant")
    ]


def _relaxed(mode: str, op: Any, x: Tensor) -> Tensor:
    return op.relaxed(x, steepness(x), mode, 0.25)


def _networks() -> list[Call]:
    sorting = SortingNetwork("odd_even", N, learnable=True, dtypes=BOTH)
    selection = SelectionNetwork("odd_even", N, select=nsc.median(), learnable=True, dtypes=BOTH)
    return [
        Call("SortingNetwork", sorting, lambda layer, x: layer(x)),
        Call("SortingNetwork", sorting, lambda layer, x: layer.route(x, payload(x))),
        Call("SortingNetwork", sorting, lambda layer, x: layer.cross_entropy(x, ranks(x))),
        Call("SelectionNetwork", selection, lambda layer, x: layer(x)),
    ]


def _filter_layers() -> list[Call]:
    return [
        Call("RankFilter2d", RankFilter2d((1, 2), 0, origin=(0, -1)), lambda layer, x: layer(x)),
        Call("MedianFilter2d", MedianFilter2d((1, 3), "mirror"), lambda layer, x: layer(x)),
        Call("MedianFilter2d", MedianFilter2d((1, 3), "shrink", nan="keep"), lambda layer, x: layer(x)),
    ]


def _relaxed_filter_layers() -> list[Call]:
    layer = RankFilter2d((1, 2), 1, relaxed=True, learnable=True)
    return [Call("RankFilter2d", layer, lambda layer, x: layer(x))]


def _top_k() -> list[Call]:
    def make(*arguments: Any, **options: Any) -> Any:
        return TopKCrossEntropy(*arguments, network="odd_even", learnable=True, dtypes=BOTH, **options)

    def call(layer: Any, x: Tensor) -> Any:
        return layer(x, labels(x))

    return [
        Call("TopKCrossEntropy", make(N, (0.5, 0.5)), call),
        Call("TopKCrossEntropy", make(N, (1,), 2, top1="softmax"), call),
        Call("TopKCrossEntropy", make(N, (0.5, 0.5), top1="cross_entropy"), call),
    ]


def _rankings() -> list[Call]:
    def make(kind: Any, **options: Any) -> Any:
        return kind("odd_even", N, steepness=2.0, learnable=True, dtypes=BOTH, **options)

    def each(layer: Any, x: Tensor) -> Any:
        return layer(x, ranks(x))

    def some_of_them(layer: Any, x: Tensor) -> Any:
        return layer(x, ranks(x), mask=some(x))

    return [
        Call("OrderLoss", make(OrderLoss, orders=3), some_of_them),
        Call("SpearmanLoss", make(SpearmanLoss), each),
        Call("SpearmanLoss", make(SpearmanLoss), some_of_them),
        Call("NDCGLoss", make(NDCGLoss, reduction="none"), some_of_them),
        Call("NDCGLoss", make(NDCGLoss, k=2, by="ranks", gain="linear"), each),
        Call("PrecisionAtK", make(PrecisionAtK, k=1), each),
        Call("MRRLoss", make(MRRLoss), lambda layer, x: layer(x, ranks(x) - 1 > 0)),
    ]


def _list_rank() -> list[Call]:
    return [
        Call("ListRankLoss", ListRankLoss(), lambda layer, x: layer(x, ranks(x), mask=some(x))),
        Call("ListRankLoss", ListRankLoss(link="identity"), lambda layer, x: layer(x, ranks(x))),
    ]


def _statistics() -> list[Call]:
    def make(kind: Any, **options: Any) -> Any:
        return kind("odd_even", N, steepness=2.0, learnable=True, dtypes=BOTH, **options)

    def each(layer: Any, x: Tensor) -> Any:
        return layer(x)

    def some_of_them(layer: Any, x: Tensor) -> Any:
        return layer(x, mask=some(x))

    return [
        Call("Quantile", make(Quantile, q=(0.2, 0.5)), each),
        Call("Quantile", make(Quantile, q=0.3, interpolation="nearest"), some_of_them),
        Call("Median", make(Median), some_of_them),
        Call("TrimmedMean", make(TrimmedMean, proportion=0.4), each),
        Call("MedianAbsoluteDeviation", make(MedianAbsoluteDeviation), some_of_them),
        Call("SoftTopK", make(SoftTopK, k=1), each),
        Call("SoftTopK", make(SoftTopK, k=1), some_of_them),
    ]


def _without_n() -> list[Call]:
    def make(kind: Any, **options: Any) -> Any:
        return kind(steepness=2.0, learnable=True, dtypes=BOTH, **options)

    return [
        Call("SortingNetwork", SortingNetwork("odd_even", dtypes=BOTH), lambda layer, x: layer(x)),
        Call("SortingNetwork", make(SortingNetwork), lambda layer, x: layer.cross_entropy(x, ranks(x))),
        Call("SpearmanLoss", SpearmanLoss(dtypes=BOTH), lambda layer, x: layer(x, ranks(x), mask=some(x))),
        Call("NDCGLoss", make(NDCGLoss, k=9), lambda layer, x: layer(x, ranks(x))),
        Call("Quantile", make(Quantile, q=(0.2, 0.5)), lambda layer, x: layer(x)),
        Call("SoftTopK", make(SoftTopK, k=2), lambda layer, x: layer(x)),
    ]


class Function(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.forward = function


def _compat() -> list[Call]:
    def rows(x: Tensor) -> Tensor:
        """Return x as (batch, N), as these take nothing else."""
        return x.reshape(-1, N) if dense(x) is x else x

    def sorted_by(layer: Any, x: Tensor) -> Any:
        values, permutation = layer(rows(x))
        return (values.unsqueeze(1) @ permutation.square()).reshape(x.shape)

    def selected_by(layer: Any, x: Tensor) -> Any:
        return layer(rows(x))[1].square().sum(-1).reshape(x.shape)

    def loss(layer: Any, x: Tensor) -> Any:
        return layer(rows(x), labels(rows(x)))

    def of_values(function: Any, x: Tensor) -> Any:
        return function(rows(x)).reshape(x.shape)

    def of_labels(mode: str, m: int | None = None) -> TopKCrossEntropyLoss:
        arguments = ("odd_even", 2.0, (0.5, 0.5) if m is None else (1,), N, m, "cauchy")
        return TopKCrossEntropyLoss(*arguments, top1_mode=mode)

    return [
        Call("DiffSortNet", DiffSortNet("bitonic", N, steepness=3.0), sorted_by),
        Call("DiffTopkNet", DiffTopkNet("splitter_selection", N, 2, True, steepness=3.0), selected_by),
        Call("TopKCrossEntropyLoss", of_labels("smce"), loss),
        Call("TopKCrossEntropyLoss", of_labels("sort", 2), loss),
        Call("soft_rank", Function(soft_rank), of_values),
        Call("soft_sort", Function(soft_sort), of_values),
    ]


@contextmanager
def each_saved_tensor_read_once() -> Iterator[None]:
    """Fail unless each tensor that is saved for gradients is read once, as checkpoints ask for."""
    times: Counter[int] = Counter()
    boxes: list[list[Tensor]] = []  # they live on, so that no two have one id

    def pack(tensor: Tensor) -> list[Tensor]:
        boxes.append([tensor])
        return boxes[-1]

    def unpack(box: list[Tensor]) -> Tensor:
        times[id(box)] += 1
        return box[0]

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield
    assert set(times.values()) == {1}


def without_dense_memory(x: Tensor) -> dict[str, Tensor]:
    """Return tensors without dense memory, by words of the advice that refuses them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these kinds are prototypes
        return {
            r"sparse_coo: .*\.to_dense\(\)": x.to_sparse(),
            r"sparse_csr: .*\.to_dense\(\)": x.flatten(0, -2).to_sparse_csr(),
            r"_mkldnn: .*\.to_dense\(\)": x.float().to_mkldnn(),
            r"a nested one.*: .*(to_padded_tensor|layout=torch\.jagged)": torch.nested.nested_tensor(
                [x, x[:1]]
            ),
            r"a nested one: .*\.unbind\(\)": torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged),
            r"a quantized one: .*\.dequantize\(\)": torch.quantize_per_tensor(x.float(), 0.1, 0, torch.qint8),
        }


IMAGES = (2, 3, 4)
COLUMNS = {
    "sorter": Column("`Sorter`", _sorter),
    "losses": Column("its losses", _losses),
    "sizes": Column("`Sizes`", _sizes),
    "selector": Column("`Selector`", _selector),
    "exact": Column("`hard_sort`, `hard_select`", _exact),
    "filter": Column("`Filter`", _filter, IMAGES),
    "relaxed filter": Column("`Filter.relaxed`", _relaxed_filter, IMAGES),
    "networks": Column("`SortingNetwork`, `SelectionNetwork`", _networks),
    "filter layers": Column("`MedianFilter2d`, `RankFilter2d`", _filter_layers, IMAGES),
    "relaxed filter layers": Column("these, relaxed", _relaxed_filter_layers, IMAGES),
    "top-k": Column("`TopKCrossEntropy`", _top_k),
    "rankings": Column("`OrderLoss`, `SpearmanLoss`, `NDCGLoss`, `PrecisionAtK`, `MRRLoss`", _rankings),
    "ListRank": Column("`ListRankLoss`", _list_rank),
    "statistics": Column(
        "`Quantile`, `Median`, `TrimmedMean`, `MedianAbsoluteDeviation`, `SoftTopK`", _statistics
    ),
    "of any n": Column("layers without `n`", _without_n),
    "compat": Column("`nsc.compat`", _compat),
}
