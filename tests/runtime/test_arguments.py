"""Catches a value of a wrong type that a call takes, or refuses with an error that is not nsc's.

Each parameter of each public callable whose type is a number, a truth value or a name is tried.
"""

from __future__ import annotations

import inspect
import re
from functools import partial

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
from nsc.nn.ranking import RankingLoss
from nsc.operators.samples import ListOptions, SelectOptions, SortOptions
from nsc.operators.targets import LossOptions, RowLossOptions

SWAP = [(0, 1)]
X = torch.tensor([[3.0, 1.0, 2.0, 0.0]])
RANKS = torch.tensor([[3, 1, 2, 0]])
ROWS = torch.zeros(1, 1, 4)
SORTER, SELECTOR = nsc.compile("bitonic", 4), nsc.compile("bitonic", 4, select=nsc.top_k(1))


@pytest.fixture(scope="module", autouse=True)
def network_file(tmp_path_factory):
    """Files that calls may read, in the working folder of this module's tests."""
    folder = tmp_path_factory.mktemp("networks")
    (folder / "two.txt").write_text("sort2 = [(0, 1)]", encoding="utf-8")
    (folder / "two.json").write_text(write_network(nsc.Network.from_layers(2, [SWAP])), encoding="utf-8")
    (folder / "package").mkdir()
    for name, text in SORTER.kernel.files.items():
        (folder / "package" / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield


def used(kind, operands, **options):
    """Return what a module that is made with some options gives, and how many parameters it has."""
    layer = kind(**options)
    return len([*layer.parameters()]), layer(*operands)


def settled(**options):
    proof = nsc.verify(**options)
    return proof.verdict, proof.detail


BITONIC = {"network": "bitonic", "n": 4}
# Layers: the options that one needs, and its operands.
LAYERS = {
    **{
        kind: (BITONIC | options, (X, RANKS) if issubclass(kind, RankingLoss) else (X,))
        for kind, options in LOSSES_AND_STATISTICS.items()
    },
    nsc.nn.ListRankLoss: ({}, (X, RANKS)),
    nsc.nn.TopKCrossEntropy: ({"classes": 4, "p_k": (0.5, 0.5)}, (X, torch.tensor([1]))),
    nsc.nn.SortingNetwork: (BITONIC, (X,)),
    nsc.nn.SelectionNetwork: (BITONIC | {"select": nsc.top_k(1)}, (X,)),
    nsc.nn.MedianFilter2d: ({"size": 3}, (X,)),
    nsc.nn.RankFilter2d: ({"size": 3, "rank": 1}, (X,)),
    DiffSortNet: ({"sorting_network_type": "bitonic", "size": 4}, (X,)),
    DiffTopkNet: ({"sorting_network_type": "bitonic", "size": 4, "k": 2}, (X,)),
    TopKCrossEntropyLoss: (
        {"diffsort_method": "odd_even", "inverse_temperature": 2.0, "p_k": [1], "n": 4}
        | {"distribution": "logistic_phi"},
        (X, torch.tensor([1])),
    ),
}
# What methods of operators and layers are called with.
OPERANDS = {
    "route": {"x": X, "payload": torch.ones(1, 4, 1)},
    "topk": {"x": X, "k": 2},
    "top_k_weights": {"x": X, "k": 2},
    "loss": {"name": "cross_entropy", "x": X, "target": RANKS},
    "cross_entropy": {"x": X, "target": RANKS},
    "binary_cross_entropy": {"x": X, "target": RANKS},
    "text": {},
    "save": {"path": "saved.json"},
    "sorter": {"m": 4},
}
INSTANCES = {
    "Sorter": SORTER,
    "Selector": SELECTOR,
    "Filter": nsc.compile_filter(3, 1),
    "Network": SORTER.network,
    "Sizes": nsc.compile_sizes("bitonic", 8),
    **{kind.__name__: kind(**options) for kind, (options, _) in LAYERS.items()},
}
# Public callables, with what a call needs.
CALLS = {
    **{
        name: partial(getattr(nsc, name), **BITONIC)
        for name in ("compile", "draw", "optimize", "rank_errors")
    },
    "emit": partial(nsc.emit, language="c", **BITONIC),
    "verify": partial(settled, **BITONIC),
    "network": partial(lambda network, **options: nsc.network(network, **options), **BITONIC),
    "search": partial(nsc.search, start="known", n=5, seconds=0.0),
    "records": partial(nsc.records, n=9),
    "top_k": partial(nsc.top_k, k=1),
    "ranks": partial(lambda ranks: nsc.ranks(ranks), ranks=1),
    "load": partial(nsc.load, folder="package"),
    "deploy": partial(nsc.deploy, SORTER, file="four.cpp"),
    "Sizes": partial(nsc.Sizes, network="bitonic", most=8),
    "compile_sizes": partial(nsc.compile_sizes, network="bitonic", most=8),
    "Relaxation": nsc.Relaxation,
    "Network": partial(nsc.Network, n=2, comparators=np.array(SWAP), layer_starts=[0, 1]),
    "Network.from_layers": partial(nsc.Network.from_layers, n=2, layers=[SWAP]),
    "Network.from_comparators": partial(nsc.Network.from_comparators, n=2, comparators=SWAP),
    "soft_rank": partial(soft_rank, X),
    "soft_sort": partial(soft_sort, X),
    **{
        kind.__name__: partial(used, kind, operands, **options)
        for kind, (options, operands) in LAYERS.items()
    },
    **{name: partial(family, n=4) for name, family in FAMILIES.items()},
}
# A right value of each parameter that calls do not need.
VALUES = (
    dict.fromkeys(("dim", "index_base", "origin", "prefix", "jobs", "off_by"), 1)
    | dict.fromkeys(("wires", "layer_starts", "layers", "comparators"), 1)
    | dict.fromkeys(("k", "m", "seed", "min_count", "orders"), 3)
    | {"depth": 9, "max_memory": 100}
    | dict.fromkeys(("steepness", "fill", "cval", "regularization_strength"), 2.0)
    | dict.fromkeys(("values", "label_smoothing", "art_lambda"), 0.5)
    | {"proportion": 0.25, "time_limit": 60.0}
    | dict.fromkeys(("relaxation", "sigmoid", "interpolation_type", "distribution"), "cauchy")
    | {"dtypes": "float32", "targets": "cpu", "device": "cpu", "name": "four", "format": "nsc"}
    | {"property": "sort", "minimize": "depth", "methods": ["exhaustion"], "certificate": "four.cert"}
    | {"reduction": "sum", "by": "ranks", "gain": "linear", "interpolation": "lower", "link": "identity"}
    | {"top1": "softmax", "top1_mode": "smce", "regularization": "kl", "mode": "wrap"}
)
# What a value is tried within.
WITHIN = {
    "wires": lambda v: [v],
    "values": lambda v: [v, 1.0, 2.0, 3.0],
    "layer_starts": lambda v: [0, v],
    "layers": lambda v: [[(0, v)]],
    "comparators": lambda v: [(0, v)],
}
# Options without which a parameter does not matter.
BESIDE = {
    "index_base": {"network": [(1, 2)], "n": 2},
    "format": {"network": "two.json", "n": None},
    "network.name": {"network": "two.txt", "n": None},
    "wires": {"select": nsc.ranks(1)},
    "off_by": {"select": nsc.ranks(1)},
    "fill": {"lengths": torch.tensor([2])},
    "cval": {"mode": "constant"},
    "min_count": {"nan": "ignore"},
    "DiffSortNet.art_lambda": {"distribution": "logistic_phi"},
    "DiffTopkNet.art_lambda": {"distribution": "logistic_phi"},
    **{
        f"{kind}Filter2d.{name}": {"relaxed": True}
        for kind in ("Median", "Rank")
        for name in ("steepness", "learnable")
    },
    "search.symmetric": {"n": 4},
    "Network.text.format": {},
    "Network.save.format": {},
}
# An array has one dtype: NumPy turns a truth value beside numbers into 0 or 1 before nsc sees it.
ARRAYS = ("Network.layer_starts", "Network.from_layers.layers", "Network.from_comparators.comparators")
# Records that nsc fills in and errors that it raises take no number from a user.
OWN = ("Explorer", "Optimized", "Proof", "Selection", "Verdict", "Operator")
# A package's files come from `nsc.load` and from pickles. A q and a p_k may be lists: test_statistics.py,
# test_top_k_loss.py and test_compat_difftopk.py try them.
ELSEWHERE = (*(f"{kind}.files" for kind in ("Sorter", "Selector", "Filter")), "Network.comparators")
ELSEWHERE += ("Quantile.q", "TopKCrossEntropy.p_k", "TopKCrossEntropyLoss.p_k")
OPTIONS = {
    kind.__name__: kind for kind in (ListOptions, SelectOptions, SortOptions, LossOptions, RowLossOptions)
}
KINDS = {
    "bool": r"\bbool\b",
    "str": r"\bstr\b",
    "whole": r"\b(int|NDArray|Comparators)\b",
    "real": "[Ff]loat|Stee",
}


def public_callables():
    """Yield public callables, and public methods of classes, by their names."""
    layers = [thing for name in nsc.nn.__all__ if inspect.isclass(thing := getattr(nsc.nn, name))]
    things = [getattr(nsc, name) for name in nsc.__all__ if name not in OWN and not name.endswith("Error")]
    things += [*layers, DiffSortNet, DiffTopkNet, TopKCrossEntropyLoss, soft_rank, soft_sort]
    for thing in things:
        if callable(thing):
            yield thing.__name__, thing
        for name, method in vars(thing).items() if inspect.isclass(thing) else ():
            # A method of Sizes that wraps one of a Sorter has its arguments.
            is_of_sorter = thing is nsc.Sizes and hasattr(method, "__wrapped__")
            if (not name.startswith("_") or name == "__call__") and not is_of_sorter:
                yield f"{thing.__name__}.{name}", getattr(thing, name)
    yield from FAMILIES.items()


def parameters():
    """Return the parameters of public callables by kinds. One method of a class tries its options."""
    found, expanded = {kind: [] for kind in KINDS}, set()
    for name, thing in public_callables():
        if not callable(thing):
            continue
        typed = {each.name: str(each.annotation) for each in inspect.signature(thing).parameters.values()}
        options = typed.get("options", "").removeprefix("Unpack[").removesuffix("]")
        owner = name.split(".")[0]
        if options in OPTIONS and owner in ("Sorter", "Selector") and (owner, options) not in expanded:
            expanded.add((owner, options))
            named = OPTIONS[options].__annotations__
            typed |= {option: each.__forward_arg__ for option, each in named.items()}
        for parameter, type_ in typed.items():
            kind = next((kind for kind, words in KINDS.items() if re.search(words, type_)), None)
            if kind and f"{name}.{parameter}" not in ELSEWHERE:
                found[kind].append(f"{name}.{parameter}")
    return found


PARAMETERS = parameters()


def call_and_value(key):
    """Return a function of a parameter, and a right value for it."""
    name, _, parameter = key.rpartition(".")
    owner, _, method = name.rpartition(".")
    call = CALLS.get(name)
    if call is None:
        operands = OPERANDS.get(method, {"x": X})
        if owner.startswith("Select") and "target" in operands:
            operands = operands | {"target": ROWS}
        if method == "forward":
            call = partial(getattr(INSTANCES[owner], method), *LAYERS[type(INSTANCES[owner])][1])
        else:
            call = partial(getattr(INSTANCES[owner], method), **operands)
    beside = BESIDE.get(key, BESIDE.get(parameter, {}))
    within = WITHIN.get(parameter, lambda v: v)
    value = "cn" if key.startswith("Network.") and parameter == "format" else VALUES.get(parameter)
    if key == "network.name":
        value = "sort2"
    elif parameter not in WITHIN:
        value = getattr(call, "keywords", {}).get(parameter, value)
    return lambda v: call(**beside | {parameter: within(v)}), value


def same(a, b):
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(map(same, a, b))
    return torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b


def test_parameters_of_each_kind_are_found():
    found = set().union(*PARAMETERS.values())
    assert {"Sorter.sort.straight_through", "Sorter.loss.label_smoothing", "Selector.select.fill"} <= found
    assert {"compile.wires", "SortingNetwork.forward.dim", "verify.methods", "best.n"} <= found


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("key", PARAMETERS["whole"])
def test_whole_numbers_of_numpy_are_whole_numbers(key):
    call, value = call_and_value(key)
    expected = call(value)
    for kind in (np.int8, np.uint16, np.array):
        assert same(call(kind(value)), expected), kind


@pytest.mark.parametrize("key", PARAMETERS["whole"])
def test_other_values_than_whole_numbers_are_refused(key):
    call, value = call_and_value(key)
    truths = () if key in ARRAYS else (True, np.bool_(True), np.array(True))
    for other in (float(value), str(value), np.float64(value), 1j, *truths):
        with pytest.raises(nsc.NscError):
            call(other)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("key", PARAMETERS["real"])
def test_real_numbers_of_numpy_are_real_numbers(key):
    call, value = call_and_value(key)
    expected = call(value)
    for kind in (np.float16, np.float64, np.array):
        assert same(call(kind(value)), expected), kind


@pytest.mark.parametrize("key", PARAMETERS["real"])
def test_other_values_than_real_numbers_are_refused(key):
    call, value = call_and_value(key)
    for other in (str(value), True, np.bool_(True), np.array([value, value]), 1j, [value]):
        with pytest.raises(nsc.NscError):
            call(other)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("key", PARAMETERS["bool"])
def test_truth_values_of_numpy_are_truth_values(key):
    call, _ = call_and_value(key)
    for value in (True, False):
        expected = call(value)
        assert same(call(np.bool_(value)), expected)
        assert same(call(torch.tensor(value)), expected)


@pytest.mark.parametrize("key", PARAMETERS["bool"])
def test_what_is_no_truth_value_is_refused(key):
    """A text too: "no" and "False" would count as true."""
    call, _ = call_and_value(key)
    for other in ("no", "False", "", 0, 1, 1.0, [True], np.array([True, True]), torch.tensor(1)):
        with pytest.raises(nsc.NscError, match=f"{key.split('.')[-1]} must be True or False, got"):
            call(other)


@pytest.mark.parametrize("key", PARAMETERS["str"])
def test_what_is_no_name_is_refused(key):
    call, name = call_and_value(key)
    call(name)
    for other in (1.5, b"cpu", {"a": 1}, [["a"]], object(), torch.float32, np.float32, torch.tensor([1, 2])):
        with pytest.raises(nsc.NscError):
            call(other)
