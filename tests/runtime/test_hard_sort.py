"""Exact sorting is torch's stable sort, bit for bit; only relaxed kernels flush subnormal numbers."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from networks import partly_tabled

WIRES = (1, 2, 3, 8, 17, 33)
DTYPES = {"float32": np.int32, "float64": np.int64}


@functools.cache
def operator(n):
    return partly_tabled("bitonic", n, dtypes=tuple(DTYPES))  # textbook bitonic: half of it is reversed


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


@settings(deadline=None, max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", WIRES)
def test_exact_sorting_is_the_stable_sort_of_torch(n, dtype, data):
    batch = data.draw(st.integers(1, 20))
    x = torch.from_numpy(data.draw(arrays(dtype, (batch, n), elements=strange(dtype))))
    values, indices = operator(n).hard_sort(x)
    expected = torch.sort(x, stable=True)
    assert torch.equal(indices, expected.indices)
    assert (bits(values) == bits(x.gather(-1, indices))).all()


def test_relaxed_kernels_flush_subnormal_numbers():
    """They are common in P, and would take a hundred times as long as other numbers."""
    gaps = torch.tensor([[0.0, 200.0], [0.0, -200.0], [0.0, 88.0], [0.0, -88.0]])
    op = partly_tabled("bitonic", 2, art_lambda=0)
    P = op.sort_with_permutation(gaps, 1.0)[1]
    assert P[:, 0, 0].tolist() == [1, 0, 1, 0]


def test_threads_keep_their_arithmetic():
    op = operator(33)
    x = torch.randn(64, 33, requires_grad=True)
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
