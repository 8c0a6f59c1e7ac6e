"""Catches a sort, a selection or an order of ties that is not NumPy's, for some type, axis or layout."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from orders import stable_order

import nsc
import nsc.numpy as exact
from nsc.runtime.devices import threads

pytestmark = pytest.mark.usefixtures("kernels")

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
FLOATS = ("float16", "float32", "float64")
QUICK = ("uint8", "int16", "float32", "float64")
SLOW = pytest.mark.slow("arrays of many types are compared with NumPy's")
# Samples side by side: a row, fewer than are sorted where they lie, and more than registers of them.
WIDTHS = st.sampled_from([0, 1, 2, 7, 16, 17, 300])


def values_of(dtype):
    """Draw values of a type, often its ends and ties; of floats also NaN, infinities and both zeros."""
    if dtype == "bool":
        return st.booleans()
    if dtype in INTEGERS:
        ends = np.iinfo(dtype)
        few = st.sampled_from([ends.min, ends.max, 0, 1])
        return few | st.integers(int(ends.min), int(ends.max))
    few = st.sampled_from(
        [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, float(np.finfo(dtype).smallest_subnormal)]
    )
    negative_nan = st.just(-np.dtype(dtype).type(np.nan))
    return few | negative_nan | st.floats(width=np.dtype(dtype).itemsize * 8, allow_subnormal=True)


def draw_array(data, dtype, n):
    """Draw an array with n values along an axis, that axis, and a layout in memory."""
    shape = [data.draw(st.sampled_from([0, 1, 2, 3])), data.draw(WIDTHS)]
    axis = data.draw(st.integers(0, len(shape)))
    shape.insert(axis, n)
    # A few drawn values, in an order that a seed decides, fill an array of any size.
    drawn = data.draw(arrays(dtype, 40, elements=values_of(dtype)))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = random.choice(drawn, shape)
    match data.draw(st.sampled_from(["C", "F", "strided"])):
        case "F":
            x = np.asfortranarray(x)
        case "strided":
            x = np.repeat(x, 2, axis=-1)[..., ::2]
    return x, axis - data.draw(st.sampled_from([0, len(shape)]))


def same_bits(a, b):
    return (
        a.shape == b.shape
        and a.dtype == b.dtype
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
    )


# One value, fewer than a piece of a register has, and a piece that is not full. Of each width and kind one
# type is quick.
SORTED = [
    *(pytest.param(dtype, 5, marks=[] if dtype in QUICK else [SLOW]) for dtype in (*INTEGERS, *FLOATS)),
    ("uint8", 1),
    pytest.param("uint8", 33, marks=SLOW),
    pytest.param("float64", 33, marks=SLOW),
]


@settings(max_examples=20)
@given(data=st.data())
@pytest.mark.parametrize(("dtype", "n"), SORTED)
def test_sort(dtype, n, data):
    x, axis = draw_array(data, dtype, n)
    descending = data.draw(st.booleans())
    index_dtype = data.draw(st.sampled_from(["int64", "int32"]))
    order = stable_order(x, axis, descending)
    expected = np.take_along_axis(x, order, axis)
    values, indices = exact.sort(x, axis, descending=descending, return_indices=True, index_dtype=index_dtype)
    assert indices.dtype == index_dtype
    assert (indices == order).all()
    assert same_bits(values, expected)
    alone = exact.sort(x, axis, descending=descending)
    assert alone.dtype == x.dtype
    assert np.array_equal(alone, expected, equal_nan=dtype in FLOATS)
    if dtype in FLOATS:  # zeros keep their signs, the negative ones are less
        zeros = np.signbit(alone) & (alone == 0)
        assert zeros.sum() == (np.signbit(x) & (x == 0)).sum()


@SLOW
@settings(max_examples=40)
@given(data=st.data())
def test_topk_and_select(data):
    x, axis = draw_array(data, "float32", 9)
    for k, largest in ((3, True), (3, False), (0, True)):
        values, indices = exact.topk(x, k, axis, largest=largest)
        assert (indices == np.take(stable_order(x, axis, largest), range(k), axis)).all()
        assert same_bits(values, np.take_along_axis(x, indices, axis))
    expected = np.take(np.sort(x, axis=axis), [6, 0, 8], axis)
    assert np.array_equal(exact.select(x, [6, 0, -1], axis), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", ["int16", "float64"])
def test_axes_beyond_the_longest_network(dtype):
    """NumPy sorts them; results are as on short axes."""
    x = (np.random.default_rng(0).standard_normal((3, exact.MOST + 1)) * 50).astype(dtype)
    assert same_bits(exact.sort(x), np.sort(x))
    for descending in (False, True):
        found = exact.sort(x, descending=descending, return_indices=True, index_dtype="int32")
        assert (found.indices == stable_order(x, 1, descending)).all()
        assert same_bits(found.values, np.take_along_axis(x, found.indices, 1))
    assert same_bits(exact.topk(x, 3).indices, stable_order(x, 1, descending=True)[:, :3])
    assert same_bits(exact.select(x.T, [5, -1], 0), np.sort(x.T, axis=0)[[5, -1]])


@SLOW
def test_long_axes():
    """8-bit places do not hold 300 indices, and networks of many comparators run from a table."""
    x = (np.random.default_rng(0).standard_normal((40, 300)) * 50).astype(np.int8)
    values, indices = exact.sort(x, return_indices=True)
    assert (indices == np.argsort(x, kind="stable")).all()
    assert same_bits(values, np.take_along_axis(x, indices, -1))


@SLOW
def test_topk_of_long_axes():
    """144 values have code in pieces, which store what later ones need alone."""
    x = (np.random.default_rng(0).standard_normal((40, 144)) * 50).astype(np.float32)
    values, indices = exact.topk(x, 8)
    assert (indices == stable_order(x, 1, descending=True)[:, :8]).all()
    assert same_bits(values, np.take_along_axis(x, indices, -1))


@SLOW
@pytest.mark.parametrize("shape", [(9, 400), (3, 9, 50), (400, 9), (9, 5)])
def test_threads_change_no_bit(shape, monkeypatch):
    """Groups of samples are shared out, also where there are fewer groups than threads."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    x.flat[::7] = np.nan
    axis = shape.index(9)
    calls = (
        lambda **more: exact.sort(x, axis, **more),
        lambda **more: exact.sort(x, axis, return_indices=True, **more).indices,
        lambda **more: exact.argsort(x, axis, index_dtype="int32", **more),
        lambda **more: exact.topk(x, 3, axis, **more).values,
        lambda **more: exact.select(x, [6, 0, -1], axis, **more),
        lambda **more: exact.median(x, axis, **more),
        lambda **more: exact.nanquantile(x, [0.2, 0.5], axis, **more),
        lambda **more: exact.nanmedian(x, axis, weights=range(9), **more),
        lambda **more: exact.median_filter(x, (1, 3, 3)[-x.ndim :], **more),
    )
    alone = [call() for call in calls]
    monkeypatch.setattr(threads, "LEAST_WORK", 1)
    for call, expected in zip(calls, alone, strict=True):
        assert same_bits(call(workers=3), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_a_fork_starts_threads_of_its_own():
    code = """
import os
import numpy as np, nsc.numpy
from nsc.runtime.devices import threads
threads.LEAST_WORK = 1
x = np.random.default_rng(0).standard_normal((500, 9))
nsc.numpy.sort(x, workers=2)
child = os.fork()
if child == 0:
    os._exit(0 if (nsc.numpy.sort(x, workers=2) == np.sort(x)).all() else 1)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_arguments_stay_as_they_are():
    x = np.array([3.0, -0.0, 0.0, np.nan, 1.0])
    before = x.tobytes()
    x.flags.writeable = False
    exact.sort(x), exact.argsort(x), exact.nanmedian(x)
    assert x.tobytes() == before


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: exact.argsort([1], index_dtype="f4"), nsc.OperandTypeError, "int64 or int32, got float32"),
        (lambda: exact.topk([1], 1, index_dtype="?!"), nsc.OperandTypeError, "int64 or int32, got '[?]!'"),
        (lambda: exact.sort([1], descending="no"), nsc.OperandTypeError, "descending must be True or False"),
        (lambda: exact.sort([1], return_indices=0), nsc.OperandTypeError, "return_indices must be True or"),
        (lambda: exact.topk([1, 2], 3), nsc.OperandError, "an integer in 0 … 2, the length of .*, got 3"),
        (lambda: exact.topk([1, 2], -1), nsc.OperandError, "an integer in 0 … 2, the length of .*, got -1"),
        (lambda: exact.top_k([1, 2], 1.0), nsc.OperandError, r"top_k: k must be an integer in .* got 1\.0"),
        (lambda: exact.top_k([1], 1, mode="min"), nsc.OperandError, "'largest' or 'smallest', got 'min'"),
        (lambda: exact.top_k([1], 1, sorted=1), nsc.OperandTypeError, "sorted must be True or False, got 1"),
        (lambda: exact.topk([1, None], 1), nsc.OperandTypeError, r"got object: .*x.astype\(float\)"),
        (lambda: exact.partition([1, 2], 2), nsc.OperandError, "kth must be integers in 0 … 1, got 2"),
        (
            lambda: exact.argpartition([1, 2], [0, 0.5]),
            nsc.OperandError,
            r"kth must be integers in .*got \[0, 0",
        ),
        (lambda: exact.median(np.ones(2, "m8[s]"), weights=[1, 1]), nsc.OperandTypeError, "need numbers"),
        (lambda: exact.select([1, 2], [0, -2]), nsc.OperandError, "each rank once"),
        (lambda: exact.select([1, 2], 2), nsc.OperandError, "integers in 0 … 1, got 2"),
        (lambda: exact.select([1, 2], []), nsc.OperandError, r"integers in 0 … 1, got \[\]"),
        (lambda: exact.sort([1], workers=0), nsc.OperandError, "at least 1, or -1, got 0"),
        (lambda: exact.median([1.0], workers=2.0), nsc.OperandTypeError, "an integer, got 2.0"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_neither_torch_nor_dask_is_loaded():
    code = (
        "import sys, nsc.numpy as n; n.sort([2, 1]); n.median_filter([[1, 2]], 3); n.rolling([1], 1).max(); "
    )
    code += "sys.exit(not {'torch', 'dask'}.isdisjoint(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
