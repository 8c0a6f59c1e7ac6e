"""Catches a method that sorts another axis than the one named, or puts results elsewhere."""

from __future__ import annotations

import functools

import pytest
import torch

import nsc
from nsc.nn import SelectionNetwork, SortingNetwork

pytestmark = pytest.mark.slow("many kernels are built")

N, K = 4, 2


@functools.cache
def sorter():
    return nsc.compile("bitonic", N, dtypes=("float32", "float64"))


@functools.cache
def selector():
    return nsc.compile("bitonic", N, select=nsc.ranks(3, 0), dtypes=("float32", "float64"))


def called(method, make=lambda operator: operator):
    """Return a method as a function of x, payload, target and options; what it does not take is left out."""
    takes = {"route": ("payload",), "topk": (K,), "top_k_weights": (K,), "loss": ("target",)}
    name = "loss" if method.endswith("entropy") else method.removeprefix("selector.")
    selects = method.startswith("selector.")
    operator = make(selector() if selects else sorter())

    def call(x, payload, target, **options):
        if selects:  # its targets are rows of P, whose axes stay at the end
            target = shares(x, options.get("dim", -1))
        extra = [{"payload": payload, "target": target}.get(each, each) for each in takes.get(name, ())]
        function = operator if name == "call" else getattr(operator, method.removeprefix("selector."))
        results = function(x, *extra, **options)
        return results if isinstance(results, tuple) else (results,)

    return call


def shares(x, dim):
    """Return what rows of P should be; a wrong axis is refused before they are looked at."""
    is_axis = type(dim) is int and -x.dim() <= dim < x.dim()
    samples = x.movedim(dim if is_axis else -1, -1).shape[:-1]
    return torch.linspace(0, 1, K * N, dtype=x.dtype).view(K, N).expand(*samples, K, N)


# What a method returns: tensors of the shape of x, of x and columns, rows of P, or a loss.
RETURNS = {
    "call": ["x"],
    "sort": ["x"],
    "sort_with_permutation": ["x", "rows"],
    "rank": ["x"],
    "route": ["columns"],
    "topk": ["x", "rows"],
    "top_k_weights": ["x"],
    "cross_entropy": ["loss"],
    "binary_cross_entropy": ["loss"],
    "hard_sort": ["x", "x"],
    "selector.call": ["x"],
    "selector.select": ["x"],
    "selector.select_with_rows": ["x", "rows"],
    "selector.route": ["columns"],
    "selector.cross_entropy": ["loss"],
    "selector.binary_cross_entropy": ["loss"],
    "selector.hard_select": ["x", "x"],
}
# One of the methods that move their axes in the same way.
OF_EACH_KIND = ("sort_with_permutation", "route", "cross_entropy", "hard_sort")
OF_LAYERS = {name: kinds for name, kinds in RETURNS.items() if not name.endswith("call")}
SHAPES = [(N,), (3, N), (2, N, 3), (N, 0, 2)]
CASES = [(shape, dim) for shape in SHAPES for dim in {shape.index(N), shape.index(N) - len(shape)}]


def inputs(shape, dim, *, requires_grad=True):
    """Return x, a payload of columns, and a target."""
    random = torch.Generator().manual_seed(0)
    x = torch.randn(shape, generator=random)
    payload = torch.randn(*shape, 2, generator=random)
    target = torch.rand(shape, generator=random).argsort(dim)
    return x.requires_grad_(requires_grad), payload.requires_grad_(requires_grad), target


def by_hand(call, kinds, x, payload, target, dim):
    axis = dim % x.dim()
    results = call(x.movedim(axis, -1), payload.movedim(axis, -2), target.movedim(axis, -1))
    back = {"x": lambda r: r.movedim(-1, axis), "columns": lambda r: r.movedim(-2, axis)}
    return [back.get(kind, lambda r: r)(result) for kind, result in zip(kinds, results, strict=True)]


def gradients(results, x, payload):
    total = sum(r.square().sum() for r in results if r.is_floating_point())
    return torch.autograd.grad(total, (x, payload), materialize_grads=True)


@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("method", RETURNS)
def test_results_and_gradients_are_those_of_the_moved_axis(method, shape, dim):
    x, payload, target = inputs(shape, dim)
    call = called(method)
    actual = call(x, payload, target, dim=dim)
    expected = by_hand(call, RETURNS[method], x, payload, target, dim)
    for a, e in zip(actual, expected, strict=True):
        assert a.dtype == e.dtype
        torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)
    for a, e in zip(gradients(actual, x, payload), gradients(expected, x, payload), strict=True):
        torch.testing.assert_close(a, e, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("method", OF_LAYERS)
def test_layers_have_the_axes_of_their_operators(method):
    def layer(operator):
        kind = SelectionNetwork if method.startswith("selector.") else SortingNetwork
        return kind(operator, steepness=operator.default_steepness)

    args = inputs((2, N, 3), 1)
    for actual, expected in zip(
        called(method, layer)(*args, dim=1), called(method)(*args, dim=1), strict=True
    ):
        torch.testing.assert_close(actual, expected)


def test_layers_call_along_an_axis():
    x = torch.randn(2, N, 3)
    assert [r.shape for r in SortingNetwork(sorter())(x, dim=1)] == [(2, N, 3), (2, 3, N, N)]
    assert [r.shape for r in SelectionNetwork(selector())(x, dim=1)] == [(2, 2, 3), (2, 3, 2, N)]
    traced = torch.fx.symbolic_trace(SortingNetwork(sorter()), concrete_args={"dim": 1})
    torch.testing.assert_close(traced(x, 1), SortingNetwork(sorter())(x, dim=1))


@pytest.mark.parametrize("method", OF_EACH_KIND)
def test_compiled_along_an_axis(method):
    torch.compiler.reset()  # all methods are calls of one function, which torch compiles a few times only
    args = inputs((2, N, 3), 1)
    call = called(method)
    compiled = torch.compile(lambda *args: call(*args, dim=-2), fullgraph=True, backend="aot_eager")
    expected = call(*args, dim=1)
    actual = compiled(*args)
    for a, e in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, e)
    for a, e in zip(gradients(actual, *args[:2]), gradients(expected, *args[:2]), strict=True):
        torch.testing.assert_close(a, e)


@pytest.mark.parametrize("method", OF_EACH_KIND)
def test_mapped_along_an_axis(method):
    args = inputs((2, N, 3), 1, requires_grad=False)
    call = called(method)
    mapped = torch.vmap(lambda *args: call(*args, dim=0))(*args)
    each = [call(*sample, dim=0) for sample in zip(*args, strict=True)]
    for a, e in zip(mapped, zip(*each, strict=True), strict=True):
        torch.testing.assert_close(a, torch.stack(e))


@pytest.mark.parametrize("dim", [-1, 0])
def test_a_tensor_without_axes_is_one_value(dim):
    op = nsc.compile("bitonic", 1)
    x = torch.tensor(3.0, requires_grad=True)
    assert op.sort(x, dim=dim).shape == op.rank(x, dim=dim).shape == ()
    values, P = op.sort_with_permutation(x, dim=dim)
    assert (values, P.tolist()) == (3, [[1]])
    values, rows = op.topk(x, 1, dim=dim)
    assert values.shape == torch.topk(x, 1, dim=dim).values.shape == ()
    assert rows.shape == (1, 1)
    assert op.route(x, torch.ones(5), dim=dim).tolist() == [1] * 5
    assert op.cross_entropy(x, torch.tensor(0), dim=dim) == 0
    assert torch.autograd.grad(values, x)[0] == 1
    one = nsc.compile("bitonic", 1, select=nsc.top_k(1))
    assert [r.shape for r in one.select_with_rows(x, dim=dim)] == [(), (1, 1)]
    assert one.route(x, torch.ones(5), dim=dim).shape == (5,)


@pytest.mark.parametrize("method", RETURNS)
def test_wrong_axes(method):
    for dim, error, message in (
        (3, nsc.OperandError, r"\w+: dim must be in -3 … 2 for x of 3 axes, got 3$"),
        (2, nsc.OperandError, r"\w+: x has 3 values along dim 2, this op sorts 4: compile one with n=3$"),
        ("1", nsc.OperandTypeError, r"\w+: dim must be an integer, got '1'$"),
    ):
        with pytest.raises(error, match=message):
            called(method)(*inputs((2, N, 3), 1), dim=dim)
