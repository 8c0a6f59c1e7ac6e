"""Every kind of thing that users call works in every mode of torch, or is refused in one line.

The modes are the rows of one table, MODES, the kinds of things its columns, see called.py. A cell works if
its values are those of the eager call, and its derivatives the differences of these values. It is the
table of docs/torch-modes.md.
"""

from __future__ import annotations

import copy
import functools
import inspect
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch._dynamo.testing
from called import COLUMNS, Program, each_saved_tensor_read_once, without_dense_memory
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from torch.utils.checkpoint import checkpoint

import nsc
import nsc.compat.difftopk
import nsc.compat.torchsort
import nsc.nn
from nsc.nn import SelectionNetwork, SortingNetwork, TopKCrossEntropy
from nsc.operators import classes
from nsc.operators.operator import Attribute

pytestmark = pytest.mark.slow("torch compiles, exports and transforms")

PAGE = Path(__file__).parents[2] / "docs" / "torch-modes.md"
DOUBLE = torch.float64


# Columns that call no operator of nsc.
OF_TORCH_ALONE = ("ListRank",)


class Cell:
    """A column in a mode: its program, an input, and what is expected of both."""

    def __init__(self, key: str) -> None:
        self.key, self.column = key, COLUMNS[key]
        self.program = self.column.program().double()
        self.x = _input(self.column.shape)
        self.expected = _expected(key)

    def flat(self, x: torch.Tensor) -> torch.Tensor:
        """Return all results as one vector."""
        return flat(self.program(x))

    def total(self, x: torch.Tensor) -> torch.Tensor:
        """Return a number that depends on all results, with second derivatives even of linear ones."""
        return total(self.program(x))


class Expected:
    """The results of the eager calls, and the differences of them that are their derivatives."""

    def __init__(self, key: str) -> None:
        program = COLUMNS[key].program().double()
        x = _input(COLUMNS[key].shape)
        self.values = flat(program(x)).detach()
        self.jacobian = _differences(lambda x: flat(program(x)).detach(), x)
        self.gradient = 2 * self.values @ self.jacobian.flatten(1)
        self.gradient = self.gradient.view(x.shape)

        def gradient(x):
            leaf = x.clone().requires_grad_()
            return torch.autograd.grad(total(program(leaf)), leaf)[0].flatten()

        self.hessian = _differences(gradient, x).view(*x.shape, *x.shape)
        self.tangent = torch.randn(x.shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))
        self.pushed = self.jacobian.flatten(1) @ self.tangent.flatten()


@functools.cache
def _expected(key: str) -> Expected:
    return Expected(key)


def _input(shape: tuple[int, ...], seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed))


def _differences(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Return the derivative of a vector, (…, *x.shape), by central differences."""
    step = 1e-6
    columns = [
        (function(x + step * unit) - function(x - step * unit)) / (2 * step)
        for unit in torch.eye(x.numel(), dtype=DOUBLE).view(-1, *x.shape)
    ]
    return torch.stack(columns, -1).view(-1, *x.shape)


def flat(results: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return torch.cat([each.reshape(-1) for each in results])


def total(results: tuple[torch.Tensor, ...]) -> torch.Tensor:
    return sum(each.square().sum() for each in results)


def close(actual: torch.Tensor, expected: torch.Tensor) -> None:
    """Check what is compared with differences."""
    torch.testing.assert_close(actual.detach(), expected, rtol=1e-5, atol=1e-7)


same = functools.partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)


def gradient(function: Callable[..., Any], x: torch.Tensor) -> torch.Tensor:
    leaf = x.detach().clone().requires_grad_()
    return torch.autograd.grad(total(function(leaf)), leaf)[0]


# The rows. Each is a mode's name in the page, and what shows that a cell works.

MODES: dict[str, Callable[[Cell], None]] = {}


def mode(name: str) -> Callable[[Callable[[Cell], None]], Callable[[Cell], None]]:
    def add(check: Callable[[Cell], None]) -> Callable[[Cell], None]:
        MODES[name] = check
        return check

    return add


@mode("gradients: `backward`, `torch.autograd`")
def gradients(cell: Cell) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(torch.autograd.functional.jacobian(cell.flat, cell.x), cell.expected.jacobian)
        close(gradient(cell.program, cell.x), cell.expected.gradient)


@mode("second derivatives: `create_graph=True`")
def second_derivatives(cell: Cell) -> None:
    close(torch.autograd.functional.hessian(cell.total, cell.x), cell.expected.hessian)


@mode("batched gradients: `is_grads_batched=True`")
def batched_gradients(cell: Cell) -> None:
    leaf = cell.x.clone().requires_grad_()
    out = cell.flat(leaf)
    (rows,) = torch.autograd.grad(out, leaf, torch.eye(out.numel(), dtype=DOUBLE), is_grads_batched=True)
    close(rows, cell.expected.jacobian)


@mode("`torch.autograd.forward_ad`")
def forward_mode(cell: Cell) -> None:
    with forward_ad.dual_level():
        out = cell.flat(forward_ad.make_dual(cell.x, cell.expected.tangent))
        values, tangent = forward_ad.unpack_dual(out)
    assert tangent is not None
    same(values, cell.expected.values)
    close(tangent, cell.expected.pushed)


@mode("`torch.no_grad`, `torch.inference_mode`")
def without_gradients(cell: Cell) -> None:
    for context in (torch.no_grad(), torch.inference_mode()):
        with context:
            result = cell.flat(cell.x.clone().requires_grad_())
        same(result, cell.expected.values)
        assert not result.requires_grad


@mode("no samples")
def no_samples(cell: Cell) -> None:
    """A process may have none of a batch that many share."""
    leaf = cell.x[:0].clone().requires_grad_()
    results = cell.program(leaf)
    for actual, expected in zip(results, cell.program(cell.x), strict=True):
        assert (actual.dim(), actual.dtype) == (expected.dim(), expected.dtype)
    total(results).backward()
    assert leaf.grad.shape == leaf.shape


@mode("`func.grad`")
def func_grad(cell: Cell) -> None:
    close(grad(cell.total)(cell.x), cell.expected.gradient)


@mode("`func.vjp`, `func.jacrev`")
def func_reverse(cell: Cell) -> None:
    values, pull = vjp(cell.flat, cell.x)
    same(values, cell.expected.values)
    close(pull(2 * values)[0], cell.expected.gradient)
    close(jacrev(cell.flat)(cell.x), cell.expected.jacobian)


@mode("`func.jvp`, `func.jacfwd`, `func.linearize`")
def func_forward(cell: Cell) -> None:
    values, pushed = jvp(cell.flat, (cell.x,), (cell.expected.tangent,))
    same(values, cell.expected.values)
    close(pushed, cell.expected.pushed)
    close(jacfwd(cell.flat)(cell.x), cell.expected.jacobian)
    values, linear = linearize(cell.flat, cell.x)
    same(values, cell.expected.values)
    close(linear(2 * cell.expected.tangent), 2 * cell.expected.pushed)


@mode("`func.hessian`, and other pairs of these")
def func_second(cell: Cell) -> None:
    for second in (hessian, lambda f: jacrev(jacrev(f)), lambda f: jacrev(jacfwd(f))):
        close(second(cell.total)(cell.x), cell.expected.hessian)
    rows = grad(lambda x: (grad(cell.total)(x) * cell.expected.tangent).sum())(cell.x)
    close(rows, torch.tensordot(cell.expected.tangent, cell.expected.hessian, cell.x.dim()))


@mode("`func.vmap`, of `func.grad` too")
def func_vmap(cell: Cell) -> None:
    x = torch.stack([cell.x, cell.x.flip(-1), 2 * cell.x])
    for lead in (x, x[:, 0]):  # samples, and one
        rows = looped(cell.program, lead)
        for mapped in (vmap(cell.program)(lead), vmap(cell.program, in_dims=-1)(lead.movedim(0, -1))):
            same(mapped, rows)
        same(vmap(grad(cell.total))(lead), torch.stack([gradient(cell.program, row) for row in lead]))
    same(vmap(vmap(cell.program))(x), looped(lambda row: looped(cell.program, row), x))


def looped(function: Callable[..., Any], x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return tuple(torch.stack(each) for each in zip(*map(function, x), strict=True))


@mode("`torch.compile`, `fullgraph=True`")
def compiled(cell: Cell) -> None:
    program = torch.compile(cell.program, fullgraph=True, dynamic=False, backend="aot_eager")
    same(flat(program(cell.x)), cell.expected.values)
    close(gradient(program, cell.x), cell.expected.gradient)


@mode("`torch.compile`, `dynamic=True`")
def compiled_for_any_batch(cell: Cell) -> None:
    """One graph serves all sizes of the batch, one more where a gradient is needed."""
    torch._dynamo.utils.counters.clear()
    program = torch.compile(cell.program, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch in (2, 5, 7):
        x = _input((batch, *cell.x.shape[1:]))
        same(flat(program(x)), cell.flat(x))
        same(gradient(program, x), gradient(cell.program, x))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] <= 2


@mode("`torch.compile` by Inductor")
def compiled_by_inductor(cell: Cell) -> None:
    program = torch.compile(cell.program, fullgraph=True)
    same(flat(program(cell.x)), cell.expected.values)


@mode("`torch.compile` of `grad`, `vjp`, `jacrev`, `vmap`")
def compiled_transforms(cell: Cell) -> None:
    cell.program.requires_grad_(False)  # torch would trace second derivatives, of parameters, for a minute

    def all_(x):
        return (
            grad(cell.total)(x),
            vjp(cell.flat, x)[1](2 * cell.flat(x))[0],
            jacrev(cell.flat)(x),
            vmap(grad(cell.total))(x),
        )

    program = torch.compile(all_, fullgraph=True, backend="aot_eager")
    by_grad, by_vjp, by_jacrev, _ = program(cell.x)
    close(by_grad, cell.expected.gradient)
    close(by_vjp, cell.expected.gradient)
    close(by_jacrev, cell.expected.jacobian)
    same(program(cell.x + 1)[3], vmap(grad(cell.total))(cell.x + 1))


@mode("`torch.compile` of `jvp`, `jacfwd`, `hessian`")
def compiled_forward(cell: Cell) -> None:
    program = torch.compile(lambda x, t: jvp(cell.flat, (x,), (t,))[1], fullgraph=True, backend="aot_eager")
    close(program(cell.x, cell.expected.tangent), cell.expected.pushed)


@mode("compiled autograd")
def compiled_autograd(cell: Cell) -> None:
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
        leaf = cell.x.clone().requires_grad_()
        cell.total(leaf).backward()
    close(leaf.grad, cell.expected.gradient)


@mode("`torch.export`")
def exported(cell: Cell) -> None:
    exported = torch.export.export(cell.program, (cell.x,))
    assert ("torch.ops.nsc" in str(exported.graph_module.code)) == (cell.key not in OF_TORCH_ALONE)
    program = exported.module()
    same(flat(program(cell.x)), cell.expected.values)
    close(gradient(program, cell.x), cell.expected.gradient)


@mode("`torch.export` for any batch")
def exported_for_any_batch(cell: Cell) -> None:
    shapes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(cell.program, (cell.x,), dynamic_shapes=shapes).module()
    for batch in (2, 5):
        x = _input((batch, *cell.x.shape[1:]))
        same(flat(program(x)), cell.flat(x))


@mode("`torch.jit.trace`")
def jit_traced(cell: Cell) -> None:
    traced = torch.jit.trace(cell.program, (cell.x,))
    file = io.BytesIO()
    torch.jit.save(traced, file)
    file.seek(0)
    for program in (traced, torch.jit.load(file)):
        same(flat(program(cell.x)), cell.expected.values)
        close(gradient(program, cell.x), cell.expected.gradient)


@mode("`torch.fx.symbolic_trace`")
def fx_traced(cell: Cell) -> None:
    traced = torch.fx.symbolic_trace(cell.program)
    for program in (traced, copy.deepcopy(traced)):
        same(flat(program(cell.x)), cell.expected.values)
        close(gradient(program, cell.x), cell.expected.gradient)
    with torch.no_grad():
        for parameter in cell.program.parameters():
            parameter += 0.5
    same(flat(traced(cell.x)), cell.flat(cell.x))  # a parameter of the graph is no constant


@mode("checkpoints, reentrant or not")
def checkpointed(cell: Cell) -> None:
    for use_reentrant in (False, True):
        leaf = cell.x.clone().requires_grad_()
        total(checkpoint(cell.program, leaf, use_reentrant=use_reentrant)).backward(
            create_graph=not use_reentrant
        )
        close(leaf.grad, cell.expected.gradient)


@mode("`saved_tensors_hooks`")
def saved_tensors(cell: Cell) -> None:
    leaf = cell.x.clone().requires_grad_()
    with each_saved_tensor_read_once():
        cell.total(leaf).backward()
    close(leaf.grad, cell.expected.gradient)


@mode("`pickle`, `torch.save`, `deepcopy`")
def copied(cell: Cell) -> None:
    for call, name in cell.program.calls:
        subject = getattr(cell.program, name)
        file = io.BytesIO()
        torch.save(subject, file)
        file.seek(0)
        for other in (
            pickle.loads(pickle.dumps(subject)),
            torch.load(file, weights_only=False),
            copy.deepcopy(subject),
            copy.copy(subject),
        ):
            same(call(other, cell.x), call(subject, cell.x))
            if not isinstance(subject, torch.nn.Module):
                assert other == subject
                assert hash(other) == hash(subject)


@mode("`state_dict`, `func.functional_call`, gradients of parameters")
def parameters(cell: Cell) -> None:
    start = {name: value.detach() for name, value in cell.program.named_parameters()}
    state = cell.column.program().double()
    with torch.no_grad():
        for value in state.parameters():
            value += 1
    state.load_state_dict(cell.program.state_dict())
    same(flat(state(cell.x)), cell.expected.values)

    def of_shift(shift):
        moved = {name: value + shift for name, value in start.items()}
        return flat(functional_call(cell.program, moved, (cell.x,)))

    zero = torch.zeros(1, dtype=DOUBLE)
    expected = _differences(lambda shift: of_shift(shift).detach(), zero)
    assert bool(start) == bool(expected.abs().sum() > 0)
    if start:
        close(jacrev(of_shift)(zero), expected)


@mode("`hasattr`, `inspect.getmembers`, `repr`")
def inspected(cell: Cell) -> None:
    for _, name in cell.program.calls:
        subject = getattr(cell.program, name)
        assert repr(subject).startswith(type(subject).__name__)
        assert not hasattr(subject, "no_such_name")
        assert all(hasattr(subject, member) for member, _ in inspect.getmembers(subject))


@mode("autocast")
def autocast(cell: Cell) -> None:
    program, x = cell.column.program(), cell.x.to(torch.bfloat16)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        results = program(x)
    for actual, expected in zip(results, program(x.float()), strict=True):
        torch.testing.assert_close(actual.float(), expected, rtol=0.02, atol=0.02)


@mode("another default device or dtype")
def other_defaults(cell: Cell) -> None:
    """A call takes both from its tensors, and leaves nothing that later calls would trip over."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classes, "_WORTH", -1)
        expected = bits(cell)
        for module in [each for name, each in sys.modules.items() if name.startswith("nsc.operators.")]:
            for kept in vars(module).values():
                if isinstance(kept, functools._lru_cache_wrapper):
                    kept.cache_clear()
        with torch.device("meta"):
            assert torch.equal(bits(cell), expected)
        for dtype in (torch.bfloat16, DOUBLE):
            torch.set_default_dtype(dtype)
            try:
                assert torch.equal(bits(cell), expected)
            finally:
                torch.set_default_dtype(torch.float32)
        assert torch.equal(bits(cell), expected)


def bits(cell: Cell) -> torch.Tensor:
    """Return all values, and the gradient of x."""
    return torch.cat([cell.flat(cell.x).detach(), gradient(cell.program, cell.x).flatten()])


@mode("shapes alone: tensors on meta, fake tensors")
def without_memory(cell: Cell) -> None:
    with torch._subclasses.FakeTensorMode(allow_non_fake_inputs=True) as fake:
        faked = cell.program(fake.from_tensor(cell.x))
    for results in (faked, cell.program.to("meta")(cell.x.to("meta"))):
        for actual, expected in zip(results, cell.column.program().double()(cell.x), strict=True):
            assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)


@mode("negated and conjugate views")
def negated(cell: Cell) -> None:
    """They share the memory of the tensor that they negate, so kernels must not read it unchanged."""
    same(flat(cell.program(torch._neg_view(-cell.x))), cell.expected.values)
    z = torch.complex(cell.x, -cell.x)
    same(flat(cell.program(z.conj().imag)), cell.expected.values)
    leaf = (-cell.x).requires_grad_()
    total(cell.program(torch._neg_view(leaf))).backward()
    close(-leaf.grad, cell.expected.gradient)


class Subclass(torch.Tensor):
    pass


@mode("subclasses of tensors")
def subclasses(cell: Cell) -> None:
    same(flat(cell.program(cell.x.as_subclass(Subclass))).as_subclass(torch.Tensor), cell.expected.values)


@mode("sparse, MKL-DNN, quantized and strided nested tensors")
def refused_without_dense_memory(cell: Cell) -> None:
    """Every call refuses every kind; what is raised last speaks for all."""
    *others, last = without_dense_memory(cell.x).items()
    for words, tensor in others:
        with pytest.raises(nsc.OperandTypeError, match=f"must be a dense tensor.*, got .*{words}"):
            cell.program(tensor)
    cell.program(last[1])


# What is refused, by words of the message: a mode's row, and its columns.
REFUSED: dict[str, dict[str, str]] = {
    "`torch.compile` of `jvp`, `jacfwd`, `hessian`": {
        key: r"forward mode .* is not compiled: call it outside torch\.compile"
        for key in COLUMNS
        if key not in ("exact", "filter", "filter layers", *OF_TORCH_ALONE)
    },
    "`torch.fx.symbolic_trace`": dict.fromkeys(
        ("sorter", "losses", "sizes", "selector", "exact", "filter", "relaxed filter", "compat"),
        r"torch\.fx traces modules of nsc\.nn, not this method; torch\.export traces both",
    ),
    "sparse, MKL-DNN, quantized and strided nested tensors": dict.fromkeys(COLUMNS, "must be a dense tensor"),
}


# Modes that take seconds a cell, and the columns that show them each day: each operator of torch is in one of
# them. What stands on these operators is shown at night.
OPERATORS = ("networks", "exact", "filter")
LONG = (
    "second derivatives: `create_graph=True`",
    "`func.jvp`, `func.jacfwd`, `func.linearize`",
    "`func.hessian`, and other pairs of these",
    "`func.vmap`, of `func.grad` too",
    *(name for name in MODES if "compile" in name or "export" in name),
)
# By day torch compiles programs of all operators with `fullgraph=True`, and programs of networks by Inductor.
COMPILED = {name: () for name in LONG if "compile" in name and "fullgraph" not in name}
COMPILED |= {"`torch.compile` by Inductor": ("networks",)}
NIGHTLY = pytest.mark.nightly("torch compiles or traces each kind of thing in each mode")
CELLS = [
    pytest.param(
        name,
        key,
        marks=[] if name not in LONG or key in COMPILED.get(name, OPERATORS) else NIGHTLY,
    )
    for name in MODES
    for key in COLUMNS
]


# Modes of several processes, which test_sharding.py shows.
OF_PROCESSES = ("`DTensor`: samples over processes", "`torch.compile` of `DTensor`")
# Lists of different lengths, which test_sizes.py shows, and what takes them.
OF_LISTS, TAKE_LISTS = "lists: jagged nested tensors", ("sizes", "of any n", "ListRank")
# A mode of modules alone.
OF_MODULES = "`state_dict`, `func.functional_call`, gradients of parameters"


@pytest.fixture
def alone():
    """Leave nothing of a compiled program to the next test, nor the level of one that was refused."""
    torch._dynamo.reset()
    yield
    while forward_ad._current_level >= 0:
        forward_ad.exit_dual_level()


@pytest.mark.usefixtures("alone")
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(("name", "key"), CELLS)
def test_a_cell(name, key):
    cell, message = Cell(key), REFUSED.get(name, {}).get(key)
    if message is None:
        MODES[name](cell)
        return
    for call in cell.column.make():  # each call is refused
        cell.program = Program([call]).double()
        error = Exception if "compile" in name else nsc.NscError  # torch.compile wraps it
        with pytest.raises(error, match=message):
            MODES[name](cell)


def test_every_kind_of_thing_is_in_a_column():
    """What users call with tensors: public methods of what is made of packages, and modules."""
    operators = [kind for kind in descendants(Attribute) if kind.__name__ in nsc.__all__]
    modules = [
        thing
        for room in (nsc.nn, nsc.compat, nsc.compat.difftopk)
        for name, thing in vars(room).items()
        if inspect.isclass(thing) and issubclass(thing, torch.nn.Module) and name in room.__all__
    ]
    public = {
        f"{kind.__name__}.{value.__name__}"
        for kind in operators
        for name, value in vars(kind).items()
        if inspect.isfunction(value) and (name == "__call__" or not name.startswith("_"))
    } - {"Filter.selector", "Sizes.sorter"}  # they take no tensor, and return an operator
    public |= {module.__name__ for module in modules} | {*nsc.compat.torchsort.__all__}
    called = {call.name for column in COLUMNS.values() for call in column.make()}
    assert public == called


def descendants(kind):
    return [kind, *(each for child in kind.__subclasses__() for each in descendants(child))]


def test_the_page_has_the_table():
    assert {*REFUSED, *LONG} <= MODES.keys()
    lines = [["mode", *(column.heading for column in COLUMNS.values())], ["---"] * (1 + len(COLUMNS))]
    lines += [[name, *(sign(name, key) for key in COLUMNS)] for name in (*MODES, OF_LISTS, *OF_PROCESSES)]
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    assert table in PAGE.read_text(encoding="utf-8"), f"docs/torch-modes.md lacks this table:\n\n{table}"


def sign(name, key):
    if name == OF_MODULES and not isinstance(COLUMNS[key].make()[0].subject, torch.nn.Module):
        return ""
    if name == OF_LISTS:
        return "✓" if key in TAKE_LISTS else "✗"
    return "✗" if key in REFUSED.get(name, {}) else "✓"


def test_every_operator_of_torch_is_registered_with_all_that_modes_ask():
    names = {name for name in torch._C._dispatch_get_all_op_names() if name.startswith("nsc::")}
    kinds = ("relax", "relax_backward", "loss", "exact_sort", "exact_values", "filter")
    assert names == {f"nsc::{kind}" for kind in kinds}
    for name in names:
        for key in ("CPU", "CUDA", "Meta", "Autograd", "FuncTorchBatched"):
            assert torch._C._dispatch_has_kernel_for_dispatch_key(name, key), (name, key)


# What is no cell: other operands than x, modules that are moved.

N = 3


@functools.cache
def operator(n=N):
    return nsc.compile("bitonic", n, dtypes=("float32", "float64"))


def ranks(*lead, n=N):
    return torch.randn(*lead, n).argsort(-1)


@pytest.mark.nightly("torch compiles, and seconds are at stake, no number")
def test_a_changing_float_steepness_does_not_recompile():
    """It compiles once for the first value, once for all others, and once for all whole numbers."""
    torch._dynamo.reset()
    op, target = operator(), ranks(4)
    call = lambda x, s: op.cross_entropy(x, target, s)  # noqa: E731
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(call, fullgraph=True, backend=counter)
    x = torch.randn(4, N)
    for steepness in (1.0, 2.0, 3.5, 0.1, 7, 10, 12):
        torch.testing.assert_close(compiled(x, steepness), call(x, steepness))
        ours = gradient(lambda a, s=steepness: (compiled(a, s),), x)
        torch.testing.assert_close(ours, gradient(lambda a, s=steepness: (call(a, s),), x))
    assert counter.frame_count <= 2 * 3  # without and with a gradient
    with pytest.raises(nsc.OperandError, match="above 0"):
        compiled(x, -1.0)


@pytest.mark.parametrize("method", [pytest.param("cross_entropy", marks=NIGHTLY), "hard_sort"])
def test_a_gradient_through_a_compiled_gradient(method):
    torch._dynamo.reset()
    # Torch traces each comparator of the reference: one is enough.
    op, target = operator(2), ranks(4, n=2)
    function = {
        "cross_entropy": lambda x: op.cross_entropy(x, target),
        "hard_sort": lambda x: op.hard_sort(x)[0],
    }[method]
    call = grad(lambda a: function(a).square().sum())
    compiled = torch.compile(call, fullgraph=True, dynamic=True, backend="aot_eager")
    x = torch.randn(4, 2)
    torch.testing.assert_close(gradient(lambda a: (compiled(a),), x), gradient(lambda a: (call(a),), x))


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


def test_vmap_over_some_of_the_operands():
    op, payload = operator(), torch.randn(N, 2, dtype=DOUBLE)
    x, s = torch.randn(N, 3, dtype=DOUBLE), torch.tensor([1.0, 2.0, 3.0], dtype=DOUBLE)
    grid = vmap(vmap(op.sort, in_dims=(None, 0)), in_dims=(1, None))(x, s)
    assert torch.equal(grid[2, 1], op.sort(x[:, 2], s[1]))
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
    total_of = lambda a: function(a).square().sum()  # noqa: E731
    second = torch.autograd.functional.hessian(total_of, leaf)
    torch.testing.assert_close(grad(total_of)(x), torch.autograd.grad(total_of(leaf), leaf)[0])
    torch.testing.assert_close(hessian(total_of)(x), second)
    torch.testing.assert_close(jacrev(jacrev(total_of))(x), second)
    torch.testing.assert_close(jacrev(jacfwd(total_of))(x), second)


def test_a_module_that_torch_fx_traced_is_pickled():
    model = torch.nn.Sequential(torch.nn.Linear(N, N), SortingNetwork(operator(), learnable=True))
    traced, x = torch.fx.symbolic_trace(model), torch.randn(4, N)
    assert torch.equal(pickle.loads(pickle.dumps(traced))(x)[1], traced(x)[1])


def test_repr_of_a_module_without_values():
    layer = SortingNetwork(operator())
    layer.log_steepness = FakeTensorMode().from_tensor(layer.log_steepness)
    for each in (layer, SortingNetwork(operator()).to("meta")):
        assert repr(each) == f"SortingNetwork({operator()!r}, steepness=?)"


@pytest.mark.parametrize(
    ("dtype", "source"),
    [
        (torch.float64, "family"),
        (torch.bfloat16, "operator"),
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


@pytest.mark.parametrize(
    "layer",
    [
        SortingNetwork("bitonic", N, learnable=True),
        SelectionNetwork("bitonic", N, select=nsc.median()),
        TopKCrossEntropy(N, (0.5, 0.5)),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_module_that_is_moved_to_a_gpu_is_compiled_for_it(layer):
    """Torch's fake tensors of a GPU reach the operator; without a GPU they have no autograd and no slices."""
    assert tuple(layer.operator.kernel.sources) == ("cpu",)
    assert tuple(copy.deepcopy(layer).to("meta").operator.kernel.sources) == ("cpu",)
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        # What .to("cuda") of a model does.
        torch.nn.Sequential(layer)._apply(lambda tensor: torch.empty_like(tensor, device="cuda"))
        assert layer.log_steepness.device.type == "cuda"
        out = layer.operator(torch.empty(4, N, device="cuda"), layer.steepness)
        assert out.device.type == "cuda"
    assert tuple(layer.operator.kernel.sources) == ("cpu", "cuda")  # it may come back


def test_data_parallel_on_the_cpu():
    model = SortingNetwork(operator(), learnable=True)
    x = torch.randn(4, N)
    assert torch.equal(torch.nn.DataParallel(model)(x)[1], model(x)[1])
