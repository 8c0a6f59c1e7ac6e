"""Catches a loss that is not a float32 number under autocast, as torch's are, or other results that are."""

from __future__ import annotations

import functools
import importlib

import pytest
import torch
from torch.nn.functional import cross_entropy

import nsc
from nsc.contract.routings import LOSSES
from nsc.nn import SortingNetwork, TopKCrossEntropy

pytestmark = pytest.mark.slow("torch compiles, exports and transforms")

N, BATCH = 4, 6
HALVES = (torch.bfloat16, torch.float16)
DTYPES = (*HALVES, torch.float32, torch.float64)
BOTH = ("float32", "float64")
# Of losses that differ by their name alone one is compiled.
COMPILED = ("Sorter.cross_entropy", "TopKCrossEntropy, none")


@functools.cache
def operator():
    return nsc.compile("bitonic", N, dtypes=BOTH)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """Return the functions of a package, imported from its folder."""
    folder = tmp_path_factory.mktemp("packages")
    (folder / "autocast_4").mkdir()
    for name, text in operator().kernel.files.items():
        (folder / "autocast_4" / name).write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield importlib.import_module("autocast_4")


def losses(module):
    """Return every loss as a function of scores, and its target."""
    ranks, labels = torch.randn(BATCH, N).argsort(-1), torch.randint(N, (BATCH,))
    layer = SortingNetwork(operator(), learnable=True)
    functions = {}
    for name in LOSSES:
        for owner in (operator(), layer):
            if hasattr(owner, name):
                functions[f"{type(owner).__name__}.{name}"] = getattr(owner, name)
            functions[f"{type(owner).__name__}.loss, {name}"] = functools.partial(owner.loss, name)
        functions[f"package.{name}"] = getattr(module, name)
    calls = {name: functools.partial(_with, function, ranks) for name, function in functions.items()}
    for reduction, m in (("mean", None), ("none", 3)):
        top_k = nsc.compile("best", m or N, select=nsc.top_k(2), dtypes=BOTH)
        loss = TopKCrossEntropy(N, (0.5, 0.5), m, reduction=reduction, network=top_k)
        calls[f"TopKCrossEntropy, {reduction}"] = functools.partial(_with, loss, labels)
    return calls


def _with(function, target, x):
    return function(x, target)


def gradient(function, x):
    leaf = x.detach().clone().requires_grad_()
    value = function(leaf)
    (grad,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), grad


@pytest.mark.parametrize(
    ("mode", "autocast", "dtypes"),
    [
        ("eager", torch.bfloat16, DTYPES),
        ("eager", torch.float16, DTYPES),
        ("compile", torch.bfloat16, (torch.float16,)),
    ],
)
def test_a_loss_has_the_dtype_of_torchs_and_the_value_of_float32(mode, autocast, dtypes, module):
    for name, loss in losses(module).items():
        torch._dynamo.reset()
        called = loss
        if mode == "compile":
            if name not in COMPILED:
                continue
            called = torch.compile(loss, fullgraph=True, backend="aot_eager")
        for dtype in dtypes:
            x = torch.randn(BATCH, N).to(dtype)
            wide = x if dtype == torch.float64 else x.float()
            expected, expected_grad = gradient(loss, wide)
            assert called(x).dtype == dtype, name
            with torch.autocast("cpu", dtype=autocast):
                value, grad = gradient(called, x)
                theirs = cross_entropy(x, torch.zeros(BATCH, dtype=torch.int64))
            assert value.dtype == theirs.dtype == wide.dtype, (name, dtype)
            assert torch.equal(value, expected), (name, dtype)
            assert torch.equal(grad, expected_grad.to(dtype)), (name, dtype)


def test_a_graph_that_is_taken_under_autocast():
    loss = TopKCrossEntropy(N, (0.5, 0.5))
    x, labels = torch.randn(BATCH, N).bfloat16(), torch.randint(N, (BATCH,))
    expected, traced = loss(x.float(), labels), torch.fx.symbolic_trace(loss)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        exported = torch.export.export(loss, (x, labels)).module()
        for graph in (traced, exported, torch.func.vmap(loss)):
            value = graph(x, labels)
            assert value.dtype == torch.float32
            torch.testing.assert_close(value.mean(), expected)
    assert traced(x, labels).dtype == torch.bfloat16


def test_autocast_of_another_device_changes_nothing(module):
    torch.set_autocast_enabled("cuda", True)
    try:
        for name, loss in losses(module).items():
            x = torch.randn(BATCH, N).bfloat16()
            assert loss(x).dtype == torch.bfloat16, name
    finally:
        torch.set_autocast_enabled("cuda", False)


@pytest.mark.parametrize("dtype", HALVES)
def test_all_else_keeps_the_dtype_of_the_scores(dtype):
    op, top = operator(), nsc.compile("bitonic", N, select=nsc.top_k(2), dtypes=BOTH)
    payload = torch.randn(BATCH, N, 2)
    calls = {
        "sort_with_permutation": op.sort_with_permutation,
        "rank": op.rank,
        "route": lambda x: op.route(x, payload.to(dtype)),
        "topk": lambda x: op.topk(x, 2),
        "hard_sort": lambda x: op.hard_sort(x).values,
        "select_with_rows": top.select_with_rows,
        "torch.sort": lambda x: torch.sort(x).values,
    }
    x = torch.randn(BATCH, N).to(dtype)
    for name, call in calls.items():
        plain = call(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            cast = call(x)
        plain, cast = (result if isinstance(result, tuple) else (result,) for result in (plain, cast))
        for ours, expected in zip(cast, plain, strict=True):
            assert ours.dtype == dtype, name
            assert torch.equal(ours, expected), name
