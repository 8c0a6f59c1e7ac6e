"""Every transform of torch gives the right result or an error, never a silent zero."""

from __future__ import annotations

import functools
import warnings

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.utils.checkpoint import checkpoint

import nsc

N = 3
DOUBLE = torch.float64


@functools.cache
def operator(error_free=False):
    return nsc.compile("bitonic", N, error_free=error_free, dtypes=("float32", "float64"))


def target(*lead):
    return torch.randn(*lead, N).argsort(-1)


def inputs(batch=3):
    x = torch.randn(batch, N, dtype=DOUBLE, requires_grad=True)
    steepness = torch.tensor(1.5, dtype=DOUBLE, requires_grad=True)
    return x, steepness, torch.randn(batch, N, 2, dtype=DOUBLE, requires_grad=True)


def methods():
    """Return the operators as functions of (x, steepness, payload) with differentiable outputs."""
    op, ranks = operator(), target(3)
    return {
        "sort": lambda x, s, v: op.sort(x, s),
        "sort_with_permutation": lambda x, s, v: op.sort_with_permutation(x, s),
        "rank": lambda x, s, v: op.rank(x, s),
        "route": lambda x, s, v: op.route(x, v, s),
        "topk": lambda x, s, v: op.topk(x, 2, s),
        "cross_entropy": lambda x, s, v: op.cross_entropy(x, ranks, s),
        "binary_cross_entropy": lambda x, s, v: op.binary_cross_entropy(x, ranks, s),
        "hard_sort": lambda x, s, v: op.hard_sort(x)[0],
    }


METHODS = list(methods())


def used(method, x, steepness, payload):
    """Return the inputs that a method depends on, and the method as a function of these alone."""
    function = methods()[method]
    if method == "hard_sort":
        return (x,), lambda a: function(a, None, None)
    if method == "route":
        return (x, steepness, payload), function
    return (x, steepness), lambda a, s: function(a, s, None)


@pytest.mark.parametrize("method", METHODS)
def test_gradcheck(method):
    args, function = used(method, *inputs())
    assert torch.autograd.gradcheck(function, args, check_batched_grad=method != "hard_sort")


@pytest.mark.parametrize("method", METHODS)
def test_double_backward(method):
    args, function = used(method, *inputs(2))
    if method in ("cross_entropy", "binary_cross_entropy"):
        ranks = target(2)
        args, function = args, lambda x, s: getattr(operator(), method)(x, ranks, s)
    assert torch.autograd.gradgradcheck(function, args)


@pytest.mark.parametrize("method", METHODS)
def test_forward_mode(method):
    args, function = used(method, *inputs())
    assert torch.autograd.gradcheck(function, args, check_forward_ad=True, check_backward_ad=False)


def operands(routing):
    """Return the operands of `nsc::relax` for a routing."""
    x, steepness, payload = inputs()
    extra = {
        "route": payload,
        "transposed": payload,
        "cross_entropy": target(3),
        "rows": torch.tensor([[2, 0]]).expand(3, 2),
    }.get(routing)
    return x, steepness.expand(3), extra, routing, operator().kernel.spec


@pytest.mark.parametrize("routing", ["none", "permutation", "route", "transposed", "cross_entropy", "rows"])
def test_opcheck(routing):
    torch.library.opcheck(torch.ops.nsc.relax, operands(routing))


@pytest.mark.parametrize("routing", ["route", "cross_entropy"])
def test_opcheck_of_the_backward(routing):
    x, steepness, *rest = operands(routing)
    values, routed = torch.ops.nsc.relax(x, steepness, *rest)
    grads = (torch.randn_like(values), torch.randn_like(routed).requires_grad_())
    torch.library.opcheck(torch.ops.nsc.relax_backward, (*grads, x, steepness.detach(), *rest))


def test_opcheck_of_the_loss_and_of_exact_sorting():
    x, steepness, _ = inputs()
    spec = operator().kernel.spec
    torch.library.opcheck(torch.ops.nsc.loss, (x, steepness.expand(3), target(3), "cross_entropy", spec))
    torch.library.opcheck(torch.ops.nsc.hard_sort, (x.detach(), spec))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dynamic", [False, True])
def test_compile_fullgraph(method, dynamic):
    torch._dynamo.reset()
    args, function = used(method, *inputs())

    def total(*args):
        out = function(*args)
        outs = out if isinstance(out, tuple) else (out,)
        return sum((o * torch.arange(o.numel()).view(o.shape)).sum() for o in outs)

    compiled = torch.compile(total, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    torch.testing.assert_close(compiled(*args), total(*args))
    ours = torch.autograd.grad(compiled(*args), args)
    for actual, expected in zip(ours, torch.autograd.grad(total(*args), args), strict=True):
        torch.testing.assert_close(actual, expected)


def test_compile_with_inductor_and_a_changing_steepness_compiles_once():
    torch._dynamo.reset()
    op = operator()
    counter = torch._dynamo.testing.CompileCounterWithBackend("inductor")
    compiled = torch.compile(lambda x, s: op.rank(2 * x, s) + 1, fullgraph=True, backend=counter)
    x = torch.randn(4, N)
    for steepness in (1.0, 2.0, 3.0):
        s = torch.tensor(steepness)
        torch.testing.assert_close(compiled(x, s), op.rank(2 * x, s) + 1)
    assert counter.frame_count == 1


def test_export_runs_the_kernel():
    op = operator()

    class Model(torch.nn.Module):
        def forward(self, x):
            return op.rank(x)

    x = torch.randn(4, N)
    program = torch.export.export(Model(), (x,))
    assert "nsc.relax" in str(program.graph)
    torch.testing.assert_close(program.module()(x), op.rank(x))


@pytest.mark.parametrize("method", METHODS)
def test_vmap(method):
    op = operator()
    x = torch.randn(4, 3, N, dtype=DOUBLE)
    payload, ranks = torch.randn(4, 3, N, 2, dtype=DOUBLE), target(4, 3)
    calls = {
        "route": (op.route, (x, payload)),
        "topk": (lambda a: op.topk(a, 2), (x,)),
        "cross_entropy": (op.cross_entropy, (x, ranks)),
        "binary_cross_entropy": (op.binary_cross_entropy, (x, ranks)),
    }
    function, args = calls.get(method, (getattr(op, method), (x,)))
    mapped = vmap(function)(*args)
    looped = [function(*row) for row in zip(*args, strict=True)]
    for k, out in enumerate(mapped if isinstance(mapped, tuple) else (mapped,)):
        expected = torch.stack([row[k] if isinstance(row, tuple) else row for row in looped])
        assert torch.equal(out, expected)


def test_vmap_over_steepness_over_another_dim_and_nested():
    op = operator()
    x, s = torch.randn(N, 3, dtype=DOUBLE), torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)
    both = vmap(op.sort, in_dims=(1, 0))(x, s)
    assert torch.equal(both, torch.stack([op.sort(x[:, i], s[i]) for i in range(3)]))
    grid = vmap(vmap(op.sort, in_dims=(None, 0)), in_dims=(1, None))(x, s)
    assert torch.equal(grid[2, 1], op.sort(x[:, 2], s[1]))
    payload = torch.randn(N, 2, dtype=DOUBLE)
    routed = vmap(op.route, in_dims=(1, None))(x, payload)
    assert torch.equal(routed[1], op.route(x[:, 1], payload))


def test_per_sample_gradients():
    op = operator()
    x, ranks = torch.randn(6, N, dtype=DOUBLE), target(6)
    ours = vmap(grad(op.cross_entropy))(x, ranks)
    for row, r, actual in zip(x, ranks, ours, strict=True):
        row = row.clone().requires_grad_()
        torch.testing.assert_close(actual, torch.autograd.grad(op.cross_entropy(row, r), row)[0])


@pytest.mark.parametrize("error_free", [False, True])
def test_func_grad_vjp_jvp_jacobians_and_hessian_agree(error_free):
    op = operator(error_free)
    x, tangent = torch.randn(N, dtype=DOUBLE), torch.randn(N, dtype=DOUBLE)

    def function(a):
        values, P = op.sort_with_permutation(a, 1.5)
        return values + P.square().sum(0)

    leaf = x.clone().requires_grad_()
    expected = torch.autograd.functional.jacobian(function, leaf)
    assert expected.abs().sum() > 0
    torch.testing.assert_close(jacrev(function)(x), expected)
    torch.testing.assert_close(jacfwd(function)(x), expected)
    torch.testing.assert_close(jvp(function, (x,), (tangent,))[1], expected @ tangent)
    torch.testing.assert_close(vjp(function, x)[1](tangent)[0], tangent @ expected)
    with forward_ad.dual_level():
        out = forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent)))
    torch.testing.assert_close(out.tangent, expected @ tangent)
    total = lambda a: function(a).square().sum()  # noqa: E731
    second = torch.autograd.functional.hessian(total, leaf)
    torch.testing.assert_close(grad(total)(x), torch.autograd.grad(total(leaf), leaf)[0])
    torch.testing.assert_close(hessian(total)(x), second)
    torch.testing.assert_close(jacrev(jacrev(total))(x), second)
    torch.testing.assert_close(jacrev(jacfwd(total))(x), second)


def test_forward_mode_checks_its_operands_too():
    op = operator()
    with forward_ad.dual_level():
        x = forward_ad.make_dual(torch.randn(2, N), torch.randn(2, N))
        with pytest.raises(nsc.OperandError, match="each rank"):
            op.cross_entropy(x, torch.zeros(2, N, dtype=torch.int64))
        with pytest.raises(nsc.OperandError, match="above 0"):
            op.sort(x, torch.tensor(-1.0))


def test_checkpoint():
    op = operator()
    x, ranks = torch.randn(3, N, requires_grad=True), target(3)
    plain = torch.autograd.grad(op.cross_entropy(x * 2, ranks), x)[0]
    loss = checkpoint(lambda a: op.cross_entropy(a * 2, ranks), x, use_reentrant=False)
    assert torch.equal(torch.autograd.grad(loss, x)[0], plain)


def test_functional_call_and_no_grad():
    layer = nsc.nn.SortingNetwork(operator(), learnable=True)
    x = torch.randn(2, N)
    halved = {"log_steepness": layer.log_steepness.detach() - 1}
    assert not torch.equal(functional_call(layer, halved, x)[1], layer(x)[1])
    with torch.no_grad():
        assert not layer(x)[0].requires_grad
    with torch.inference_mode():
        assert torch.equal(layer(x)[0], operator().sort(x, layer.steepness))


def test_a_loss_on_values_alone_gives_P_no_gradient_to_allocate():
    gradients_of_P = []

    class Probe(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "relax_backward" in str(func):
                gradients_of_P.append(args[1])
            return func(*args, **(kwargs or {}))

    x = torch.randn(2, N, requires_grad=True)
    values, _ = operator().sort_with_permutation(x)
    with Probe():
        values.sum().backward()
    assert gradients_of_P == [None]


def test_no_way_warns():
    op = operator()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = torch.randn(2, N, requires_grad=True)
        op.sort(x).sum().backward()
        vmap(grad(lambda a: op.sort(a).sum()))(x.detach())
        op.hard_sort(x)[0].sum().backward()
