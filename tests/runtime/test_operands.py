"""Catches a bad operand or package that crashes, gives a wrong number, or gets an unclear error."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
import torch

import nsc
from nsc.compiler.driver import compile_network
from nsc.compiler.package import write
from nsc.compiler.request import Request
from nsc.contract.routings import ROUTINGS, Payload
from nsc.runtime.relaxed.kernel import Kernel


@functools.cache
def operator():
    return nsc.compile("bitonic", 4)


X = torch.randn(2, 4)
RANKS = torch.arange(4).expand(2, 4)
BAD_OPERANDS = {
    "last axis": (
        lambda op: op.sort(torch.zeros(2, 5)),
        nsc.OperandError,
        "has 5 values on its last axis, this op sorts 4",
    ),
    "no axis": (lambda op: op.sort(torch.tensor(1.0)), nsc.OperandError, "no axis"),
    "empty last axis": (lambda op: op.sort(torch.zeros(4, 0)), nsc.OperandError, "has 0 values"),
    "integers": (
        lambda op: op.sort(torch.zeros(4, dtype=torch.int64)),
        nsc.OperandTypeError,
        r"int64 .*\.float\(\)",
    ),
    "booleans ranked": (lambda op: op.rank(X > 0), nsc.OperandTypeError, "bool is not served"),
    "complex sorted": (
        lambda op: op.hard_sort(torch.zeros(4, dtype=torch.complex64)),
        nsc.OperandTypeError,
        "complex64 is not served: float64, .*, bool are",
    ),
    "short indices": (
        lambda op: op.hard_sort(X, index_dtype=torch.int16),
        nsc.OperandTypeError,
        "torch.int64 or torch.int32, got torch.int16",
    ),
    "complex": (lambda op: op.sort(torch.zeros(4, dtype=torch.complex64)), nsc.OperandTypeError, "complex64"),
    "float64": (lambda op: op.sort(X.double()), nsc.OperandTypeError, r"dtypes=\('float32', 'float64'\)"),
    "float64 payload": (
        lambda op: op.route(X, torch.zeros(2, 4, 1).double()),
        nsc.OperandTypeError,
        r"dtypes=\('float32', 'float64'\)",
    ),
    "a list": (lambda op: op.sort([1.0, 2.0, 3.0, 4.0]), nsc.OperandTypeError, "got list"),
    "target repeated": (
        lambda op: op.cross_entropy(X, torch.zeros(2, 4).long()),
        nsc.OperandError,
        "each rank 0 … 3 once",
    ),
    "target too large": (
        lambda op: op.cross_entropy(X, RANKS + 1),
        nsc.OperandError,
        "Pass grades as relevance=; from ranks that count from 1 subtract 1",
    ),
    "unknown": (
        lambda op: op.sort(X, steep=2.0),
        nsc.OperandTypeError,
        "sort has no argument 'steep': it takes x, steepness, dim, lengths, mask, fill, straight_through",
    ),
    "descending": (
        lambda op: op.sort(X, descending=True),
        nsc.OperandTypeError,
        "hard_sort takes descending",
    ),
    "target negative": (lambda op: op.binary_cross_entropy(X, RANKS - 1), nsc.OperandError, "each rank"),
    "target floats": (lambda op: op.cross_entropy(X, RANKS.float()), nsc.OperandTypeError, r"\.long\(\)"),
    "target shape": (lambda op: op.cross_entropy(X, RANKS[0]), nsc.OperandError, "shape of x"),
    "k 0": (lambda op: op.topk(X, 0), nsc.OperandError, "1 … 4, got 0"),
    "payload shape": (lambda op: op.route(X, torch.zeros(2, 5, 3)), nsc.OperandError, "payload must be"),
    "payload integers": (
        lambda op: op.route(X, torch.zeros(2, 4, 1).long()),
        nsc.OperandTypeError,
        "payload",
    ),
    "devices": (lambda op: op.route(X, torch.zeros(2, 4, 1, device="meta")), nsc.OperandError, "x is on cpu"),
    "steepness device": (
        lambda op: op.sort(X, torch.tensor(1.0, device="meta")),
        nsc.OperandError,
        "steepness on meta",
    ),
    "target device": (lambda op: op.cross_entropy(X, RANKS.to("meta")), nsc.OperandError, "on meta"),
}


@pytest.mark.parametrize("case", BAD_OPERANDS)
def test_bad_operands(case):
    call, kind, message = BAD_OPERANDS[case]
    with pytest.raises(kind, match=message) as caught:
        call(operator())
    assert "bitonic_4" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, nsc.NscError)


PAYLOAD = torch.zeros(2, 4, 1)
SOFT_METHODS = {
    "sort": lambda op, s: op.sort(X, s),
    "sort_with_permutation": lambda op, s: op.sort_with_permutation(X, s),
    "rank": lambda op, s: op.rank(X, s),
    "route": lambda op, s: op.route(X, PAYLOAD, s),
    "topk": lambda op, s: op.topk(X, 2, s),
    "cross_entropy": lambda op, s: op.cross_entropy(X, RANKS, s),
    "binary_cross_entropy": lambda op, s: op.binary_cross_entropy(X, RANKS, s),
}
BAD_STEEPNESS = {
    "0.0": [0, 0.0, torch.tensor(0), torch.tensor(0.0), np.float32(0)],
    "-2.0": [-2, torch.tensor(-2), torch.tensor(-2.0, dtype=torch.float64), np.array(-2)],
    "nan": [float("nan"), torch.tensor(torch.nan), torch.tensor(torch.nan, requires_grad=True), np.nan],
    "inf": [float("inf"), torch.tensor(torch.inf), 10**400],
    "1e+39": [1e39, np.float64(1e39), torch.tensor(1e39, dtype=torch.float64)],
    "1e-50": [1e-50],
    "a tensor of torch.float32 and shape (3,) for samples of shape (2,)": [torch.ones(3)],
    "a tensor of torch.float32 and shape (1, 2) for samples of shape (2,)": [torch.ones(1, 2)],
    "a tensor of torch.bool and shape ()": [torch.tensor(True)],
    "a tensor of torch.complex64 and shape ()": [torch.tensor(1j)],
    "ndarray": [np.ones(2)],
    "str": ["2"],
    "bool": [True],
}


@pytest.mark.parametrize("method", SOFT_METHODS)
def test_a_bad_steepness_is_named_with_its_method(method):
    steep = (
        "steepness must be a float or a tensor, one number or one for each sample, finite and above 0 "
        "(in float32 1.2e-38 … 3.4e+38), got "
    )
    for description, values in BAD_STEEPNESS.items():
        for value in values:
            with pytest.raises(nsc.NscError) as caught:
                SOFT_METHODS[method](operator(), value)
            assert str(caught.value) == f"bitonic_4.{method}: {steep}{description}", value


def test_a_bad_steepness_is_named_where_plain_torch_runs():
    bad = torch.tensor(torch.nan)
    for method, call in SOFT_METHODS.items():
        level = torch.autograd.forward_ad.dual_level()
        with level, pytest.raises(nsc.OperandError, match=rf"^bitonic_4\.{method}: .*got nan$"):
            call(operator(), bad)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(nsc.OperandError, match="each rank"):
        operator().cross_entropy(X, torch.zeros(2, 4, dtype=torch.int64))


def test_a_bad_steepness_is_named_by_its_place_in_a_batch():
    with pytest.raises(nsc.OperandError, match=r"^bitonic_4\.sort: steepness must .*got -3\.0$"):
        torch.ops.nsc.relax(X, torch.tensor([1.0, -3.0]), None, "none", operator().kernel.spec)


def test_shapes_without_memory():
    values, P = operator().sort_with_permutation(torch.zeros(7, 4, device="meta"))
    assert (values.shape, P.shape, P.device.type) == ((7, 4), (7, 4, 4), "meta")


def test_a_payload_of_no_columns():
    assert operator().route(X, torch.zeros(2, 4, 0)).shape == (2, 4, 0)


def package(**options):
    return compile_network(Request(network="odd_even", n=3, version=nsc.__version__, **options)).package


def test_load_reads_what_compile_writes(tmp_path):
    folder = write(package(), tmp_path)
    op = nsc.load(folder)
    assert (op.name, op.n, op.size, op.depth) == ("odd_even_3", 3, 3, 3)
    assert op == nsc.compile("odd_even", 3)
    torch.testing.assert_close(op.sort(torch.tensor([3.0, 1.0, 2.0]), 1e6), torch.tensor([1.0, 2.0, 3.0]))


DAMAGE = {
    "no folder": (lambda f: [p.unlink() for p in f.iterdir()], "no package"),
    "edited source": (lambda f: (f / "odd_even_3.cpp").write_text("int x;"), "odd_even_3.cpp was changed"),
    "missing file": (lambda f: (f / "proof.json").unlink(), "no package"),
    "a fact stated twice": (
        lambda f: (f / "manifest.json").write_text(
            (f / "manifest.json").read_text().replace("{", '{"n": 3,', 1)
        ),
        'key "n" is stated twice',
    ),
    "a path in the list": (
        lambda f: (f / "manifest.json").write_text(
            (f / "manifest.json").read_text().replace('"files": {', '"files": {"../../etc/passwd": "0", ')
        ),
        "outside the folder",
    ),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_packages(tmp_path, case):
    damage, message = DAMAGE[case]
    folder = write(package(), tmp_path)
    damage(folder)
    with pytest.raises(nsc.PackageError, match=message):
        nsc.load(folder)


def test_an_unknown_kernel_is_refused():
    with pytest.raises(nsc.PackageError, match="import its generated package"):
        torch.ops.nsc.relax(X, torch.ones(2), None, "none", "unheard-of")


S, K = torch.ones(2), lambda: operator().kernel.spec
BAD_CALLS = {
    "n": lambda ops: ops.relax(X[:, :3], S, None, "none", K()),
    "batch of steepness": lambda ops: ops.relax(X, S[:1], None, "none", K()),
    "dtype": lambda ops: ops.relax(X.double(), S.double(), None, "none", K()),
    "dtype of steepness": lambda ops: ops.relax(X, S.double(), None, "none", K()),
    "no payload": lambda ops: ops.relax(X, S, None, "route", K()),
    "flat payload": lambda ops: ops.relax(X, S, X, "transposed", K()),
    "dtype of payload": lambda ops: ops.relax(X, S, torch.zeros(2, 4, 1).double(), "route", K()),
    "float target": lambda ops: ops.relax(X, S, X, "cross_entropy", K()),
    "batch of target": lambda ops: ops.relax(X, S, RANKS[:1], "cross_entropy", K()),
    "routing": lambda ops: ops.relax(X, S, None, "sideways", K()),
    "dimensions": lambda ops: ops.relax(X[0], S, None, "none", K()),
    "exact_sort n": lambda ops: ops.exact_sort(X[:, :3], 1, False, False, K()),
    "exact_sort dim": lambda ops: ops.exact_sort(X, 2, False, False, K()),
    "exact_values n": lambda ops: ops.exact_values(X[:, :3], -1, False, K()),
    "exact_values dtype": lambda ops: ops.exact_values(X.to(torch.complex64), 1, False, K()),
    "values_grad": lambda ops: ops.relax_backward(X[:1], None, X, S, None, "none", K()),
    "routed_grad": lambda ops: ops.relax_backward(None, X, X, S, None, "permutation", K()),
    "dtype of routed_grad": lambda ops: ops.relax_backward(
        None, torch.zeros(2, 4, 4).double(), X, S, None, "permutation", K()
    ),
}


@pytest.mark.parametrize("case", BAD_CALLS)
def test_registered_operators_check_their_operands(case):
    """They are public names of torch too: a wrong call must not read beyond a tensor."""
    with pytest.raises((nsc.OperandError, nsc.OperandTypeError), match="bitonic_4"):
        BAD_CALLS[case](torch.ops.nsc)


PAYLOADS = {
    Payload.COLUMNS: torch.ones(2, 4, 3),
    Payload.RANKS: RANKS,
    Payload.TARGET: RANKS,
    Payload.INTERVALS: torch.ones(2, 3, 4),
    Payload.SHARES: torch.ones(2, 5, 4),
    Payload.NOTHING: None,
}


@pytest.mark.parametrize("routing", ROUTINGS)
@pytest.mark.parametrize("name", ["relax", "relax_backward", "loss"])
def test_registered_operators_take_the_payload_of_a_routing_alone(name, routing):
    select = nsc.compile("bitonic", 4, select=nsc.top_k(2)).kernel
    for kernel, payload in itertools.product((operator().kernel, select), PAYLOADS.values()):
        known = ROUTINGS[routing]
        is_right = payload is PAYLOADS[known.payload] and (kernel is not select or known.selector is not None)
        arguments = (X, S, payload, routing, kernel.spec)
        if name == "loss":
            is_right = is_right and known.is_loss
            arguments = (X, S, X if payload is None else payload, routing, kernel.spec)
        if name == "relax_backward":
            shape = (2,) if known.is_loss else (2, 4, 0 if payload is None else payload.shape[-1])
            shape = (2, 4, 4) if routing == "permutation" else (2, 0) if routing == "none" else shape
            arguments = (torch.ones(2, 4), torch.ones(shape), *arguments)
        call = getattr(torch.ops.nsc, name)
        if is_right:
            assert all(result.isfinite().all() for result in call(*arguments))
        elif known.payload is not Payload.NOTHING or name == "loss":
            with pytest.raises(nsc.OperandError, match="bitonic_4"):
                call(*arguments)


def test_pickled_files_are_checked_again():
    files = dict(operator().kernel.files)
    files["bitonic_4.cpp"] += "\n"
    with pytest.raises(nsc.PackageError, match="changed"):
        Kernel(files)
