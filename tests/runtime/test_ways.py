"""Catches a call that takes a wrong way to its kernel, and operators of torch.ops.nsc that are wrong."""

from __future__ import annotations

import functools
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
from called import each_saved_tensor_read_once, without_dense_memory
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, jacfwd, jacrev, jvp
from torch.utils._python_dispatch import TorchDispatchMode

import nsc
from nsc.contract.targets import TARGETS
from nsc.runtime.dispatch.ways import Way, way_of
from nsc.runtime.relaxed.devices import BY_DEVICE, DEVICES
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("torch compiles, exports and transforms")

N = 3
DOUBLE = torch.float64


@functools.cache
def operator():
    return nsc.compile("bitonic", N, dtypes=("float32", "float64"))


def ranks(*lead):
    return torch.randn(*lead, N).argsort(-1)


def gradient(function, x):
    """Return the gradient of the sum of squares of a result."""
    leaf = x.detach().clone().requires_grad_()
    return torch.autograd.grad(function(leaf).square().sum(), leaf)[0]


class Subclass(torch.Tensor):
    pass


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def test_plain_tensors():
    x = torch.ones(2)
    assert way_of(x, None, torch.nn.Parameter(x)) is Way.PLAIN
    assert way_of() is Way.PLAIN


def test_tensors_whose_memory_no_kernel_may_read():
    x = torch.ones(2)
    for other in (x.as_subclass(Subclass), x.to("meta"), torch._neg_view(x), x.to_sparse()):
        assert way_of(x, other) is Way.WATCHED
    with Mode():
        assert way_of(x) is Way.WATCHED


def test_a_tracer():
    ways = []

    def traced(x):
        ways.append(way_of(x))
        return x + 1

    torch.jit.trace(traced, torch.ones(2), check_trace=False)
    assert ways == [Way.WATCHED]


def test_transforms_and_forward_mode():
    ways = []

    def record(x):
        ways.append((way_of(x), way_of(x, with_tangents=False)))
        return (x * x).sum()

    torch.func.grad(record)(torch.ones(2))
    with forward_ad.dual_level():
        record(forward_ad.make_dual(torch.ones(2), torch.ones(2)))
    assert ways == [(Way.TRANSFORMED, Way.TRANSFORMED), (Way.FORWARD, Way.PLAIN)]


def test_a_compiled_program():
    @torch.compile(fullgraph=True, backend="eager")
    def compiled(x):
        return x + (1 if way_of(x) is Way.COMPILED else 0)

    assert torch.equal(compiled(torch.ones(2)), torch.full((2,), 2.0))


def test_every_device_of_a_target_has_kernels():
    assert set(DEVICES) == {device for target in TARGETS.values() for device in target.devices}
    assert BY_DEVICE[torch.device("cpu")] is DEVICES["cpu"]
    assert BY_DEVICE[torch.device("cuda:1")] is DEVICES["cuda"]
    assert BY_DEVICE[torch.device("meta")] is None


# The operators of torch.ops.nsc.


def registered(name):
    """Return an operator of torch.ops.nsc as a function of x, to a number."""
    spec, steepness, target = operator().kernel.spec, torch.ones(2, dtype=DOUBLE), ranks(2)
    weights, call = torch.randn(2, N, dtype=DOUBLE), getattr(torch.ops.nsc, name)
    median = nsc.compile_filter((1, 2), 1)
    return {
        "relax": lambda x: (call(x, steepness, None, "none", spec)[0] * weights).sum(),
        "loss": lambda x: call(x, steepness, target, "cross_entropy", spec)[0].sum(),
        "relax_backward": lambda x: call(weights, None, x, steepness, None, "none", spec)[0].sum(),
        "exact_sort": lambda x: (call(x, 1, True, True, spec)[0].square() * weights).sum(),
        "exact_values": lambda x: (call(x, 1, False, spec).square() * weights).sum(),
        "filter": lambda x: (call(x, median._key, "wrap", 0.0, 0, (0, 0)).square() * weights).sum(),
    }[name]


@pytest.mark.parametrize(
    "name", [name[5:] for name in torch._C._dispatch_get_all_op_names() if name.startswith("nsc::")]
)
def test_the_registered_operators_themselves_are_right_in_every_transform(name):
    """They are public operators of torch, so every transform of them must be right, or refused by name."""
    function = registered(name)
    x, tangent = torch.randn(2, N, dtype=DOUBLE), torch.randn(2, N, dtype=DOUBLE)
    leaf = x.clone().requires_grad_()
    # The gradient of relax_backward is a transform, which takes no such hooks.
    with nullcontext() if name == "relax_backward" else each_saved_tensor_read_once():
        (expected,) = torch.autograd.grad(function(leaf), leaf)
    step = 1e-6 * tangent
    difference = (function(x + step) - function(x - step)) / 2e-6
    torch.testing.assert_close((expected * tangent).sum(), difference, rtol=1e-5, atol=1e-7)
    with forward_ad.dual_level():
        dual = forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(dual, (expected * tangent).sum())
    torch.testing.assert_close(grad(function)(x), expected)
    if name == "relax_backward":
        with pytest.raises(nsc.OperandError, match="as jvp of grad"):
            jvp(function, (x,), (tangent,))
        return
    torch.testing.assert_close(jvp(function, (x,), (tangent,))[1], (expected * tangent).sum())
    second = torch.autograd.functional.hessian(function, leaf)
    for both in (jacrev(jacrev(function)), jacfwd(jacrev(function)), jacrev(jacfwd(function))):
        torch.testing.assert_close(both(x), second)


def operands(routing):
    """Return the operands of `nsc::relax` for a routing."""
    x = torch.randn(3, N, dtype=DOUBLE, requires_grad=True)
    steepness = torch.tensor(1.5, dtype=DOUBLE, requires_grad=True)
    extra = {
        "route": torch.randn(3, N, 2, dtype=DOUBLE, requires_grad=True),
        "cross_entropy": ranks(3),
        "cross_entropy_of_shares": torch.rand(3, N + 1, N, dtype=DOUBLE, requires_grad=True),
        "rows": torch.tensor([[2, 0]]).expand(3, 2),
    }.get(routing)
    return x, steepness.expand(3), extra, routing, operator().kernel.spec


@pytest.mark.parametrize(
    "routing",
    ["none", "permutation", "rows", "cross_entropy_of_shares"],
)
def test_opcheck(routing):
    torch.library.opcheck(torch.ops.nsc.relax, operands(routing))


def test_opcheck_without_a_compiler(monkeypatch):
    monkeypatch.setattr(Kernel, "_engine_of", lambda kernel, real: None)
    op = nsc.compile("bitonic", N, name="without_a_compiler")  # no kernel of this name was loaded
    operands = torch.randn(3, N, requires_grad=True), torch.ones(3), None, "none", op.kernel.spec
    torch.library.opcheck(torch.ops.nsc.relax, operands)


def test_opcheck_of_the_backward():
    x, steepness, *rest = operands("route")
    values, routed = torch.ops.nsc.relax(x, steepness, *rest)
    grads = (torch.randn_like(values), torch.randn_like(routed).requires_grad_())
    torch.library.opcheck(torch.ops.nsc.relax_backward, (*grads, x, steepness.detach(), *rest))


@pytest.mark.parametrize("routing", ["cross_entropy", "cross_entropy_of_shares"])
def test_opcheck_of_the_loss(routing):
    torch.library.opcheck(torch.ops.nsc.loss, operands(routing))


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


def test_other_operands_with_a_negation_bit():
    """They share the memory of the tensor that they negate, so kernels must not read it unchanged."""
    op = operator()
    x, payload, steepness = torch.randn(4, N), torch.randn(4, N, 2), torch.tensor(-2.0)
    assert torch._neg_view(x).is_neg()
    assert torch.equal(op.route(x, torch._neg_view(payload)), op.route(x, -payload))
    assert torch.equal(op.sort(x, torch._neg_view(steepness)), op.sort(x, 2.0))
    leaf, cotangent = x.clone().requires_grad_(), torch.randn(4, N)
    (ours,) = torch.autograd.grad(op.sort(leaf), leaf, torch._neg_view(cotangent))
    assert torch.equal(ours, torch.autograd.grad(op.sort(leaf), leaf, -cotangent)[0])
    z = torch.randn(4, N, dtype=torch.complex64)
    with pytest.raises(nsc.OperandTypeError, match="complex64 is not served"):
        op.sort(z.conj())


def test_other_operands_without_dense_memory_are_refused_in_one_line():
    op, x = operator(), torch.randn(2, N)
    for operand, call in {"payload": op.route, "steepness": op.sort, "target": op.cross_entropy}.items():
        for words, tensor in without_dense_memory(x).items():
            with pytest.raises(nsc.OperandTypeError, match=f"bitonic_3.*: {operand} must be.*{words}"):
                call(x, tensor)


def test_a_sparse_gradient():
    x, indices = torch.randn(4, N, requires_grad=True), torch.tensor([0, 2])
    losses = [
        torch.nn.functional.embedding(indices, operator().sort(x), sparse=sparse).square().sum()
        for sparse in (False, True)
    ]
    dense, ours = (torch.autograd.grad(loss, x)[0] for loss in losses)
    assert torch.equal(ours, dense)


def test_a_device_that_nsc_has_no_kernels_for():
    with FakeTensorMode():
        for kind in ("mps", "xpu"):
            said = f"x is on {kind}:0, nsc has kernels for cpu and cuda alone: move x with .cpu()"
            with pytest.raises(nsc.OperandError, match=re.escape(said)):
                operator().sort(torch.empty(2, N, device=kind))
        with pytest.raises(nsc.OperandError, match=r"compiled for cpu: move x, or compile with targets="):
            operator().sort(torch.empty(2, N, device="cuda"))


def test_threads():
    """Many threads call a kernel at once, its first call included."""
    op = nsc.compile("odd_even", N, name="called_by_threads")
    inputs = torch.randn(32, 4, N)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda x: gradient(op.sort, x), inputs))
    for x, result in zip(inputs, results, strict=True):
        assert torch.equal(result, gradient(op.sort, x))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_graphs():
    op = nsc.compile("bitonic", N, targets=("cpu", "cuda"))
    x = torch.randn(4, N, device="cuda")
    op.sort(x)  # builds and loads before the capture
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = op.sort(x, 2.0)
    x.copy_(torch.randn(4, N))
    graph.replay()
    torch.testing.assert_close(out.cpu(), op.sort(x.cpu(), 2.0))
