"""Catches a value of a wrong type that a call takes, or refuses with an error that is not nsc's."""

from __future__ import annotations

import functools
import inspect
import re

import numpy as np
import pytest
import torch
from called import LOSSES_AND_STATISTICS

import nsc
from nsc.compat import DiffSortNet
from nsc.compat.difftopk import DiffTopkNet, TopKCrossEntropyLoss
from nsc.compat.torchsort import soft_rank, soft_sort
from nsc.compiler.families import FAMILIES
from nsc.compiler.formats import write_network
from nsc.nn import (
    ListRankLoss,
    MedianFilter2d,
    RankFilter2d,
    SelectionNetwork,
    SoftTopK,
    SortingNetwork,
    TopKCrossEntropy,
)
from nsc.nn.ranking import RankingLoss

SWAP = [(0, 1)]
X = torch.tensor([[3.0, 1.0, 2.0, 0.0]])
RANKS = torch.tensor([[3, 1, 2, 0]])
PAYLOAD = torch.ones(1, 4, 1)


@functools.cache
def operator():
    return nsc.compile("bitonic", 4)


@functools.cache
def selector():
    return nsc.compile("bitonic", 4, select=nsc.top_k(1))


@functools.cache
def sorters():
    return nsc.compile_sizes("bitonic", 8)


@functools.cache
def rank_filter():
    return nsc.compile_filter(3, 1)


@functools.cache
def instances():
    """Return what has the methods of an operator, by its class's name."""
    operators = operator(), SortingNetwork(operator()), selector(), SelectionNetwork(selector())
    return {type(instance).__name__: instance for instance in operators}


@pytest.fixture(scope="module", autouse=True)
def network_file(tmp_path_factory):
    """A file that calls may read, in the working folder of this module's tests."""
    folder = tmp_path_factory.mktemp("networks")
    (folder / "two.json").write_text(write_network(nsc.Network.from_layers(2, [SWAP])), encoding="utf-8")
    (folder / "package").mkdir()
    for name, text in operator().kernel.files.items():
        (folder / "package" / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def starts(value):
    return nsc.Network(2, np.array(SWAP), [0, value])


def settled(proof):
    return proof.verdict, proof.detail


SORTING_METHODS = {
    "__call__": lambda op, dim: op(X, dim=dim),
    "sort": lambda op, dim: op.sort(X, dim=dim),
    "sort_with_permutation": lambda op, dim: op.sort_with_permutation(X, dim=dim),
    "rank": lambda op, dim: op.rank(X, dim=dim),
    "route": lambda op, dim: op.route(X, PAYLOAD, dim=dim),
    "topk": lambda op, dim: op.topk(X, 2, dim=dim),
    "top_k_weights": lambda op, dim: op.top_k_weights(X, 2, dim=dim),
    "loss": lambda op, dim: op.loss("cross_entropy", X, RANKS, dim=dim),
    "cross_entropy": lambda op, dim: op.cross_entropy(X, RANKS, dim=dim),
    "binary_cross_entropy": lambda op, dim: op.binary_cross_entropy(X, RANKS, dim=dim),
}
SELECTING_METHODS = {
    "__call__": lambda op, dim: op(X, dim=dim),
    "select": lambda op, dim: op.select(X, dim=dim),
    "select_with_rows": lambda op, dim: op.select_with_rows(X, dim=dim),
    "route": lambda op, dim: op.route(X, PAYLOAD, dim=dim),
    "loss": lambda op, dim: op.loss("cross_entropy", X, shares(), dim=dim),
    "cross_entropy": lambda op, dim: op.cross_entropy(X, shares(), dim=dim),
    "binary_cross_entropy": lambda op, dim: op.binary_cross_entropy(X, shares(), dim=dim),
}


def shares():
    """Return what the rows of the selector of X should be."""
    return torch.zeros(len(X), len(selector().ranks), X.shape[-1])


def of_rows(method, **options):
    """Return a loss of a selector's rows, by a method."""
    name = ("cross_entropy",) if method == "loss" else ()
    return getattr(selector(), method)(*name, X, shares(), **options)


# Losses and statistics that are modules: what each needs beside its network, and what it is called with.
STATISTICS = {
    **{
        kind: (options, (RANKS,) if issubclass(kind, RankingLoss) else ())
        for kind, options in LOSSES_AND_STATISTICS.items()
    },
    ListRankLoss: ({}, (RANKS,)),
    TopKCrossEntropy: ({"classes": 4, "p_k": (0.5, 0.5)}, (torch.tensor([1]),)),
}


def made(kind, *n, **options):
    """Return a module that stands on an operator, or on a network of n wires, if its kind takes one first."""
    takes_network = next(iter(inspect.signature(kind).parameters)) == "network"
    network = ("bitonic" if n else operator(),) if takes_network else ()
    return kind(*network, *n, **STATISTICS[kind][0] | options)


def statistic(kind, of_call=None, **options):
    return made(kind, **options)(X, *STATISTICS[kind][1], **of_call or {})


def of_statistics(name, value):
    """Return a call that passes an option, and a value of it, for all modules that take it."""
    return {
        f"{kind.__name__}.{name}": (lambda v, kind=kind: statistic(kind, **{name: v}), value)
        for kind in STATISTICS
        if name in inspect.signature(kind).parameters
    }


def difftopks_loss(**options):
    defaults = {
        "diffsort_method": "odd_even",
        "inverse_temperature": 2.0,
        "p_k": [1],
        "n": 4,
        "distribution": "logistic_phi",
    }
    return TopKCrossEntropyLoss(**defaults | options)(X, torch.tensor([1]))


# Callable and parameter: a call that passes a number for it, and the number.
WHOLE = {
    **{
        f"{kind}.{method}.dim": (lambda v, kind=kind, call=call: call(instances()[kind], v), 1)
        for kinds, methods in (
            (("Sorter", "SortingNetwork"), SORTING_METHODS),
            (("Selector", "SelectionNetwork"), SELECTING_METHODS),
        )
        for kind in kinds
        for method, call in methods.items()
        if method != "__call__" or not kind.endswith("Network")
    },
    **{
        f"{kind.__name__}.forward.dim": (lambda v, kind=kind: statistic(kind, {"dim": v}), 1)
        for kind in STATISTICS
        if "dim" in inspect.signature(kind.forward).parameters
    },
    "SortingNetwork.forward.dim": (lambda v: SortingNetwork(operator())(X, dim=v), 1),
    "SelectionNetwork.forward.dim": (lambda v: SelectionNetwork(selector())(X, dim=v), 1),
    "Sorter.hard_sort.dim": (lambda v: operator().hard_sort(X, v), 1),
    "Selector.hard_select.dim": (lambda v: selector().hard_select(X, v), 1),
    "SortingNetwork.hard_sort.dim": (lambda v: SortingNetwork(operator()).hard_sort(X, v), 1),
    "SelectionNetwork.hard_select.dim": (lambda v: SelectionNetwork(selector()).hard_select(X, v), 1),
    "compile.n": (lambda v: nsc.compile("bitonic", v), 4),
    "compile.index_base": (lambda v: nsc.compile([(1, 2)], 2, index_base=v), 1),
    "compile.max_memory": (lambda v: nsc.compile("bitonic", 4, max_memory=v), 100),
    "compile.wires": (lambda v: nsc.compile("bitonic", 4, select=nsc.ranks(1), wires=[v]), 1),
    "draw.n": (lambda v: nsc.draw("bitonic", v), 4),
    "draw.index_base": (lambda v: nsc.draw([(1, 2)], 2, index_base=v), 1),
    "draw.max_memory": (lambda v: nsc.draw("bitonic", 4, max_memory=v), 100),
    "draw.wires": (lambda v: nsc.draw("bitonic", 4, select=nsc.ranks(1), wires=[v]), 1),
    "c_header.n": (lambda v: nsc.c_header("bitonic", v), 4),
    "c_header.index_base": (lambda v: nsc.c_header([(1, 2)], 2, index_base=v), 1),
    "c_header.max_memory": (lambda v: nsc.c_header("bitonic", 4, max_memory=v), 100),
    "c_header.wires": (lambda v: nsc.c_header("bitonic", 4, select=nsc.ranks(1), wires=[v]), 1),
    "top_k.k": (nsc.top_k, 1),
    "ranks.ranks": (nsc.ranks, 1),
    "network.n": (lambda v: nsc.network("bitonic", v), 4),
    "network.index_base": (lambda v: nsc.network([(1, 2)], 2, index_base=v), 1),
    "optimize.n": (lambda v: nsc.optimize("bitonic", v), 4),
    "optimize.index_base": (lambda v: nsc.optimize([(1, 2)], 2, index_base=v), 1),
    "optimize.max_memory": (lambda v: nsc.optimize("bitonic", 4, max_memory=v), 100),
    "verify.n": (lambda v: settled(nsc.verify("bitonic", v)), 4),
    **{
        f"search.{name}": (
            lambda v, name=name: nsc.search(**{"start": "known", "n": 5, "seconds": 0, name: v}),
            value,
        )
        for name, value in {"n": 5, "depth": 9, "prefix": 1, "seed": 3, "jobs": 1}.items()
    },
    "records.n": (nsc.records, 9),
    "verify.index_base": (lambda v: settled(nsc.verify([(1, 2)], 2, index_base=v)), 1),
    "verify.max_memory": (lambda v: settled(nsc.verify("bitonic", 4, max_memory=v)), 100),
    "Network.n": (lambda v: nsc.Network(v, np.array(SWAP), np.array([0, 1])), 2),
    "Network.layer_starts": (starts, 1),
    "Network.from_layers.n": (lambda v: nsc.Network.from_layers(v, [SWAP]), 2),
    "Network.from_layers.layers": (lambda v: nsc.Network.from_layers(2, [[(0, v)]]), 1),
    "Network.from_comparators.n": (lambda v: nsc.Network.from_comparators(v, SWAP), 2),
    "Network.from_comparators.comparators": (lambda v: nsc.Network.from_comparators(2, [(0, v)]), 1),
    "Sorter.top_k_weights.k": (lambda v: operator().top_k_weights(X, v), 3),
    "SortingNetwork.top_k_weights.k": (lambda v: SortingNetwork(operator()).top_k_weights(X, v), 3),
    **of_statistics("k", 3),
    **of_statistics("m", 3),
    **of_statistics("classes", 4),
    **{
        f"{kind.__name__}.n": (lambda v, kind=kind: made(kind, v).operator, 4)
        for kind in STATISTICS
        if "n" in inspect.signature(kind).parameters
    },
    "Sorter.topk.k": (lambda v: operator().topk(X, v), 3),
    "Sizes.most": (lambda v: nsc.Sizes("bitonic", v).most, 4),
    "Sizes.sorter.m": (lambda v: sorters().sorter(v), 4),
    "Sizes.topk.k": (lambda v: sorters().topk(X, v), 3),
    "compile_sizes.most": (lambda v: nsc.compile_sizes("bitonic", v).most, 4),
    "SortingNetwork.n": (lambda v: SortingNetwork("bitonic", v).operator, 4),
    "SortingNetwork.topk.k": (lambda v: SortingNetwork(operator()).topk(X, v), 3),
    "SelectionNetwork.n": (lambda v: SelectionNetwork("bitonic", v, select=nsc.top_k(1)).operator, 4),
    "RankFilter2d.rank": (lambda v: str(RankFilter2d(3, v)), 1),
    "Filter.__call__.origin": (lambda v: rank_filter()(X, origin=v), 1),
    "Filter.relaxed.origin": (lambda v: rank_filter().relaxed(X, 2.0, origin=v), 1),
    "RankFilter2d.origin": (lambda v: RankFilter2d(3, 1, origin=v)(X), 1),
    "MedianFilter2d.origin": (lambda v: MedianFilter2d(3, origin=v)(X), 1),
    "DiffSortNet.size": (lambda v: DiffSortNet("bitonic", v).size, 4),
    "DiffTopkNet.size": (lambda v: DiffTopkNet("bitonic", v, 1).size, 4),
    "DiffTopkNet.k": (lambda v: DiffTopkNet("bitonic", 4, v).k, 3),
    "TopKCrossEntropyLoss.n": (lambda v: difftopks_loss(n=v), 4),
    "TopKCrossEntropyLoss.m": (lambda v: difftopks_loss(m=v), 3),
    **{f"{name}.n": (family, 4) for name, family in FAMILIES.items()},
}
LENGTHS = torch.tensor([2])
FILLED = {
    "forward": lambda op, v: op(X, lengths=LENGTHS, fill=v),
    "__call__": lambda op, v: op(X, lengths=LENGTHS, fill=v),
    "sort": lambda op, v: op.sort(X, lengths=LENGTHS, fill=v),
    "sort_with_permutation": lambda op, v: op.sort_with_permutation(X, lengths=LENGTHS, fill=v),
    "rank": lambda op, v: op.rank(X, lengths=LENGTHS, fill=v),
    "route": lambda op, v: op.route(X, PAYLOAD, lengths=LENGTHS, fill=v),
    "topk": lambda op, v: op.topk(X, 3, lengths=LENGTHS, fill=v),
    "top_k_weights": lambda op, v: op.top_k_weights(X, 3, lengths=LENGTHS, fill=v),
    "hard_sort": lambda op, v: op.hard_sort(X, lengths=LENGTHS, fill=v),
}
SELECTED = {
    "forward": lambda op, **options: op(X, **options),
    "__call__": lambda op, **options: op(X, **options),
    "select": lambda op, **options: op.select(X, **options),
    "select_with_rows": lambda op, **options: op.select_with_rows(X, **options),
    "route": lambda op, **options: op.route(X, PAYLOAD, **options),
}
STRAIGHT = {
    "forward": lambda op, v: op(X, straight_through=v),
    "__call__": lambda op, v: op(X, straight_through=v),
    "sort": lambda op, v: op.sort(X, straight_through=v),
    "sort_with_permutation": lambda op, v: op.sort_with_permutation(X, straight_through=v),
    "rank": lambda op, v: op.rank(X, straight_through=v),
    "route": lambda op, v: op.route(X, PAYLOAD, straight_through=v),
    "topk": lambda op, v: op.topk(X, 3, straight_through=v),
    "top_k_weights": lambda op, v: op.top_k_weights(X, 3, straight_through=v),
}
REAL = {
    "compile.art_lambda": (lambda v: nsc.compile("bitonic", 4, art_lambda=v), 0.5),
    "compile.time_limit": (lambda v: nsc.compile("bitonic", 4, time_limit=v), 60.0),
    "optimize.time_limit": (lambda v: nsc.optimize("bitonic", 4, time_limit=v), 60.0),
    "draw.time_limit": (lambda v: nsc.draw("bitonic", 4, time_limit=v), 60.0),
    "draw.art_lambda": (lambda v: nsc.draw("bitonic", 4, art_lambda=v), 0.5),
    "draw.steepness": (lambda v: nsc.draw("bitonic", 4, steepness=v), 2.0),
    "draw.values": (lambda v: nsc.draw("bitonic", 4, values=[v, 1.0, 2.0, 3.0]), 0.5),
    "c_header.time_limit": (lambda v: nsc.c_header("bitonic", 4, time_limit=v), 60.0),
    "search.seconds": (lambda v: nsc.search(start="known", n=5, seconds=v), 0.5),
    "verify.time_limit": (lambda v: settled(nsc.verify("bitonic", 4, time_limit=v)), 60.0),
    "Relaxation.art_lambda": (lambda v: nsc.Relaxation("logistic", v), 0.5),
    "Sorter.__call__.steepness": (lambda v: operator()(X, v), 2.0),
    "Sorter.sort.steepness": (lambda v: operator().sort(X, v), 2.0),
    "Sorter.sort_with_permutation.steepness": (lambda v: operator().sort_with_permutation(X, v), 2.0),
    "Sorter.rank.steepness": (lambda v: operator().rank(X, v), 2.0),
    "Sorter.route.steepness": (lambda v: operator().route(X, PAYLOAD, v), 2.0),
    "Sorter.topk.steepness": (lambda v: operator().topk(X, 2, v), 2.0),
    "Sorter.top_k_weights.steepness": (lambda v: operator().top_k_weights(X, 2, v), 2.0),
    **of_statistics("steepness", 2.0),
    **of_statistics("proportion", 0.25),
    "Sorter.loss.steepness": (lambda v: operator().loss("cross_entropy", X, RANKS, v), 2.0),
    **{
        f"Sorter.{name}.label_smoothing": (lambda v, call=call: call(X, RANKS, label_smoothing=v), 0.5)
        for name, call in {
            "loss": lambda *target, **options: operator().loss("cross_entropy", *target, **options),
            "cross_entropy": lambda *target, **options: operator().cross_entropy(*target, **options),
            "binary_cross_entropy": lambda *target, **options: operator().binary_cross_entropy(
                *target, **options
            ),
        }.items()
    },
    "Sorter.cross_entropy.steepness": (lambda v: operator().cross_entropy(X, RANKS, v), 2.0),
    "Sorter.binary_cross_entropy.steepness": (lambda v: operator().binary_cross_entropy(X, RANKS, v), 2.0),
    **{
        f"Sorter.{method}.fill": (lambda v, call=call: call(operator(), v), 2.0)
        for method, call in FILLED.items()
        if method != "forward"
    },
    "SortingNetwork.forward.fill": (lambda v: FILLED["forward"](SortingNetwork(operator()), v), 2.0),
    **{
        f"Selector.{method}.fill": (lambda v, call=call: call(selector(), lengths=LENGTHS, fill=v), 2.0)
        for method, call in SELECTED.items()
        if method != "forward"
    },
    "SortingNetwork.hard_sort.fill": (lambda v: FILLED["hard_sort"](SortingNetwork(operator()), v), 2.0),
    "SelectionNetwork.hard_select.fill": (
        lambda v: SelectionNetwork(selector()).hard_select(X, lengths=LENGTHS, fill=v),
        2.0,
    ),
    "Selector.hard_select.fill": (lambda v: selector().hard_select(X, lengths=LENGTHS, fill=v), 2.0),
    "SelectionNetwork.forward.fill": (
        lambda v: SelectionNetwork(selector())(X, lengths=LENGTHS, fill=v),
        2.0,
    ),
    **{
        f"Selector.{method}.steepness": (lambda v, method=method: of_rows(method, steepness=v), 2.0)
        for method in ("loss", "cross_entropy", "binary_cross_entropy")
    },
    "Selector.__call__.steepness": (lambda v: selector()(X, v), 2.0),
    "Selector.select.steepness": (lambda v: selector().select(X, v), 2.0),
    "Selector.select_with_rows.steepness": (lambda v: selector().select_with_rows(X, v), 2.0),
    "Selector.route.steepness": (lambda v: selector().route(X, PAYLOAD, v), 2.0),
    "SortingNetwork.steepness": (lambda v: SortingNetwork(operator(), steepness=v).steepness, 2.0),
    "SelectionNetwork.steepness": (lambda v: SelectionNetwork(selector(), steepness=v).steepness, 2.0),
    "Filter.__call__.cval": (lambda v: rank_filter()(X, "constant", v), 2.0),
    "Filter.relaxed.cval": (lambda v: rank_filter().relaxed(X, 2.0, "constant", v), 2.0),
    "Filter.relaxed.steepness": (lambda v: rank_filter().relaxed(X, v), 2.0),
    "RankFilter2d.cval": (lambda v: RankFilter2d(3, 1, "constant", v)(X), 2.0),
    "RankFilter2d.steepness": (lambda v: RankFilter2d(3, 1, relaxed=True, steepness=v)(X), 2.0),
    "MedianFilter2d.cval": (lambda v: MedianFilter2d(3, "constant", v)(X), 2.0),
    "MedianFilter2d.steepness": (lambda v: MedianFilter2d(3, relaxed=True, steepness=v)(X), 2.0),
    "DiffSortNet.steepness": (lambda v: DiffSortNet("bitonic", 4, steepness=v)(X), 2.0),
    "DiffSortNet.art_lambda": (
        lambda v: DiffSortNet("bitonic", 4, distribution="logistic_phi", art_lambda=v)(X),
        0.5,
    ),
    "DiffTopkNet.steepness": (lambda v: DiffTopkNet("bitonic", 4, 2, steepness=v)(X)[1], 2.0),
    "DiffTopkNet.art_lambda": (
        lambda v: DiffTopkNet("bitonic", 4, 2, distribution="logistic_phi", art_lambda=v)(X)[1],
        0.5,
    ),
    "TopKCrossEntropyLoss.inverse_temperature": (lambda v: difftopks_loss(inverse_temperature=v), 2.0),
    "TopKCrossEntropyLoss.art_lambda": (lambda v: difftopks_loss(art_lambda=v), 0.5),
    "soft_rank.regularization_strength": (lambda v: soft_rank(X, regularization_strength=v), 2.0),
    "soft_sort.regularization_strength": (lambda v: soft_sort(X, regularization_strength=v), 2.0),
}
# Callable and parameter: a call that passes a truth value for it.
FLAGS = {
    "Sorter.hard_sort.descending": lambda v: operator().hard_sort(X, descending=v),
    "Sorter.hard_sort.values_only": lambda v: operator().hard_sort(X, values_only=v),
    "Selector.hard_select.values_only": lambda v: selector().hard_select(X, values_only=v),
    "SortingNetwork.hard_sort.descending": lambda v: SortingNetwork(operator()).hard_sort(X, descending=v),
    **{
        f"Sorter.{method}.straight_through": lambda v, call=call: call(operator(), v)
        for method, call in STRAIGHT.items()
        if method != "forward"
    },
    "SortingNetwork.forward.straight_through": lambda v: SortingNetwork(operator())(X, straight_through=v),
    **{
        f"Selector.{method}.straight_through": lambda v, call=call: call(selector(), straight_through=v)
        for method, call in SELECTED.items()
        if method != "forward"
    },
    "SelectionNetwork.forward.straight_through": lambda v: SelectionNetwork(selector())(
        X, straight_through=v
    ),
    "draw.error_free": lambda v: nsc.draw("bitonic", 4, error_free=v),
    "compile.error_free": lambda v: nsc.compile("bitonic", 4, error_free=v),
    "search.symmetric": lambda v: nsc.search(start="known", n=4, seconds=0, symmetric=v),
    "compile.unproved": lambda v: nsc.compile("bitonic", 4, unproved=v),
    "c_header.unproved": lambda v: nsc.c_header("bitonic", 4, unproved=v),
    "c_header.remove_redundant": lambda v: nsc.c_header("bitonic", 4, remove_redundant=v),
    "compile.remove_redundant": lambda v: nsc.compile("bitonic", 4, remove_redundant=v),
    "Relaxation.error_free": lambda v: nsc.Relaxation(error_free=v),
    "SortingNetwork.learnable": lambda v: len([*SortingNetwork(operator(), learnable=v).parameters()]),
    "RankFilter2d.relaxed": lambda v: RankFilter2d(3, 1, relaxed=v)(X),
    "RankFilter2d.learnable": lambda v: len([*RankFilter2d(3, 1, relaxed=True, learnable=v).parameters()]),
    "MedianFilter2d.relaxed": lambda v: MedianFilter2d(3, relaxed=v)(X),
    "MedianFilter2d.learnable": lambda v: len([*MedianFilter2d(3, relaxed=True, learnable=v).parameters()]),
    **{name: call for name, (call, _) in of_statistics("learnable", True).items()},
    "SoftTopK.straight_through": lambda v: statistic(SoftTopK, straight_through=v),
    "SelectionNetwork.learnable": lambda v: len([*SelectionNetwork(selector(), learnable=v).parameters()]),
    "DiffTopkNet.sparse": lambda v: DiffTopkNet("bitonic", 4, 2, v)(X)[1],
    "compile.build": lambda v: nsc.compile("bitonic", 4, build=v, name="four").kernel.is_specialised,
}
# Callable and parameter: a call that passes a name for it, and a right name.
NAMES = {
    "compile.relaxation": (lambda v: nsc.compile("bitonic", 4, relaxation=v), "cauchy"),
    "compile.dtypes": (lambda v: nsc.compile("bitonic", 4, dtypes=v), "float32"),
    "compile.targets": (lambda v: nsc.compile("bitonic", 4, targets=v), "cpu"),
    "compile.name": (lambda v: nsc.compile("bitonic", 4, name=v), "four"),
    "compile.format": (lambda v: nsc.compile("two.json", format=v), "nsc"),
    "draw.relaxation": (lambda v: nsc.draw("bitonic", 4, relaxation=v), "cauchy"),
    "draw.format": (lambda v: nsc.draw("two.json", format=v), "nsc"),
    "c_header.dtypes": (lambda v: nsc.c_header("bitonic", 4, dtypes=v), "float32"),
    "c_header.name": (lambda v: nsc.c_header("bitonic", 4, name=v), "four"),
    "c_header.format": (lambda v: nsc.c_header("two.json", format=v), "nsc"),
    "load.folder": (nsc.load, None),
    "deploy.file": (lambda v: nsc.deploy(operator(), v), "four.cpp"),
    "Filter.__call__.mode": (lambda v: rank_filter()(X, v), "wrap"),
    "Filter.relaxed.mode": (lambda v: rank_filter().relaxed(X, 2.0, v), "wrap"),
    "RankFilter2d.mode": (lambda v: RankFilter2d(3, 1, v)(X), "wrap"),
    "MedianFilter2d.mode": (lambda v: MedianFilter2d(3, v)(X), "wrap"),
    "search.property": (lambda v: nsc.search(start="known", n=5, seconds=0, property=v), "sort"),
    "search.minimize": (lambda v: nsc.search(start="known", n=5, seconds=0, minimize=v), "depth"),
    "verify.property": (lambda v: nsc.verify("bitonic", 4, property=v), "sort"),
    "verify.methods": (lambda v: nsc.verify("bitonic", 4, methods=v), ["exhaustion"]),
    "verify.format": (lambda v: nsc.verify("two.json", format=v), "nsc"),
    "verify.certificate": (lambda v: nsc.verify("bitonic", 4, certificate=v), "four.cert"),
    "network.format": (lambda v: nsc.network("two.json", format=v), "nsc"),
    "Network.text.format": (lambda v: operator().network.text(v), "cn"),
    "Network.save.format": (lambda v: operator().network.save("saved", v), "cn"),
    "Network.save.path": (lambda v: operator().network.save(v), "saved.json"),
    "optimize.format": (lambda v: nsc.optimize("two.json", format=v), "nsc"),
    "optimize.property": (lambda v: nsc.optimize("bitonic", 4, property=v), "sort"),
    "Relaxation.sigmoid": (nsc.Relaxation, "cauchy"),
    "Sorter.loss.name": (lambda v: operator().loss(v, X, RANKS), "cross_entropy"),
    "Sorter.loss.reduction": (lambda v: operator().loss("cross_entropy", X, RANKS, reduction=v), "sum"),
    "Sorter.cross_entropy.reduction": (lambda v: operator().cross_entropy(X, RANKS, reduction=v), "none"),
    "Sorter.binary_cross_entropy.reduction": (
        lambda v: operator().binary_cross_entropy(X, RANKS, reduction=v),
        "mean",
    ),
    "Selector.loss.name": (lambda v: selector().loss(v, X, shares()), "cross_entropy"),
    "SelectionNetwork.loss.name": (
        lambda v: SelectionNetwork(selector()).loss(v, X, shares()),
        "cross_entropy",
    ),
    "Selector.loss.reduction": (lambda v: of_rows("loss", reduction=v), "sum"),
    "Sizes.network": (lambda v: nsc.Sizes(v, 8).sorter(3), "bitonic"),
    "Sizes.loss.name": (lambda v: sorters().loss(v, X, RANKS), "cross_entropy"),
    "compile_sizes.network": (lambda v: nsc.compile_sizes(v, 8), "bitonic"),
    "SortingNetwork.loss.name": (lambda v: SortingNetwork(operator()).loss(v, X, RANKS), "cross_entropy"),
    **of_statistics("reduction", "sum"),
    **of_statistics("by", "ranks"),
    **of_statistics("gain", "linear"),
    **of_statistics("interpolation", "lower"),
    **of_statistics("link", "identity"),
    **of_statistics("top1", "softmax"),
    "DiffSortNet.sorting_network_type": (lambda v: DiffSortNet(v, 4), "bitonic"),
    "DiffSortNet.device": (lambda v: DiffSortNet("bitonic", 4, device=v), "cpu"),
    "DiffSortNet.interpolation_type": (lambda v: DiffSortNet("bitonic", 4, interpolation_type=v), "cauchy"),
    "DiffSortNet.distribution": (lambda v: DiffSortNet("bitonic", 4, distribution=v), "cauchy"),
    "DiffTopkNet.sorting_network_type": (lambda v: DiffTopkNet(v, 4, 2), "bitonic"),
    "DiffTopkNet.device": (lambda v: DiffTopkNet("bitonic", 4, 2, device=v), "cpu"),
    "DiffTopkNet.interpolation_type": (
        lambda v: DiffTopkNet("bitonic", 4, 2, interpolation_type=v),
        "cauchy",
    ),
    "DiffTopkNet.distribution": (lambda v: DiffTopkNet("bitonic", 4, 2, distribution=v), "cauchy"),
    "TopKCrossEntropyLoss.diffsort_method": (lambda v: difftopks_loss(diffsort_method=v), "bitonic"),
    "TopKCrossEntropyLoss.distribution": (lambda v: difftopks_loss(distribution=v), "cauchy"),
    "TopKCrossEntropyLoss.device": (lambda v: difftopks_loss(device=v), "cpu"),
    "TopKCrossEntropyLoss.top1_mode": (lambda v: difftopks_loss(top1_mode=v), "smce"),
    "soft_rank.regularization": (lambda v: soft_rank(X, v), "kl"),
    "soft_sort.regularization": (lambda v: soft_sort(X, v), "kl"),
}
COMPAT = (DiffSortNet, DiffTopkNet, TopKCrossEntropyLoss, soft_rank, soft_sort)
LAYERS = [layer for name in nsc.nn.__all__ if inspect.isclass(layer := getattr(nsc.nn, name))]
# An array has one dtype: NumPy turns a truth value beside numbers into 0 or 1 before nsc sees it.
ARRAYS = ("Network.layer_starts", "Network.from_layers.layers", "Network.from_comparators.comparators")
# Records that nsc fills in and errors that it raises take no number from a user.
OWN = (
    "Explorer",
    "Optimized",
    "Proof",
    "Selection",
    "Verdict",
    *(name for name in nsc.__all__ if name.endswith("Error")),
)


def parameters_taken(types):
    """Return the parameters of public callables whose type is one of some, a regular expression."""
    return set(_parameters_taken(re.compile(rf"\b({types})\b")))


def _parameters_taken(types):
    public = {name: getattr(nsc, name) for name in nsc.__all__ if name not in OWN}
    public |= {kind.__name__: kind for kind in (*LAYERS, *COMPAT)} | FAMILIES
    for name, thing in public.items():
        if inspect.ismodule(thing):
            continue
        yield from parameters_of(name, thing, types)
        if inspect.isclass(thing):
            for method in vars(thing):
                # A method of Sizes that wraps one of a Sorter has its arguments.
                is_public = not method.startswith("_") or method == "__call__"
                is_of_sorter = thing is nsc.Sizes and hasattr(vars(thing)[method], "__wrapped__")
                if is_public and not is_of_sorter:
                    yield from parameters_of(f"{name}.{method}", getattr(thing, method), types)


def parameters_of(name, thing, types):
    if callable(thing):
        for parameter in inspect.signature(thing).parameters.values():
            if types.search(str(parameter.annotation)):
                yield f"{name}.{parameter.name}"


def test_every_public_number_is_tried():
    numbers = parameters_taken("int|float|Steepness|NDArray|Comparators")
    # A q and a p_k may be lists: test_statistics.py, test_top_k_loss.py and test_compat_difftopk.py try them.
    lists = {"Quantile.q", "TopKCrossEntropy.p_k", "TopKCrossEntropyLoss.p_k"}
    assert numbers - {*WHOLE, *REAL} == {"Network.comparators", *lists}


def test_every_public_truth_value_and_name_is_tried():
    assert parameters_taken("bool") == set(FLAGS)
    # A package's files come from `nsc.load` and from pickles.
    files = {f"{kind}.files" for kind in ("Operator", "Sorter", "Selector", "Filter")}
    assert parameters_taken("str") - files == set(NAMES)


def same(a, b):
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("parameter", WHOLE)
def test_whole_numbers_of_numpy_are_whole_numbers(parameter):
    call, value = WHOLE[parameter]
    expected = call(value)
    for kind in (np.int8, np.int64, np.uint16, np.array):
        assert same(call(kind(value)), expected), kind


@pytest.mark.parametrize("parameter", WHOLE)
def test_other_values_than_whole_numbers_are_refused(parameter):
    call, value = WHOLE[parameter]
    truths = () if parameter in ARRAYS else (True, np.bool_(True), np.array(True))
    for other in (float(value), str(value), np.float64(value), 1j, *truths):
        with pytest.raises(nsc.NscError):
            call(other)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("parameter", REAL)
def test_real_numbers_of_numpy_are_real_numbers(parameter):
    call, value = REAL[parameter]
    expected = call(value)
    for kind in (np.float16, np.float32, np.float64, np.array):
        assert same(call(kind(value)), expected), kind


@pytest.mark.parametrize("parameter", REAL)
def test_other_values_than_real_numbers_are_refused(parameter):
    call, value = REAL[parameter]
    for other in (str(value), True, np.bool_(True), np.array([value, value]), 1j, [value]):
        with pytest.raises(nsc.NscError):
            call(other)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("parameter", FLAGS)
def test_truth_values_of_numpy_are_truth_values(parameter):
    for value in (True, False):
        expected = FLAGS[parameter](value)
        assert same(FLAGS[parameter](np.bool_(value)), expected)
        assert same(FLAGS[parameter](torch.tensor(value)), expected)


@pytest.mark.parametrize("parameter", FLAGS)
def test_what_is_no_truth_value_is_refused(parameter):
    """A text too: "no" and "False" would count as true."""
    for other in ("no", "False", "", 0, 1, 1.0, [True], np.array([True, True]), torch.tensor(1)):
        with pytest.raises(nsc.NscError, match=f"{parameter.split('.')[-1]} must be True or False, got"):
            FLAGS[parameter](other)


@pytest.mark.parametrize("parameter", NAMES)
def test_what_is_no_name_is_refused(parameter):
    call, name = NAMES[parameter]
    if name is not None:
        call(name)
    others = (1.5, b"cpu", {"a": 1}, [["a"]], object(), torch.float32, np.float32, torch.tensor([1, 2]))
    for other in others:
        with pytest.raises(nsc.NscError):
            call(other)
