"""Catches deployed operators with other bits or messages than Python's, or that need more of torch."""

from __future__ import annotations

import hashlib
import itertools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner

import nsc
from nsc import library as library_folder
from nsc.cli.main import main
from nsc.contract.routings import ROUTINGS, Payload
from nsc.contract.windows import MODES
from nsc.errors import LoweringError

pytestmark = pytest.mark.slow("libraries and programs are built with torch's headers")

HERE = Path(__file__).parent
TORCH = Path(torch.__path__[0])
N = 8


def run(*command, **options):
    done = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=300, **options
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout


def built(source, folder, *flags):
    """Build a deployed source as its first lines say, with all warnings as errors; return the library.

    The flags of the tests' kernels come last, so that both compute the same bits. Workers share the folder of
    libraries, and later runs find it.
    """
    line = re.search(r"^ \*   (c\+\+ .*?-o lib\w+\.so)$", source.read_text(), re.MULTILINE | re.DOTALL)[1]
    words = line.replace("\\\n *", "").replace("-I DIR", "-isystem DIR").replace("DIR", str(TORCH)).split()
    flags = ["-Wall", "-Wextra", "-Werror", *(flags or os.environ["NSC_CXXFLAGS"].split())]
    made_of = f"{source.read_text()} {words} {flags} {torch.__version__}"
    kept = folder / f"{source.stem}_{hashlib.sha256(made_of.encode()).hexdigest()}.so"
    if not kept.exists():
        run(*words, *flags, cwd=source.parent)
        (source.parent / f"lib{source.stem}.so").replace(kept)
    return kept


def call(*words):
    done = CliRunner().invoke(main, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done.output


class Model(torch.nn.Module):
    """Scores, then what nsc gives to a model: P, a loss, ranks, exact values, a selection, filters."""

    def __init__(self):
        super().__init__()
        self.scores = torch.nn.Linear(N, N)
        self.sorting = nsc.nn.SortingNetwork("bitonic", N, steepness=10.0)
        # It has the other arithmetic type.
        options = {"learnable": True, "dtypes": "float64"}
        self.selecting = nsc.nn.SelectionNetwork("odd_even", N, select=nsc.top_k(3), **options)
        # Windows that lie in every way along the axes of an array.
        sizes = ((3, 5), (5, 1), (3, 3, 1), (2, 2, 2))
        self.filters = [nsc.compile_filter(size, rank=1) for size in sizes]

    def forward(self, x):
        x = self.scores(x)
        values, P = self.sorting(x)
        truth = x.argsort(-1).argsort(-1)
        exact, indices = self.sorting.hard_sort(x)
        loss = self.sorting.cross_entropy(x, truth)
        ranks = self.sorting.rank(x)
        _, hard = self.selecting.hard_select(x.round())  # with ties
        filtered = [each(x[None]) for each in self.filters] + [self.filters[0]((9 * x).to(torch.int16))]
        return values, P, exact, indices, loss, ranks, self.selecting(x.double()), hard, filtered


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Model().eval()


@pytest.fixture(scope="module")
def program(model):
    batch = torch.export.Dim("batch", min=2, max=1000)
    with torch.no_grad():
        return torch.export.export(model, (torch.randn(5, N),), dynamic_shapes=({0: batch},))


@pytest.fixture(scope="module")
def source(program, tmp_path_factory):
    return nsc.deploy(program, tmp_path_factory.mktemp("deployed") / "model.cpp")


@pytest.fixture(scope="module")
def folder(cache):
    folder = cache / "deployed"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def library(source, folder):
    return built(source, folder)


@pytest.fixture(scope="module")
def other_library(tmp_path_factory, folder):
    """That of a package that the command line wrote."""
    place = tmp_path_factory.mktemp("package")
    options = ("--dtype", "float64", "--deploy", "--out", place)
    call("compile", "odd_even", "--n", 5, *options)
    return built(place / "odd_even_5_float64_torch.cpp", folder)


@pytest.mark.nightly("a model, a program and another library are built")
def test_a_program_without_python_computes_the_same_bits(model, program, library, other_library, tmp_path):
    package = torch._inductor.aoti_compile_and_package(
        program,
        package_path=str(tmp_path / "model.pt2"),
        inductor_configs={
            "aot_inductor.compile_wrapper_opt_level": "O0",
            "aot_inductor.precompile_headers": False,
        },
    )
    includes = [
        word for folder in ("", "torch/csrc/api/include") for word in ("-isystem", TORCH / "include" / folder)
    ]
    libraries = ["-L", TORCH / "lib", f"-Wl,-rpath,{TORCH / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10"]
    binary = tmp_path / "program"
    flags = ["-std=c++20", "-O0", "-Wall", "-Wextra"]
    run("c++", *flags, HERE / "program.cpp", *includes, *libraries, "-o", binary)
    for file in (binary, library):
        assert not re.search(r"lib(torch_)?python", run("ldd", file))

    x = torch.randn(7, N)
    x.numpy().tofile(tmp_path / "x")
    call = [binary, package, tmp_path / "x", *x.shape, tmp_path / "results"]
    run(*call, other_library, library, env={"PATH": os.environ["PATH"]})
    with torch.no_grad():
        # Bits of operators of torch are those of AOTInductor, which are not quite those of an eager call.
        expected = torch._inductor.aoti_load_package(package)(x)
        torch.testing.assert_close(expected, model(x))
    whole = b"".join(tensor.numpy().tobytes() for tensor in torch.utils._pytree.tree_leaves(expected))
    assert (tmp_path / "results").read_bytes() == whole

    refused = subprocess.run(
        [*map(str, call), str(other_library)], capture_output=True, text=True, timeout=60
    )
    assert refused.returncode == 2
    # Of the model's operators the program's order is the compiler's.
    loaded = {"kernel": "odd_even_5_float64-", "filter": "none"}
    found = re.search(
        r"refused: (\w+) \S+ is not known in this process: load .*; loaded: (.*)", refused.stderr
    )
    assert found, refused.stderr
    assert found[2].startswith(loaded[found[1]])


def calls_of(operator, dtype):
    """Yield the name, the arguments and the results of calls of the operators of a package."""
    spec, n = operator.kernel.spec, operator.n
    x, steepness = torch.randn(6, n, dtype=dtype), torch.rand(6, dtype=dtype) + 1
    for routing in ROUTINGS.values():
        if operator.kernel.outputs is not None and routing.selector is None:
            continue
        payload = payload_of(routing, n, dtype)
        arguments = (steepness, payload, routing.name, spec)
        values, routed = torch.ops.nsc.relax(x, *arguments)
        yield "relax", (x, *arguments), (values, routed)
        if routing.is_loss:
            yield "loss", (x, *arguments), torch.ops.nsc.loss(x, *arguments)
        values_grad, routed_grad = torch.randn_like(values), torch.randn_like(routed)
        for grads in ((values_grad, routed_grad), (values_grad, None), (None, routed_grad)):
            results = torch.ops.nsc.relax_backward(*grads, x, *arguments)
            yield "relax_backward", (*grads, x, *arguments), results
    # Not contiguous, a steepness and a payload for all samples, no samples.
    shared = torch.randn(n, 3, dtype=dtype).expand(6, n, 3), "route", spec
    for tensor in (torch.randn(n, 6, dtype=dtype).T, torch.randn(6, 2 * n, dtype=dtype)[:, ::2]):
        arguments = (tensor, steepness[:1].expand(6), *shared)
        yield "relax", arguments, torch.ops.nsc.relax(*arguments)
    arguments = (x[:0], steepness[:0], None, "none", spec)
    yield "relax", arguments, torch.ops.nsc.relax(*arguments)


def payload_of(routing, n, dtype):
    match routing.payload:
        case Payload.COLUMNS:
            return torch.randn(6, n, 3, dtype=dtype)
        case Payload.RANKS:
            return torch.randint(n, (6, 2))
        case Payload.TARGET:
            return torch.rand(6, n).argsort(-1)
        case Payload.INTERVALS:
            return torch.stack([torch.zeros(6, n), torch.full((6, n), n - 1), torch.rand(6, n)], 1).to(dtype)
        case Payload.SHARES:
            return torch.rand(6, n + 1, n, dtype=dtype)


def exact_calls(operator):
    """Yield calls of the exact operators: axes, orders, types with a kernel and without one."""
    spec, n = operator.kernel.spec, operator.n
    may_descend = operator.kernel.outputs is None
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8, torch.bool):
        for shape, dim in (
            ((7, n), -1),
            ((3, n, 2), 1),
            ((3, n, 40), 1),
            ((n,), 0),
            ((0, n), 1),
            ((n, 0), 0),
        ):
            x = torch.randint(-3 if dtype.is_signed else 0, 5, shape).to(dtype)
            if dtype.is_floating_point and x.numel():
                x.view(-1)[:: n - 1] = torch.nan
            for is_descending in {False, may_descend}:
                for is_short in (False, True):
                    arguments = (x, dim, is_descending, is_short, spec)
                    yield "exact_sort", arguments, torch.ops.nsc.exact_sort(*arguments)
                arguments = (x, dim, is_descending, spec)
                yield "exact_values", arguments, (torch.ops.nsc.exact_values(*arguments),)


def filter_calls(operator):
    """Yield calls of a filter: modes, origins, axes, memory in any order."""
    axes, key = len(operator.window.sizes), operator._key
    images = [torch.randn(6, 7, 8)] if axes == 3 else [torch.randn(9, 8)]
    images += [
        torch.randn(2, 3, 6, 7, 5),
        torch.randn(2, 0, 4, 4),
        torch.randn(3, 5, 6, 7).permute(3, 0, 2, 1),
    ]
    images += [torch.randn(2, 4, 5, 6).to(memory_format=torch.channels_last)]
    images += (
        [torch.randint(-9, 9, (3, 4, 5), dtype=torch.int16)] if operator.window.shape == (1, 3, 5) else []
    )
    for x, mode in itertools.product(images, {*MODES} - {"shrink"}):
        options = (mode, 0.3, 0) if x.is_floating_point() else (mode, 0.0, 7)
        for shift in (0, -1) if min(operator.window.sizes) > 1 else (0,):
            arguments = (x, key, *options, [shift] * axes)
            yield "filter", arguments, (torch.ops.nsc.filter(*arguments),)


def refused_calls(operator, filter_):
    """Yield calls that are refused, with what the message says of the cause."""
    spec, n, name = operator.kernel.spec, operator.n, operator.name
    x, ones, ranks = torch.randn(2, n), torch.ones(2), torch.arange(n).expand(2, n)
    shape = f"{name}: x must be float32 (2, {n}), got float32 (2, {n + 1})"
    yield "relax", (torch.randn(2, n + 1), ones, None, "none", spec), shape
    yield "relax", (x[0], ones, None, "none", spec), f"x must be float32 ({n}, {n}), got float32 ({n},)"
    yield "relax", (x.double(), ones, None, "none", spec), f"{name}: no kernel for float64, only for float32"
    yield "relax", (x, ones[:1], None, "none", spec), "steepness must be float32 (2,), got float32 (1,)"
    yield (
        "relax",
        (x, 0 * ones, None, "permutation", spec),
        "permutation: steepness must be finite and above 0",
    )
    yield (
        "relax",
        (x, ones, None, "some", spec),
        f"{name}: no routing 'some'; known: none, permutation, route",
    )
    yield "relax", (x, ones, None, "route", spec), f"payload must be float32 (2, {n}, 0), got none"
    yield "relax", (x, ones, ranks + n, "rows", spec), f"{name}.rows: ranks must be in 0 ... {n - 1}"
    yield (
        "loss",
        (x, ones, 0 * ranks, "cross_entropy", spec),
        f"target must hold each rank 0 ... {n - 1} once",
    )
    yield "loss", (x, ones, x, "none", spec), f"{name}.none: this routing is no loss"
    yield "exact_values", (x, 2, False, spec), f"{name}.exact_values: dim must be in -2 ... 1, got 2"
    yield "exact_sort", (x, 0, False, False, spec), f"x must have {n} values along dim 0, got shape (2, {n})"
    yield "exact_values", (x.to(torch.complex64), 1, False, spec), "x must be of floats of 16, 32 or 64 bits"
    yield "relax", (x, ones, None, "none", "other-0"), "kernel other-0 is not known in this process: load"
    key, name, rest = filter_._key, filter_.name, (0.0, 0, [0, 0])
    yield "filter", (x.double(), key, "wrap", *rest), f"{name}: it is not deployed for float64"
    yield "filter", (x, key, "far", *rest), "mode must be one of reflect, nearest, mirror, constant, wrap"
    yield "filter", (x[0], key, "wrap", *rest), f"{name}: x must have 2 axes or more"
    yield "filter", (x, "1x9x9:4@0", "wrap", *rest), "filter 1x9x9:4 is not known in this process"


def test_operators_compute_the_same_bits_without_nsc(model, library, tmp_path):
    sorter, selector = model.sorting.operator, model.selecting.operator
    calls = [
        *calls_of(sorter, torch.float32),
        *calls_of(selector, torch.float64),
        *exact_calls(sorter),
        *exact_calls(selector),
        *[each for filter_ in model.filters for each in filter_calls(filter_)],
        *refused_calls(sorter, model.filters[0]),
    ]
    torch.save(calls, tmp_path / "calls")
    assert run(sys.executable, HERE / "calls.py", tmp_path / "calls", library) == ""


def test_in_a_process_of_nsc_python_serves(library):
    """And the other way round nsc says what is wrong."""
    torch.ops.load_library(str(library))
    operator = nsc.compile("bitonic", 4)  # which the library does not have
    x = torch.randn(2, 4)
    values, _ = torch.ops.nsc.relax(x, torch.full((2,), 6.0), None, "none", operator.kernel.spec)
    assert torch.equal(values, operator.sort(x))
    program = f"import torch; torch.ops.load_library({str(library)!r}); import nsc; nsc.compile('bitonic', 4)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert "a deployed library has defined nsc's operators in this process: import nsc first" in done.stderr


def test_a_library_needs_torchs_stable_abi_alone(library):
    """What torch promises to keep: so later versions load the library as it is."""
    undefined = run("nm", "-D", "--undefined-only", library).split()
    of_torch = [name for name in undefined if re.match(r"(aoti_)?torch_", name)]
    others = [name for name in undefined if len(name) > 1 and name not in of_torch]
    assert len(of_torch) > 10
    assert not [name for name in others if re.search("torch|c10|aten|nsc", name)]


@pytest.mark.nightly("a source is built with an optimiser, which warns of more")
def test_a_source_is_built_without_warnings(source, tmp_path):
    built(Path(shutil.copy(source, tmp_path)), tmp_path, "-O2")


def test_schemas_are_those_of_python():
    text = (library_folder.FOLDER / "nsc" / "deploy" / "operators.h").read_text(encoding="utf-8")
    text = re.sub(r'"\s*"', "", text)
    for name in ("relax", "relax_backward", "loss", "exact_sort", "exact_values", "filter"):
        schema = str(getattr(torch.ops.nsc, name).default._schema).removeprefix(f"nsc::{name}")
        assert f'{{"{name}","{schema}"' in re.sub(r'",\s*"', '","', text)


@pytest.mark.parametrize("what", ["", "model.txt", "model", ".cpp", "a model.cpp", "a*.cpp", None, 3])
def test_a_file_of_another_name_is_refused(what, tmp_path):
    with pytest.raises(LoweringError, match=r"deployed source"):
        nsc.deploy(nsc.compile("bitonic", 4), what if not isinstance(what, str) else tmp_path / what)
    assert not [*tmp_path.iterdir()]


def test_what_cannot_be_deployed_is_refused(tmp_path):
    file = tmp_path / "model.cpp"
    plain = torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),))
    for model, why in (
        (plain, "the model calls no operator of nsc: there is nothing to deploy"),
        (torch.nn.Linear(2, 2), "a model is deployed that torch.export.export returned, or a Sorter or a"),
        (nsc.compile("bitonic", 4, targets="cuda"), "bitonic_4 has no kernels for processors, which alone"),
    ):
        with pytest.raises(LoweringError, match=re.escape(why)):
            nsc.deploy(model, file)
    file.write_text("int main() {}")
    with pytest.raises(LoweringError, match=r"model\.cpp exists and is no text that nsc wrote"):
        nsc.deploy(nsc.compile("bitonic", 4), file)
    assert file.read_text() == "int main() {}"


def test_the_same_model_gives_the_same_text(program, tmp_path):
    first = nsc.deploy(program, tmp_path / "model.cpp")
    text, written = first.read_text(), first.stat().st_mtime_ns
    assert nsc.deploy(program, first).stat().st_mtime_ns == written
    assert str(tmp_path) not in text
    assert re.findall(r"^#include <nsc.*", text, re.MULTILINE) == []
