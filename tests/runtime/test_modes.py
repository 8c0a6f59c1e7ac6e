"""Programs that torch compiles, traces, converts, checkpoints or shares are right, or refused in one line."""

from __future__ import annotations

import collections
import copy
import functools
import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch._dynamo.testing
from torch.autograd import forward_ad
from torch.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.utils.checkpoint import checkpoint

import nsc
from nsc.nn import SelectionNetwork, SortingNetwork, TopKCrossEntropy

N = 3
DOUBLE = torch.float64


@functools.cache
def operator(n=N):
    return nsc.compile("bitonic", n, dtypes=("float32", "float64"))


def ranks(*lead, n=N):
    return torch.randn(*lead, n).argsort(-1)


def methods(batch=4, n=N):
    """Return the differentiable methods as functions of x alone that return one tensor."""
    op, target, payload = operator(n), ranks(batch, n=n), torch.randn(batch, n, 2)
    return {
        "sort": op.sort,
        "sort_with_permutation": lambda x: op.sort_with_permutation(x)[1],
        "rank": op.rank,
        "route": lambda x: op.route(x, payload.to(x.dtype)),
        "topk": lambda x: op.topk(x, 2)[1],
        "cross_entropy": lambda x: op.cross_entropy(x, target),
        "binary_cross_entropy": lambda x: op.binary_cross_entropy(x, target),
        "hard_sort": lambda x: op.hard_sort(x)[0],
    }


METHODS = list(methods())


def gradient(function, x):
    """Return the gradient of the sum of squares of a result."""
    leaf = x.detach().clone().requires_grad_()
    return torch.autograd.grad(function(leaf).square().sum(), leaf)[0]


# Checkpoints.


@pytest.mark.parametrize("use_reentrant", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_checkpoint(method, use_reentrant):
    """A checkpoint gives each saved tensor out once, to a first and to a second derivative."""
    function = methods()[method]
    x = torch.randn(4, N, requires_grad=True)
    total = checkpoint(lambda a: function(2 * a), x, use_reentrant=use_reentrant).square().sum()
    total.backward(create_graph=not use_reentrant)
    torch.testing.assert_close(x.grad.detach(), gradient(lambda a: function(2 * a), x))


def test_saved_tensors_are_read_once_by_every_operator():
    op, spec = operator(), operator().kernel.spec
    steepness, target = torch.ones(4), ranks(4)
    calls = [
        lambda x: torch.ops.nsc.relax(x, steepness, None, "permutation", spec)[1],
        lambda x: torch.ops.nsc.loss(x, steepness, target, "cross_entropy", spec)[0],
        lambda x: vmap(op.sort)(x),
        *methods().values(),
    ]
    for call in calls:
        times = collections.Counter()
        with torch.autograd.graph.saved_tensors_hooks(*_counted(times)):
            out = call(torch.randn(4, N, requires_grad=True))
        out.sum().backward()
        assert set(times.values()) == {1}


def _counted(times):
    def unpack(box):
        times[id(box)] += 1
        return box[0]

    return lambda tensor: [tensor], unpack


# torch.compile.


@pytest.mark.parametrize("method", METHODS)
def test_compiled_autograd(method):
    """The backward pass of an eager call may be compiled."""
    torch._dynamo.reset()
    function, x = methods()[method], torch.randn(4, N, requires_grad=True)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        function(x).square().sum().backward()
    torch.testing.assert_close(x.grad, gradient(function, x))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("method", ["sort", "cross_entropy"])
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


@pytest.mark.parametrize("transform", ["grad", "vmap_grad", "vjp", "jacrev", "vmap"])
@pytest.mark.parametrize("method", METHODS)
def test_compile_over_func(method, transform):
    torch._dynamo.reset()
    function = methods(1)[method]
    total = lambda a: function(a).square().sum()  # noqa: E731
    row = lambda a: total(a.unsqueeze(0))  # noqa: E731
    call, x = {
        "grad": (grad(total), torch.randn(1, N)),
        "vmap_grad": (vmap(grad(row)), torch.randn(4, N)),
        "vjp": (lambda a: vjp(function, a)[1](torch.ones_like(function(a)))[0], torch.randn(1, N)),
        "jacrev": (jacrev(function), torch.randn(1, N)),
        "vmap": (vmap(row), torch.randn(4, N)),
    }[transform]
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), call(x))
    torch.testing.assert_close(compiled(x + 1), call(x + 1))


@pytest.mark.parametrize("method", METHODS)
def test_a_gradient_through_a_compiled_gradient(method):
    torch._dynamo.reset()
    function = methods(4, n=2)[method]  # torch traces each comparator of the reference: one is enough
    call = grad(lambda a: function(a).square().sum())
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    x = torch.randn(4, 2)
    torch.testing.assert_close(gradient(compiled, x), gradient(call, x))


@pytest.mark.parametrize("transform", [jacfwd, hessian, lambda f: lambda x: jvp(f, (x,), (x,))[1]])
def test_compile_over_forward_mode_is_refused(transform):
    torch._dynamo.reset()
    op = operator()
    call = transform(lambda a: op.sort(a).square().sum())
    with pytest.raises(Exception, match=r"forward mode .* is not compiled: call it outside torch.compile"):
        torch.compile(call, fullgraph=True, backend="aot_eager")(torch.randn(N))


# torch.func.


@pytest.mark.parametrize("method", METHODS)
def test_linearize(method):
    function = methods()[method]
    x, tangent = torch.randn(4, N, dtype=DOUBLE), torch.randn(4, N, dtype=DOUBLE)
    out, linear = linearize(function, x)
    expected = jvp(function, (x,), (tangent,))
    torch.testing.assert_close(out, expected[0])
    torch.testing.assert_close(linear(tangent), expected[1])
    torch.testing.assert_close(linear(2 * tangent), 2 * expected[1])


@pytest.mark.parametrize("name", ["relax", "loss", "relax_backward"])
def test_the_registered_operators_themselves_are_right_in_every_transform(name):
    """They are public operators of torch, so every transform of them must be right, or refused by name."""
    spec, steepness, target = operator().kernel.spec, torch.ones(2, dtype=DOUBLE), ranks(2)
    weights = torch.randn(2, N, dtype=DOUBLE)
    function = {
        "relax": lambda x: (torch.ops.nsc.relax(x, steepness, None, "none", spec)[0] * weights).sum(),
        "loss": lambda x: torch.ops.nsc.loss(x, steepness, target, "cross_entropy", spec)[0].sum(),
        "relax_backward": lambda x: torch.ops.nsc.relax_backward(
            weights, None, x, steepness, None, "none", spec
        )[0].sum(),
    }[name]
    x, tangent = torch.randn(2, N, dtype=DOUBLE), torch.randn(2, N, dtype=DOUBLE)
    leaf = x.clone().requires_grad_()
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


# Graphs of torch.jit and torch.fx.


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("method", METHODS)
def test_jit_trace(method, tmp_path):
    function = methods()[method]
    traced = torch.jit.trace(function, (torch.randn(4, N),))
    traced.save(str(tmp_path / "traced.pt"))
    for program in (traced, torch.jit.load(str(tmp_path / "traced.pt"))):
        x = torch.randn(4, N)
        assert torch.equal(program(x), function(x))
        torch.testing.assert_close(gradient(program, x), gradient(function, x))


def test_fx_symbolic_trace_of_a_module():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), SortingNetwork(operator(), learnable=True))
    traced = torch.fx.symbolic_trace(model)
    x = torch.randn(4, N)
    with torch.no_grad():
        model[1].log_steepness += 0.5  # a parameter of the graph, no constant
    for program in (traced, copy.deepcopy(traced), pickle.loads(pickle.dumps(traced))):
        for actual, expected in zip(program(x), model(x), strict=True):
            assert torch.equal(actual, expected)
        program.zero_grad()
        program(x)[1].square().sum().backward()
        assert all(parameter.grad.abs().sum() > 0 for parameter in program.parameters())
    compiled = torch.compile(traced, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), model(x))


class Method(torch.nn.Module):
    def forward(self, x):
        return operator().sort(x)


def test_fx_of_an_operators_method_says_what_it_traces():
    with pytest.raises(nsc.OperandTypeError, match=r"torch\.fx traces nsc\.nn.SortingNetwork"):
        torch.fx.symbolic_trace(Method())


def test_export_of_a_module():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), SortingNetwork(operator(), learnable=True))
    x = torch.randn(4, N)
    program = torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim("batch")},))
    assert "nsc.relax" in str(program.graph)
    y = torch.randn(7, N)
    torch.testing.assert_close(program.module()(y), model(y))


class Loss(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.operator = operator()

    def forward(self, x, target):
        return self.operator.cross_entropy(x, target)


def with_batches():
    """Return modules that take batches, and what makes operands for a batch of so many samples."""
    scores = lambda batch: (torch.randn(batch, N, requires_grad=True),)  # noqa: E731
    labelled = lambda batch: (*scores(batch), torch.randint(N, (batch,)))  # noqa: E731
    return {
        "SortingNetwork": (SortingNetwork(operator(), learnable=True), scores),
        "SelectionNetwork": (SelectionNetwork("bitonic", N, select=nsc.median()), scores),
        "cross_entropy": (Loss(), lambda batch: (*scores(batch), ranks(batch))),
        "TopKCrossEntropy": (TopKCrossEntropy(N, (0.5, 0.5)), labelled),
        "TopKCrossEntropy, m": (TopKCrossEntropy(N, (0.5, 0.5), 2, top1="softmax"), labelled),
    }


@pytest.mark.parametrize("name", list(with_batches()))
def test_one_graph_and_one_program_serve_every_batch(name):
    torch._dynamo.reset()
    module, operands = with_batches()[name]
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=counter)
    given = operands(4)
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, given, dynamic_shapes=tuple({0: batch} for _ in given)).module()
    for size in (4, 7, 2):
        given = operands(size)
        for call in (compiled, program):
            torch.testing.assert_close(call(*given), module(*given))
    assert counter.frame_count == 1


def test_aot_inductor(tmp_path):
    """The compiled program finds its kernel by name in a process that has the operator."""
    program = torch.export.export(Method(), (torch.randn(4, N),))
    path = torch._inductor.aoti_compile_and_package(
        program,
        package_path=str(tmp_path / "sort.pt2"),
        inductor_configs={
            "aot_inductor.compile_wrapper_opt_level": "O0",
            "aot_inductor.precompile_headers": False,
        },
    )
    x = torch.randn(4, N)
    torch.testing.assert_close(torch._inductor.aoti_load_package(path)(x), operator().sort(x))


# Tensors that are not plain memory.


def test_tensors_with_a_negation_bit():
    """They share the memory of the tensor that they negate, so kernels must not read it unchanged."""
    op = operator()
    x, payload, steepness = torch.randn(4, N), torch.randn(4, N, 2), torch.tensor(-2.0)
    negated = torch._neg_view(x)
    assert negated.is_neg()
    for method, call in methods().items():
        assert torch.equal(call(negated), call(-x)), method
        plain = gradient(call, -x)
        leaf = x.clone().requires_grad_()
        (ours,) = torch.autograd.grad(call(torch._neg_view(leaf)).square().sum(), leaf)
        torch.testing.assert_close(ours, -plain)
    assert torch.equal(op.route(x, torch._neg_view(payload)), op.route(x, -payload))
    assert torch.equal(op.sort(x, torch._neg_view(steepness)), op.sort(x, 2.0))
    leaf, cotangent = x.clone().requires_grad_(), torch.randn(4, N)
    (ours,) = torch.autograd.grad(op.sort(leaf), leaf, torch._neg_view(cotangent))
    assert torch.equal(ours, torch.autograd.grad(op.sort(leaf), leaf, -cotangent)[0])
    z = torch.randn(4, N, dtype=torch.complex64)
    assert torch.equal(op.sort(z.conj().imag), op.sort(-z.imag))
    with pytest.raises(nsc.OperandTypeError, match="complex64 is not served"):
        op.sort(z.conj())


def unusual():
    x = torch.randn(2, N)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these kinds are prototypes
        return {
            "sparse_coo": (x.to_sparse(), r"\.to_dense\(\)"),
            "sparse_csr": (x.to_sparse_csr(), r"\.to_dense\(\)"),
            "_mkldnn": (x.to_mkldnn(), r"\.to_dense\(\)"),
            "nested": (torch.nested.nested_tensor([x, x]), "to_padded_tensor"),
            "a nested": (torch.nested.nested_tensor([x, x[:1]], layout=torch.jagged), "to_padded_tensor"),
            "quantized": (torch.quantize_per_tensor(x, 0.1, 0, torch.qint8), r"\.dequantize\(\)"),
        }


@pytest.mark.parametrize("kind", list(unusual()))
def test_tensors_without_dense_memory_are_refused_in_one_line(kind):
    op, x = operator(), torch.randn(2, N)
    tensor, advice = unusual()[kind]
    operands = {
        "x": [
            op.sort,
            op.sort_with_permutation,
            op.rank,
            op.hard_sort,
            lambda t: op.topk(t, 1),
            lambda t: op.route(t, torch.randn(2, N, 1)),
            lambda t: op.cross_entropy(t, ranks(2)),
            lambda t: op.binary_cross_entropy(t, ranks(2)),
        ],
        "payload": [lambda t: op.route(x, t)],
        "steepness": [lambda t: op.sort(x, t)],
        "target": [lambda t: op.cross_entropy(x, t), lambda t: op.binary_cross_entropy(x, t)],
    }
    for operand, calls in operands.items():
        for call in calls:
            with pytest.raises(
                nsc.OperandTypeError, match=f"bitonic_3.*: {operand} must be.*{kind}.*{advice}"
            ):
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


@pytest.mark.parametrize("source", ["family", "operator", "float64 alone"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16, torch.float32])
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


def test_an_operator_says_in_pythons_words_how_float64_is_served():
    with pytest.raises(nsc.OperandTypeError, match=r"compile it with dtypes=\('float32', 'float64'\)"):
        nsc.compile("bitonic", N).sort(torch.randn(N, dtype=DOUBLE))


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
