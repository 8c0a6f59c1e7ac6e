"""Catches exact sorts that are not torch's stable sort bit for bit, as of subnormal numbers."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import nsc
from nsc.compiler import families
from nsc.operators.exact import DTYPE_NAMES

pytestmark = [pytest.mark.slow("exact sorting of many sizes is built"), pytest.mark.usefixtures("kernels")]

WIRES = (1, 5, 33)
DTYPES = {"float32": np.int32, "float64": np.int64}


@functools.cache
def operator(n):
    return nsc.compile("bitonic", n, dtypes=tuple(DTYPES))  # textbook bitonic: half of it is reversed


def bits(x):
    return x.numpy().view(DTYPES[str(x.dtype).removeprefix("torch.")])


def strange(dtype):
    """Draw ties, both zeros, infinities, subnormal numbers, and NaN of any sign and payload."""
    few = st.sampled_from([0.0, -0.0, 1.0, -1.0, float("inf"), -float("inf"), 1e-40, -1e-40, 2e-40, 1e-45])
    number = st.floats(width=32 if dtype == "float32" else 64, allow_subnormal=True)
    nan = st.integers(1, 2**22 - 1).map(lambda payload: _nan(dtype, payload))
    return st.one_of(few, number, nan)


def _nan(dtype, payload):
    whole = DTYPES[dtype]
    exponent = {"float32": 0x7F800000, "float64": 0x7FF0000000000000}[dtype]
    return whole(exponent + payload).view(dtype)


@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", WIRES)
def test_exact_sorting_is_the_stable_sort_of_torch(n, dtype, data):
    batch = data.draw(st.integers(1, 20))
    x = torch.from_numpy(data.draw(arrays(dtype, (batch, n), elements=strange(dtype))))
    op, expected = operator(n), torch.sort(x, stable=True)
    values, indices = op.hard_sort(x)
    assert torch.equal(indices, expected.indices)
    assert (bits(values) == bits(x.gather(-1, indices))).all()


WHOLES = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
ANY = ("float64", "float32", "bfloat16", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")


@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("dtype", ANY)
def test_any_dtype_along_any_axis(dtype, data):
    n = data.draw(st.sampled_from([1, 5]))
    shape = [data.draw(st.sampled_from([0, 1, 2, 5])), data.draw(st.sampled_from([1, 3, 16, 40]))]
    dim = data.draw(st.integers(-3, 2))
    shape.insert(dim % 3, n)
    random = torch.Generator().manual_seed(data.draw(st.integers(0, 1000)))
    x = (3 * torch.randn(shape, generator=random)).to(getattr(torch, dtype))
    if x.is_floating_point():
        special = torch.tensor([0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1.0]).to(x.dtype)
        place = torch.randint(0, 12, shape, generator=random)
        x = torch.where(place < 6, special[place.clamp(max=5)], x)
    if data.draw(st.booleans()):
        x = x.movedim(0, -1).contiguous().movedim(-1, 0)
    descending = data.draw(st.booleans())
    expected = torch.sort(x, dim=dim, descending=descending, stable=True)
    op = operator(n)
    values, indices = op.hard_sort(x, dim, descending=descending)
    assert torch.equal(indices, expected.indices)
    whole = WHOLES[x.itemsize]  # bits, so that signs of zeros count
    assert torch.equal(values.view(whole), expected.values.view(whole))
    short = op.hard_sort(x, dim, descending=descending, index_dtype=torch.int32)
    assert short.indices.dtype == torch.int32
    assert torch.equal(short.indices.long(), expected.indices)
    alone = op.hard_sort(x, dim, descending=descending, values_only=True)
    assert alone.dtype == x.dtype
    torch.testing.assert_close(alone, expected.values, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_selection_along_an_axis(dtype):
    op = nsc.compile("best", 9, select=nsc.ranks(7, 0, 4))
    x = (9 * torch.rand(4, 9, 33)).to(getattr(torch, dtype))
    values, indices = op.hard_select(x, 1)
    expected = torch.sort(x, dim=1, stable=True)
    assert torch.equal(values, expected.values[:, [7, 0, 4]])
    assert torch.equal(indices, expected.indices[:, [7, 0, 4]])
    assert torch.equal(op.hard_select(x, 1, values_only=True), values)


def test_exact_operators_under_opcheck():
    x = torch.randn(2, 5, 3)
    torch.library.opcheck(torch.ops.nsc.exact_sort, (x, 1, True, True, operator(5).kernel.spec))
    two = nsc.compile("bitonic", 5, select=nsc.ranks(1, 3))
    torch.library.opcheck(torch.ops.nsc.exact_values, (x, 1, False, two.kernel.spec))
    torch.library.opcheck(torch.ops.nsc.exact_values, (x.requires_grad_(), 1, False, operator(5).kernel.spec))
    mapped = torch.vmap(lambda sample: operator(5).hard_sort(sample, -2)[1])(x)
    assert torch.equal(mapped, x.sort(dim=1, stable=True).indices)


@functools.cache
def long_operator(n, **options):
    """A sorter or selector of more values than exact kernels take, on the word of the tests that it sorts."""
    network = nsc.Network.from_comparators(n, families.merge_exchange(n).comparators)
    return nsc.compile(network, unproved=True, time_limit=0, **options)


@pytest.fixture
def no_exact_kernels(monkeypatch):
    """Fail where a network is compiled for a call."""
    monkeypatch.setattr("nsc.compiler.exact.compiling.compile_exact", None)


LONG = {
    "float32": lambda x: x,
    "float64": lambda x: x.double(),
    "uint8": lambda x: (100 * x.abs()).to(torch.uint8),
}


@pytest.mark.parametrize("dtype", LONG)
def test_long_axes_are_sorted(dtype, no_exact_kernels):
    n = 2048
    x = torch.randn(3, n, 2)
    x[:, ::7], x[:, 1::9], x[0, 5:9] = 0.0, -0.0, -torch.nan
    x, op = LONG[dtype](x), long_operator(n)
    for descending in (False, True):
        expected = torch.sort(x, dim=1, descending=descending, stable=True)
        values, indices = op.hard_sort(x, 1, descending=descending)
        assert torch.equal(indices, expected.indices)
        assert torch.equal(*(v.view(WHOLES[x.itemsize]) for v in (values, x.gather(1, indices))))
        assert values.is_contiguous()
        short = op.hard_sort(x, 1, descending=descending, index_dtype=torch.int32).indices
        assert torch.equal(short, expected.indices.int())
        alone = op.hard_sort(x, 1, descending=descending, values_only=True)
        torch.testing.assert_close(alone, expected.values, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPE_NAMES, ids=str)
def test_a_long_axis_is_selected_from(dtype, no_exact_kernels):
    """Of tensors of any dtype and of one axis or more, in a call and in programs of torch."""
    op, wanted = long_operator(2048, select=nsc.ranks(2000, 0, 7)), [2000, 0, 7]
    for shape, dim in (((3, 2048, 2), 1), ((2048,), 0)):
        x = torch.randint(0, 100, shape).to(dtype)
        expected = torch.sort(x.double(), dim=dim, stable=True)

        def select(x, dim=dim):
            return op.hard_select(x, dim)

        mapped = torch.vmap(select)(torch.stack([x, x]))
        for values, indices in (select(x), [each[1] for each in mapped]):
            assert values.is_contiguous()
            assert values.dtype == dtype
            assert torch.equal(indices, expected.indices.movedim(dim, 0)[wanted].movedim(0, dim))
            assert torch.equal(values.double(), expected.values.movedim(dim, 0)[wanted].movedim(0, dim))
        assert torch.equal(op.hard_select(x, dim, values_only=True), select(x).values)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_task_whose_best_network_is_unproved(dtype, monkeypatch):
    def unproved(*args):
        raise nsc.UnprovedError("no method settled it")

    monkeypatch.setattr("nsc.compiler.exact.compiling.compile_exact", unproved)
    op, x = nsc.compile("odd_even", 13), (9 * torch.randn(4, 13, 20)).to(getattr(torch, dtype))
    values, indices = op.hard_sort(x, 1, descending=True)
    expected = torch.sort(x, dim=1, descending=True, stable=True)
    assert torch.equal(values, expected.values)
    assert torch.equal(indices, expected.indices)


def test_torch_sorts_where_there_is_no_compiler(monkeypatch):
    monkeypatch.setenv("NSC_CXX", "no-such-compiler")
    op = nsc.compile("best", 12, select=nsc.top_k(2))
    x = torch.randn(5, 12)
    assert torch.equal(op.hard_select(x).values, x.topk(2).values)
    assert torch.equal(op.hard_select(x.t(), 0, values_only=True), x.topk(2).values.t())


def test_relaxed_kernels_flush_subnormal_numbers():
    """They are common in P, and would take a hundred times as long as other numbers."""
    gaps = torch.tensor([[0.0, 200.0], [0.0, -200.0], [0.0, 88.0], [0.0, -88.0]])
    op = nsc.compile("bitonic", 2, art_lambda=0)
    P = op.sort_with_permutation(gaps, 1.0)[1]
    assert P[:, 0, 0].tolist() == [1, 0, 1, 0]


def test_threads_keep_their_arithmetic():
    op = nsc.compile("bitonic", 36)
    x = torch.randn(64, 36, requires_grad=True)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        op.sort_with_permutation(x)[1].square().sum().backward()
        op.cross_entropy(x, x.detach().argsort(-1).argsort(-1)).backward()
        tiny = torch.full((1 << 21,), 1e-40)
        assert bool((tiny * 0.5 > 0).all())
        assert float(torch.tensor(1e-40) * 0.5) > 0
    finally:
        torch.set_num_threads(before)
