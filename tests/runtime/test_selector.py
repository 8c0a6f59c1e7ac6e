"""Catches selectors that differ from sorters of whole networks, the reference or torch.sort."""

from __future__ import annotations

import contextlib
from functools import partial

import pytest
import torch
from networks import irregular

import nsc
from nsc.compiler.optimize import top_k_candidates
from nsc.errors import LoweringError, OperandError, PackageError, PropertyError, VerificationError
from nsc.runtime.relaxed import reference
from nsc.runtime.relaxed.kernel import Kernel

BOTH = ("float32", "float64")
STEEPNESS = 3.0
SLOW = pytest.mark.slow("many kernels are built")
CASES = {
    "top 3 of bitonic 8": (("bitonic", 8), nsc.top_k(3)),
    "median of odd-even 13": (("odd_even", 13), nsc.median()),
    "ranks of an irregular network": ((irregular(20, 60, 1), None), nsc.ranks(7, 0, 19, 6)),
    "all ranks": (("merge_exchange", 5), nsc.ranks(0, 1, 2, 3, 4)),
    "one wire": ((nsc.Network.from_layers(1, []), None), nsc.top_k(1)),
}


def reference_results(op, x, payload):
    """Return values, rows of P and a routed payload of the plain torch reference, at the output wires."""
    wires = list(op.kernel.outputs.wires)
    steepness = torch.full((len(x),), STEEPNESS, dtype=x.dtype)
    values, p = reference.relax(op.kernel, x, steepness, None, "permutation")
    return values[:, wires], p[:, wires], p[:, wires] @ payload


def close(actual, expected):
    tolerance = {torch.float64: 1e-11, torch.float32: 5e-5}[expected.dtype]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("network", "same"), [("bitonic", True), ("odd_even_merge", True), ("best", False)])
def test_soft_values_are_those_of_the_whole_network_but_of_best(network, same):
    """best chooses another network for each choice of ranks."""
    n = 11
    x, steepness = torch.randn(5, n, dtype=torch.float64), torch.full((5,), STEEPNESS, dtype=torch.float64)
    whole = nsc.compile(network, n, dtypes=("float64",)).kernel
    some = nsc.compile(network, n, select=nsc.median(), dtypes=("float64",)).kernel
    sorted_ = reference.relax(whole, x, steepness, None, "none")[0][:, list(some.outputs.ranks)]
    selected = reference.relax(some, x, steepness, None, "none")[0][:, list(some.outputs.wires)]
    assert torch.allclose(selected, sorted_, rtol=1e-12, atol=1e-12) == same


def selector(case, dtypes):
    (network, n), selected = CASES[case]
    return nsc.compile(network, n, dtypes=dtypes, select=selected)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize(
    ("op", "dtypes"),
    [
        *((partial(selector, case), ("float64",)) for case in CASES if case != "one wire"),
        (
            partial(nsc.compile, irregular(20, 60, 1), select=nsc.ranks(7, 0, 19, 6)),
            ("float32",),
        ),
    ],
    ids=[*(case for case in CASES if case != "one wire"), "no pattern"],
)
def test_values_rows_and_gradients_are_the_references(op, dtypes):
    op = op(dtypes=dtypes)
    for dtype in (getattr(torch, each) for each in dtypes):
        for batch in (1, 19):
            x = torch.randn(batch, op.n, dtype=dtype, requires_grad=True)
            payload = torch.randn(batch, op.n, 3, dtype=dtype, requires_grad=True)
            actual = (*op.select_with_rows(x, STEEPNESS), op.route(x, payload, STEEPNESS))
            expected = reference_results(op, x, payload)
            grads = [torch.randn_like(t) for t in expected]
            for f, e in zip(actual, expected, strict=True):
                close(f, e)
            assert torch.equal(op.select(x, STEEPNESS), actual[0])
            leaves = (x, payload)
            pairs = (torch.autograd.grad(outputs, leaves, grads) for outputs in (actual, expected))
            for f, e in zip(*pairs, strict=True):
                close(f, e)


NAN, INF = torch.nan, torch.inf
# What is selected of which values, and the indices: of equal values the lower one comes first where the order
# ascends, and where it descends. NaN of any sign is larger than all numbers.
TIES = [
    (nsc.top_k(2), [5, 5, 1, 5], [0, 1]),
    (nsc.ranks(3, 2), [5, 5, 1, 5], [0, 1]),
    (nsc.ranks(2, 3), [5, 5, 1, 5], [1, 3]),
    (nsc.ranks(3), [5, 5, 1, 5], [0]),
    (nsc.ranks(0), [5, 1, 1, 5], [1]),
    (nsc.top_k(1), [1, 2, 5, 4, 5], [2]),  # pytorch#27542
    (nsc.top_k(4), [1, 2, 5, 4, 5], [2, 4, 3, 1]),
    (nsc.median(), [1, 1, 1, 1, 1], [2]),  # pytorch#161841
    (nsc.top_k(2), [NAN, INF, -NAN, 3], [0, 2]),  # pytorch#16762, #117617
    (nsc.ranks(0), [NAN, INF, -NAN, 3], [3]),
    (nsc.top_k(8), [0] * 256, [*range(8)]),  # vllm#55514
    (nsc.top_k(8), [NAN] * 256, [*range(8)]),  # vllm#39391
    (nsc.top_k(8), [*range(256, 0, -1), 249.0], [*range(8)]),  # vllm#54403
]


@pytest.mark.parametrize(
    ("dtype", "built"),
    [
        (torch.float32, False),
        (torch.bfloat16, False),  # mlx#3269
        pytest.param(torch.float32, True, marks=SLOW),
    ],
)
def test_one_order_of_ties(dtype, built):
    for select, row, wanted in (each for each in TIES if len(each[1]) < 6 or not built):
        x = torch.tensor(row).to(dtype)
        op, sorter = nsc.compile("best", len(row), select=select), nsc.compile("best", len(row))
        with nsc.numpy.prepare() if built else contextlib.nullcontext():
            leaf = x.clone().requires_grad_()
            values, indices = op.hard_select(leaf)
            alone = op.hard_select(x, values_only=True)
            ordered = sorter.hard_sort(x, descending=True).indices if len(row) < 6 else torch.tensor(wanted)
        assert indices.tolist() == wanted
        if select.form == "top_k":
            assert ordered[: len(wanted)].tolist() == wanted
        torch.testing.assert_close(values.detach(), x[indices], rtol=0, atol=0, equal_nan=True)
        torch.testing.assert_close(alone, x[indices], rtol=0, atol=0, equal_nan=True)
        values.sum().backward()
        assert leaf.grad.nonzero().flatten().tolist() == sorted(wanted)
        if not x.isnan().any():
            assert op.select_with_rows(x, straight_through=True)[1].argmax(-1).tolist() == wanted


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize("case", CASES)
def test_exact_values_and_indices_are_those_of_a_stable_sort(case):
    (network, n), selected = CASES[case]
    op = nsc.compile(network, n, dtypes=BOTH, select=selected)
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(37, op.n, dtype=dtype).round()
        x[::3, :: max(1, op.n // 3)] = torch.nan
        x[1::4, 0] = -torch.inf
        values, indices = op.hard_select(x)
        outputs = op.kernel.outputs
        expected = x.sort(stable=True, descending=outputs.descends)
        wanted = list(outputs.places)
        torch.testing.assert_close(values, expected.values[:, wanted], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(indices, expected.indices[:, wanted])


@pytest.mark.slow("many kernels are built")
def test_the_error_free_form_selects_exactly():
    op = nsc.compile("odd_even", 7, select=nsc.median(), error_free=True)
    x = torch.randn(11, 7, requires_grad=True)
    assert torch.equal(op.select(x), x.median(-1, keepdim=True).values)
    assert (torch.autograd.grad(op.select(x).sum(), x)[0] != 0).any(-1).all()


def test_a_network_that_only_selects():
    """A block merge leaves the largest values on its last wires, in order, and others on the rest."""
    candidate = top_k_candidates(40, 4)[0]
    op = nsc.compile(candidate.network, select=nsc.top_k(4))
    x = torch.randn(9, 40)
    values, indices = op.hard_select(x)
    assert torch.equal(values, x.topk(4).values)
    assert torch.equal(indices, x.topk(4).indices)
    assert op.size == candidate.network.size
    with pytest.raises(VerificationError, match="does not select top-5"):
        nsc.compile(candidate.network, select=nsc.top_k(5))


def test_two_neighbouring_ranks_of_a_network_that_leaves_them_in_any_order():
    network = nsc.Network.from_layers(4, [[(0, 1), (2, 3)], [(0, 2), (1, 3)]])
    op = nsc.compile(network, select=nsc.ranks(1, 2))
    x = torch.randn(20, 4)
    assert op.size == 5
    assert torch.equal(op.hard_select(x)[0], x.sort(-1).values[:, 1:3])
    with pytest.raises(VerificationError, match="does not select rank-1,2"):
        nsc.compile(nsc.Network.from_layers(4, [[(0, 1), (2, 3)]]), select=nsc.ranks(1, 2))


def test_outputs_on_other_wires():
    """bitonic 4 with all comparators reversed leaves the largest value on wire 0."""
    descending = nsc.Network.from_layers(
        4,
        [[(hi, lo) for lo, hi in layer.tolist()] for layer in nsc.compiler.families.bitonic(4).layers()],
    )
    op = nsc.compile(descending, select=nsc.ranks(3, 0), wires=[0, 3])
    x = torch.randn(5, 4)
    assert torch.equal(op.hard_select(x)[0], torch.stack([x.amax(-1), x.amin(-1)], -1))
    with pytest.raises(VerificationError):
        nsc.compile(descending, select=nsc.ranks(3, 0))


@pytest.mark.slow("many kernels are built")
def test_redundant_comparators_are_removed_on_request():
    network = nsc.Network.from_layers(3, [[(0, 1)], [(0, 1)], [(1, 2)], [(0, 1)]])
    plain, op = (
        nsc.compile(network, select=nsc.median(), remove_redundant=remove) for remove in (False, True)
    )
    x = torch.randn(50, 3)
    assert (plain.size, op.size) == (4, 3)
    assert torch.equal(op.hard_select(x)[0], plain.hard_select(x)[0])
    assert not torch.equal(op.select(x, STEEPNESS), plain.select(x, STEEPNESS))


@pytest.mark.slow("many kernels are built")
def test_without_a_compiler(monkeypatch):
    op = nsc.compile("bitonic", 8, select=nsc.top_k(3))
    x, payload = torch.randn(4, 8, requires_grad=True), torch.randn(4, 8, 2)
    actual = (*op.select_with_rows(x), op.route(x, payload), op.hard_select(x)[0])
    grads = torch.autograd.grad(actual[1].square().sum(), x)
    monkeypatch.setattr(Kernel, "library", lambda kernel: None)
    for f, e in zip(
        actual, (*op.select_with_rows(x), op.route(x, payload), op.hard_select(x)[0]), strict=True
    ):
        close(f, e)
    close(grads[0], torch.autograd.grad(op.select_with_rows(x)[1].square().sum(), x)[0])


def test_routings_that_need_all_wires_are_refused():
    op = nsc.compile("bitonic", 8, select=nsc.top_k(3))
    x, steepness = torch.randn(2, 8), torch.ones(2)
    with pytest.raises(OperandError, match="no routing 'permutation'; known: none, route, rows"):
        torch.ops.nsc.relax(x, steepness, None, "permutation", op.kernel.spec)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"select": nsc.top_k(9)}, PropertyError, "1 to 8"),
        ({"select": nsc.ranks(8)}, PropertyError, "ranks are 0 … 7"),
        ({"select": "top-2"}, LoweringError, r"select must be nsc.top_k\(8\), .*, got 'top-2'"),
        ({"wires": [1]}, LoweringError, "say what is selected"),
        ({"select": nsc.top_k(2), "wires": [1]}, PropertyError, "2 outputs, wires names 1 wire"),
    ],
)
def test_impossible_selections_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        nsc.compile("bitonic", 8, **options)


def test_a_folder_is_loaded_as_the_kind_of_operator_in_it(tmp_path):
    sorter, selector = nsc.compile("bitonic", 4), nsc.compile("bitonic", 4, select=nsc.top_k(1))
    for op in (sorter, selector):
        folder = tmp_path / op.name
        folder.mkdir()
        for name, text in op.kernel.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        loaded = nsc.load(tmp_path / op.name)
        assert loaded == op
        assert type(loaded) is type(op)
    with pytest.raises(PackageError, match=r"is a Selector, see nsc\.load$"):
        nsc.Sorter(selector.kernel.files)
    with pytest.raises(PackageError, match=r"is a Sorter, see nsc\.load$"):
        nsc.Selector(sorter.kernel.files)


@pytest.mark.slow("many kernels are built")
@pytest.mark.parametrize(
    "context",
    [torch.inference_mode, lambda: torch.device("meta"), torch._subclasses.fake_tensor.FakeTensorMode],
    ids=["inference mode", "meta", "fake tensors"],
)
def test_a_selector_does_not_depend_on_the_context_that_compiles_it(context):
    """A compiled operator is kept for the process, so it must not hold anything of the context."""
    with context():
        selector = nsc.compile("odd_even", 5, select=nsc.median())
    x = torch.randn(2, 5, requires_grad=True)
    with torch.inference_mode():
        selector.select(x)
    (grad,) = torch.autograd.grad(selector.select(x).sum(), x)
    assert grad.isfinite().all()
    assert selector.select_with_rows(x)[1].shape == (2, 1, 5)
