"""Catches orders that public reports found wrong elsewhere: ties, NaN of any sign, times, bytes of bool."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from orders import stable_order

import nsc.numpy as exact

NAN, INF, NAT = np.nan, np.inf, np.iinfo(np.int64).min
MIXED = np.float32([1, -NAN, 3, -INF, NAN, INF])
BYTES = np.uint8([0, 3, 1, 4, 0, 2]).view(bool)
EQUAL_IN_THE_MIDDLE = np.float32([*range(100, 0, -1), 92.5, 92.5])

# The report, a call, and what it returns.
REPORTS = [
    ("numpy#31345", lambda: exact.sort([1, NAN, 3], descending=True), [3, 1, NAN]),
    ("numpy.top_k of 2.6", lambda: exact.top_k([1, NAN, 3], 2).values, [3, 1]),
    ("numpy.top_k of 2.6", lambda: exact.top_k([1, NAN, 3], 2, mode="smallest").values, [1, 3]),
    ("numpy#20778", lambda: exact.argsort([0, 1, 0], descending=True), [1, 0, 2]),
    ("array-api-compat#354", lambda: exact.argsort([7.0] * 30), range(30)),
    ("array-api-compat#354", lambda: exact.argsort([7.0] * 30, descending=True), range(30)),
    ("pytorch#27542", lambda: exact.topk([1, 2, 5, 4, 5], 1).indices, [2]),
    ("pytorch#27542", lambda: exact.topk([1, 2, 5, 4, 5], 2).indices, [2, 4]),
    ("pytorch#27542", lambda: exact.topk([1, 2, 5, 4, 5], 4).indices, [2, 4, 3, 1]),
    ("pytorch#22393", lambda: exact.argsort([9, 9, 3, 7, 9, 3], descending=True), [0, 1, 4, 3, 2, 5]),
    ("pytorch#16762", lambda: exact.topk([NAN, INF, 7, 3], 1).values, [INF]),
    ("pytorch#16762", lambda: exact.topk([NAN, INF, 7, 3], 1, largest=False).values, [3]),
    ("pytorch#117617", lambda: exact.sort(MIXED), [-INF, 1, 3, INF, NAN, NAN]),
    ("gdl#821", lambda: exact.topk(MIXED, 6).indices, [5, 2, 0, 3, 1, 4]),
    ("vllm#39391", lambda: exact.topk(np.full(256, NAN), 8).indices, range(8)),
    ("vllm#55514", lambda: exact.topk(np.zeros(256), 8).indices, range(8)),
    ("vllm#54403", lambda: exact.topk(EQUAL_IN_THE_MIDDLE, 9).indices, [*range(8), 100]),
    ("highway#3098", lambda: exact.select(MIXED, range(6)), [-INF, 1, 3, INF, NAN, NAN]),
    ("scikit-image#3981", lambda: exact.sort(BYTES), [0, 0, 1, 1, 1, 1]),
    ("scikit-image#3981", lambda: exact.topk(BYTES, 5).values, [1, 1, 1, 1, 0]),
    ("numpy.top_k of 2.6", lambda: exact.topk(np.ones((2, 3)), 0).indices.shape, (2, 0)),
    ("numpy.top_k of 2.6", lambda: exact.top_k(np.ones((0, 3)), 0, axis=0).values.shape, (0, 3)),
]


@pytest.mark.parametrize(("report", "call", "wanted"), REPORTS)
def test_reports(report, call, wanted):
    assert np.array_equal(np.asarray(call(), float), [*wanted], equal_nan=True)


@pytest.mark.parametrize("built", [False, pytest.param(True, marks=pytest.mark.slow("kernels are built"))])
def test_kernels_and_small_calls_have_one_order(built, request):
    """A row is sorted by NumPy, and rows that fill registers by a kernel."""
    if built:
        request.getfixturevalue("kernels")
    x = np.repeat(MIXED[None], 40, axis=0) if built else MIXED
    order = [5, 2, 0, 3, 1, 4]
    assert (exact.argsort(x, descending=True) == order).all()
    found = exact.sort(x, descending=True)
    assert np.array_equal(found, x[..., order], equal_nan=True)
    for k in (1, 5):
        assert (exact.topk(x, k).indices == order[:k]).all()
        assert (exact.topk(x, k, largest=False).indices == [3, 0, 2, 5, 1, 4][:k]).all()
    assert (exact.partition(x, 2, descending=True)[..., 2] == 1).all()
    assert (exact.argpartition(x, [2, -3], descending=True)[..., [2, 3]] == order[2:4]).all()


TYPES = ["float16", "float64", "int8", "uint64", "bool", "M8[D]", "m8[ns]"]


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("dtype", TYPES)
def test_orders_of_any_type(dtype, data):
    """Against NumPy's own functions where it has them, else against plain loops; NaN and NaT come last."""
    kind = np.dtype(dtype).kind
    ints = st.sampled_from([NAT, NAT + 1, -3, -1, 0, 1, 2, -NAT - 1])
    elements = {
        "M": ints,
        "m": ints,
        "b": st.booleans(),
        "f": st.sampled_from([NAN, -NAN, INF, -INF, -0.0, 0.0, 1.5]),
    }
    drawn = arrays("i8" if kind in "Mm" else dtype, (3, 6), elements=elements.get(kind))
    x = data.draw(drawn).view(dtype)
    axis, k, descending = (
        data.draw(st.sampled_from([0, -1])),
        data.draw(st.integers(0, 3)),
        data.draw(st.booleans()),
    )
    order = stable_order(x, axis, descending)
    ordered = np.take_along_axis(x, order, axis)

    def same(found, wanted):
        assert found.dtype == x.dtype
        assert np.array_equal(found, wanted, equal_nan=kind in "fMm")

    assert (exact.argsort(x, axis, descending=descending) == order).all()
    same(exact.sort(x, axis, descending=descending), ordered)
    values, indices = exact.topk(x, k, axis, largest=descending)
    assert (indices == order.take(range(k), axis)).all()
    same(values, ordered.take(range(k), axis))
    if hasattr(np, "top_k"):
        same(values, np.top_k(x, k, axis=axis, mode="largest" if descending else "smallest")[0])
    if not descending:
        same(exact.select(x, [2, 0], axis), ordered.take([2, 0], axis))
    kth = data.draw(st.lists(st.integers(-3, 2), min_size=1))
    parted = exact.partition(x, kth, axis, descending=descending)
    places = exact.argpartition(x, kth, axis, descending=descending)
    for found in (parted, np.take_along_axis(x, places, axis)):
        same(exact.sort(found, axis, descending=descending), ordered)  # a permutation
        for place in kth:
            same(found.take(place, axis), ordered.take(place, axis))
            front = found.take(range(place % x.shape[axis]), axis)
            same(
                exact.sort(front, axis, descending=descending),
                ordered.take(range(place % x.shape[axis]), axis),
            )


@settings(max_examples=60)
@given(data=st.data())
@pytest.mark.parametrize("dtype", ["M8[D]", "m8[ns]"])
def test_medians_of_times(dtype, data):
    """Whole numbers of any size in Python; numpy.median of durations, whose sums do not overflow."""
    few = st.sampled_from([NAT + 1, -NAT - 1, -4, -1, 1, 2])
    n = data.draw(st.integers(1, 6))
    x = data.draw(arrays("i8", (2, n), elements=few | st.just(NAT) if data.draw(st.booleans()) else few))
    found = exact.median(x.view(dtype), axis=1, keepdims=True)
    assert found.dtype == dtype
    for row, result in zip(x.tolist(), found.view("i8").ravel().tolist(), strict=True):
        total = sorted(row)[(n - 1) // 2] + sorted(row)[n // 2]
        mean = total // 2 if dtype.startswith("M") or total >= 0 else -(-total // 2)
        assert result == (NAT if NAT in row else mean)
    small = (x % 100).astype("m8[s]")
    assert np.array_equal(exact.median(small, 1), np.median(small, 1))
    out = np.empty(2, dtype)
    assert exact.median(x.view(dtype), 1, out=out) is out
    assert np.array_equal(out, found[:, 0], equal_nan=True)
