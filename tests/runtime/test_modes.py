"""What the table of test_torch_modes.py has no cell for: torch.ops.nsc, other operands than x, devices."""

from __future__ import annotations

import copy
import functools
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest
import torch
import torch._dynamo.testing
from called import each_saved_tensor_read_once, without_dense_memory
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

import nsc
from nsc.nn import SelectionNetwork, SortingNetwork, TopKCrossEntropy
from nsc.runtime.relaxed.kernel import Kernel

pytestmark = pytest.mark.slow("torch compiles, exports and transforms")

N = 3
DOUBLE = torch.float64


@functools.cache
def operator(n=N):
    return nsc.compile("bitonic", n, dtypes=("float32", "float64"))


def ranks(*lead, n=N):
    return torch.randn(*lead, n).argsort(-1)


def gradient(function, x):
    """Return the gradient of the sum of squares of a result."""
    leaf = x.detach().clone().requires_grad_()
    return torch.autograd.grad(function(leaf).square().sum(), leaf)[0]


# torch.compile.


@pytest.mark.parametrize(("method", "backend"), [("sort", "aot_eager"), ("cross_entropy", "eager")])
def test_a_changing_float_steepness_does_not_recompile(method, backend):
    """It compiles once for the first value, once for all others, and once for all whole numbers."""
    torch._dynamo.reset()
    op, target = operator(), ranks(4)
    call = op.sort if method == "sort" else lambda x, s: op.cross_entropy(x, target, s)
    counter = torch._dynamo.testing.CompileCounterWithBackend(backend)
    compiled = torch.compile(call, fullgraph=True, backend=counter)
    x = torch.randn(4, N)
    for steepness in (1.0, 2.0, 3.5, 0.1, 7, 10, 12):
        torch.testing.assert_close(compiled(x, steepness), call(x, steepness))
        ours = gradient(lambda a, s=steepness: compiled(a, s), x)
        torch.testing.assert_close(ours, gradient(lambda a, s=steepness: call(a, s), x))
    assert counter.frame_count <= 2 * 3  # without and with a gradient
    with pytest.raises(nsc.OperandError, match="above 0"):
        compiled(x, -1.0)


@pytest.mark.parametrize("method", ["sort_with_permutation", "cross_entropy", "hard_sort"])
def test_a_gradient_through_a_compiled_gradient(method):
    torch._dynamo.reset()
    # Torch traces each comparator of the reference: one is enough.
    op, target = operator(2), ranks(4, n=2)
    function = {
        "sort_with_permutation": lambda x: op.sort_with_permutation(x)[1],
        "cross_entropy": lambda x: op.cross_entropy(x, target),
        "hard_sort": lambda x: op.hard_sort(x)[0],
    }[method]
    call = grad(lambda a: function(a).square().sum())
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    x = torch.randn(4, 2)
    torch.testing.assert_close(gradient(compiled, x), gradient(call, x))


# torch.func.


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


def test_a_tangent_of_the_cotangent_is_not_lost():
    op = operator()
    x = torch.randn(2, N, dtype=DOUBLE, requires_grad=True)
    cotangent, tangent = torch.randn(2, N, dtype=DOUBLE), torch.randn(2, N, dtype=DOUBLE)
    values = op.sort(x)
    with forward_ad.dual_level():
        (pulled,) = torch.autograd.grad(
            values, x, forward_ad.make_dual(cotangent, tangent), retain_graph=True
        )
        pulled_tangent = forward_ad.unpack_dual(pulled).tangent
    torch.testing.assert_close(pulled_tangent, torch.autograd.grad(values, x, tangent)[0])


def test_a_module_that_torch_fx_traced_is_pickled():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), SortingNetwork(operator(), learnable=True))
    traced, x = torch.fx.symbolic_trace(model), torch.randn(4, N)
    assert torch.equal(pickle.loads(pickle.dumps(traced))(x)[1], traced(x)[1])


# Tensors that are not plain memory.


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


@pytest.mark.parametrize(
    ("operand", "call"),
    [
        ("payload", lambda t: operator().route(torch.randn(2, N), t)),
        ("steepness", lambda t: operator().sort(torch.randn(2, N), t)),
        ("target", lambda t: operator().cross_entropy(torch.randn(2, N), t)),
        ("target", lambda t: operator().binary_cross_entropy(torch.randn(2, N), t)),
    ],
)
def test_other_operands_without_dense_memory_are_refused_in_one_line(operand, call):
    for words, tensor in without_dense_memory(torch.randn(2, N)).items():
        with pytest.raises(nsc.OperandTypeError, match=f"bitonic_3.*: {operand} must be.*{words}"):
            call(tensor)


def test_a_sparse_gradient():
    x, indices = torch.randn(4, N, requires_grad=True), torch.tensor([0, 2])
    losses = [
        torch.nn.functional.embedding(indices, operator().sort(x), sparse=sparse).square().sum()
        for sparse in (False, True)
    ]
    dense, ours = (torch.autograd.grad(loss, x)[0] for loss in losses)
    assert torch.equal(ours, dense)


# Modules.


@pytest.mark.parametrize("where", ["meta", "moved", "fake", "vmap"])
def test_repr_of_a_module_without_values(where):
    if where == "meta":
        with torch.device("meta"):
            text = repr(SortingNetwork(operator()))
    elif where == "moved":
        text = repr(SortingNetwork(operator()).to("meta"))
    elif where == "fake":
        layer = SortingNetwork(operator())
        layer.log_steepness = torch._subclasses.FakeTensorMode().from_tensor(layer.log_steepness)
        text = repr(layer)
    else:
        layer, texts = SortingNetwork(operator()), []

        def record(log):
            torch.func.functional_call(Printed(layer, texts), {"layer.log_steepness": log}, ())
            return log

        vmap(record)(torch.zeros(2, 1))
        (text,) = texts
    assert text == f"SortingNetwork({operator()!r}, steepness=?)"


class Printed(torch.nn.Module):
    def __init__(self, layer, texts):
        super().__init__()
        self.layer, self.texts = layer, texts

    def forward(self):
        self.texts.append(repr(self.layer))


@pytest.mark.parametrize(
    ("dtype", "source"),
    [
        (torch.float64, "family"),
        (torch.float16, "family"),
        (torch.float64, "operator"),
        (torch.bfloat16, "operator"),
        (torch.float32, "float64 alone"),
        (torch.float16, "float64 alone"),
    ],
)
def test_a_converted_module_takes_its_dtype(dtype, source):
    options = {"relaxation": "cauchy", "art_lambda": 0.5, "error_free": True}
    if source == "float64 alone":
        options["dtypes"] = ("float64",)
    op = nsc.compile("odd_even", N, **options)
    layer = (
        SortingNetwork("odd_even", N, learnable=True, **options) if source == "family" else SortingNetwork(op)
    )
    model = torch.nn.Sequential(torch.nn.Linear(N, N), layer).to(dtype)
    values, P = model(torch.randn(4, N, dtype=dtype, requires_grad=True))
    assert values.dtype == P.dtype == dtype
    (values.sum() + P.square().sum()).backward()
    for served in {dtype, torch.float64 if source == "float64 alone" else torch.float32}:
        x = torch.randn(4, N, dtype=served)
        real = "float64" if served == torch.float64 else "float32"
        expected = nsc.compile("odd_even", N, **{**options, "dtypes": (real,)})
        assert torch.equal(layer(x)[1], expected.sort_with_permutation(x, layer.steepness)[1])
    assert layer.operator.n == N
    assert layer.operator.kernel.sigmoid == "cauchy"


@pytest.mark.parametrize("learnable", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        functools.partial(SortingNetwork, "bitonic", N),
        functools.partial(SelectionNetwork, "bitonic", N, select=nsc.median()),
        functools.partial(TopKCrossEntropy, N, (0.5, 0.5)),
    ],
    ids=["SortingNetwork", "SelectionNetwork", "TopKCrossEntropy"],
)
def test_a_module_that_is_moved_to_a_gpu_is_compiled_for_it(make, learnable):
    """Torch's fake tensors of a GPU reach the operator; without a GPU they have no autograd and no slices."""
    layer = make(learnable=learnable)
    assert tuple(layer.operator.kernel.sources) == ("cpu",)
    assert tuple(copy.deepcopy(layer).to("meta").operator.kernel.sources) == ("cpu",)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        # What .to("cuda") of a model does.
        torch.nn.Sequential(layer)._apply(lambda tensor: torch.empty_like(tensor, device="cuda"))
        assert layer.log_steepness.device.type == "cuda"
        out = layer.operator(torch.empty(4, N, device="cuda"), layer.steepness)
        assert out.device.type == "cuda"
    assert tuple(layer.operator.kernel.sources) == ("cpu", "cuda")  # it may come back


def test_a_device_that_nsc_has_no_kernels_for():
    with FakeTensorMode():
        for kind in ("mps", "xpu"):
            said = f"x is on {kind}:0, nsc has kernels for cpu and cuda alone: move x with .cpu()"
            with pytest.raises(nsc.OperandError, match=re.escape(said)):
                operator().sort(torch.empty(2, N, device=kind))
        with pytest.raises(nsc.OperandError, match=r"compiled for cpu: move x, or compile with targets="):
            operator().sort(torch.empty(2, N, device="cuda"))


def test_data_parallel_on_the_cpu():
    model = SortingNetwork(operator(), learnable=True)
    x = torch.randn(4, N)
    assert torch.equal(torch.nn.DataParallel(model)(x)[1], model(x)[1])


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


# The operators of torch.ops.nsc.


def inputs(batch=3):
    x = torch.randn(batch, N, dtype=DOUBLE, requires_grad=True)
    steepness = torch.tensor(1.5, dtype=DOUBLE, requires_grad=True)
    return x, steepness, torch.randn(batch, N, 2, dtype=DOUBLE, requires_grad=True)


def operands(routing):
    """Return the operands of `nsc::relax` for a routing."""
    x, steepness, payload = inputs()
    extra = {
        "route": payload,
        "transposed": payload,
        "cross_entropy": ranks(3),
        "cross_entropy_of_shares": torch.rand(3, N + 1, N, dtype=DOUBLE, requires_grad=True),
        "rows": torch.tensor([[2, 0]]).expand(3, 2),
    }.get(routing)
    return x, steepness.expand(3), extra, routing, operator().kernel.spec


@pytest.mark.parametrize(
    "routing",
    ["none", "permutation", "route", "transposed", "cross_entropy", "cross_entropy_of_shares", "rows"],
)
def test_opcheck(routing):
    torch.library.opcheck(torch.ops.nsc.relax, operands(routing))


def test_opcheck_without_a_compiler(monkeypatch):
    monkeypatch.setattr(Kernel, "library", lambda kernel: None)
    op = nsc.compile("bitonic", N, name="without_a_compiler")  # no kernel of this name was loaded
    operands = torch.randn(3, N, requires_grad=True), torch.ones(3), None, "none", op.kernel.spec
    torch.library.opcheck(torch.ops.nsc.relax, operands)


@pytest.mark.parametrize(
    "routing", ["cross_entropy", pytest.param("route", marks=pytest.mark.nightly("torch checks for seconds"))]
)
def test_opcheck_of_the_backward(routing):
    x, steepness, *rest = operands(routing)
    values, routed = torch.ops.nsc.relax(x, steepness, *rest)
    grads = (torch.randn_like(values), torch.randn_like(routed).requires_grad_())
    torch.library.opcheck(torch.ops.nsc.relax_backward, (*grads, x, steepness.detach(), *rest))


@pytest.mark.parametrize("routing", ["cross_entropy", "cross_entropy_of_shares"])
def test_opcheck_of_the_loss(routing):
    torch.library.opcheck(torch.ops.nsc.loss, operands(routing))


def test_vmap_over_steepness_over_another_dim_and_nested():
    op = operator()
    x, s = torch.randn(N, 3, dtype=DOUBLE, requires_grad=True), torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)
    with each_saved_tensor_read_once():
        vmap(op.sort)(x.T).sum().backward()
    both = vmap(op.sort, in_dims=(1, 0))(x, s)
    assert torch.equal(both, torch.stack([op.sort(x[:, i], s[i]) for i in range(3)]))
    grid = vmap(vmap(op.sort, in_dims=(None, 0)), in_dims=(1, None))(x, s)
    assert torch.equal(grid[2, 1], op.sort(x[:, 2], s[1]))
    payload = torch.randn(N, 2, dtype=DOUBLE)
    routed = vmap(op.route, in_dims=(1, None))(x, payload)
    assert torch.equal(routed[1], op.route(x[:, 1], payload))


def test_transforms_of_the_error_free_form_agree():
    """Its gradients are no differences of its values."""
    op = nsc.compile("bitonic", N, error_free=True, dtypes="float64")
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
