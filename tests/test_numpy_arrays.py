"""Catches a function of nsc.numpy that takes an array, an axis or `out` otherwise than the others do."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest

import nsc
import nsc.numpy as exact

pytestmark = pytest.mark.slow("arrays of many types are compared with NumPy's")

# A call of every function, on an array and an axis of five values.
CALLS = {
    "argpartition": lambda x, axis=-1, **more: exact.argpartition(x, 1, axis, **more),
    "argsort": lambda x, axis=-1, **more: exact.argsort(x, axis, **more),
    "maximum_filter": lambda x, **more: exact.maximum_filter(x, 3, **more),
    "median": lambda x, axis=-1, **more: exact.median(x, axis, **more),
    "median_filter": lambda x, **more: exact.median_filter(x, 3, **more),
    "minimum_filter": lambda x, **more: exact.minimum_filter(x, 3, **more),
    "nanmedian": lambda x, axis=-1, **more: exact.nanmedian(x, axis, **more),
    "nanpercentile": lambda x, axis=-1, **more: exact.nanpercentile(x, 30, axis, **more),
    "nanquantile": lambda x, axis=-1, **more: exact.nanquantile(x, 0.3, axis, **more),
    "percentile": lambda x, axis=-1, **more: exact.percentile(x, 30, axis, **more),
    "percentile_filter": lambda x, **more: exact.percentile_filter(x, 30, 3, **more),
    "quantile": lambda x, axis=-1, **more: exact.quantile(x, 0.3, axis, **more),
    "rank_filter": lambda x, **more: exact.rank_filter(x, 1, 3, **more),
    "rolling": lambda x, axis=-1, **more: exact.rolling(x, 3, axis, min_periods=1, **more).median(),
    "partition": lambda x, axis=-1, **more: exact.partition(x, 1, axis, **more),
    "select": lambda x, axis=-1, **more: exact.select(x, 1, axis, **more),
    "sort": lambda x, axis=-1, **more: exact.sort(x, axis, **more),
    "top_k": lambda x, axis=-1, **more: exact.top_k(x, 2, axis=axis, **more).indices,
    "topk": lambda x, axis=-1, **more: exact.topk(x, 2, axis, **more).values,
    "trimmed_mean": lambda x, axis=-1, **more: exact.trimmed_mean(x, 0.2, axis, **more),
}
OTHERS = {"MOST", "Rolling", "Sorted", "get_num_threads", "prepare", "set_num_threads"}
FILTERS = {name for name in CALLS if name.endswith("_filter")}
ORDERS = {"argpartition", "argsort", "partition", "select", "sort", "top_k", "topk"}
ALONG_ONE = {"rolling", *ORDERS}
STATISTICS = sorted(CALLS.keys() - FILTERS - ALONG_ONE)

X = np.random.default_rng(0).integers(-9, 9, (4, 5)).astype(np.float64)
MASKED = np.ma.masked_greater(X, 5)
MATRIX = X.view(np.matrix)


def read_only():
    x = X.copy()
    x.flags.writeable = False
    return x


def memory_map():
    with tempfile.TemporaryFile() as file:
        x = np.memmap(file, np.float64, "w+", shape=X.shape)
    x[:] = X
    return x


class Masking:
    """What NumPy asks for an array, and gets a masked one."""

    def __array__(self, dtype=None, copy=None):
        return MASKED


# The same numbers in other forms.
TAKEN = {
    "list": X.tolist(),
    "tuple of arrays": tuple(X),
    "swapped bytes": X.astype(X.dtype.newbyteorder("S")),
    "read-only": read_only(),
    "negative strides": X[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran": np.asfortranarray(X),
    "steps": np.repeat(X, 2, axis=1)[:, ::2],
    "broadcast": np.broadcast_to(X, (2, 4, 5))[0],
    "memory map": memory_map(),
}
REFUSED = {
    "masked": (MASKED, "masked.*x.filled"),
    "masked without a mask": (np.ma.array(X), "masked"),
    "list of masked": (list(MASKED), "masked"),
    "what becomes a masked array": (Masking(), "masked"),
    "list with the masked constant": ([[1.0, np.ma.masked, 3.0]], "masked"),
    "matrix": (MATRIX, "a matrix, .*np.asarray"),
    "recarray": (np.rec.array([(1, 2.0)]), "a recarray"),
    "list of a subclass": ([MATRIX], "a matrix"),
    "structured": (np.zeros(5, [("a", "f8"), ("b", "i4")]), "got \\[\\('a'"),
    "object": (X.astype(object), "got object"),
    "text": (X.astype(str), "got <U"),
    "bytes": (X.astype("S3"), "got \\|S3"),
    "datetime": (X.astype("M8[s]"), r"got datetime64\[s\]"),
    "timedelta": (X.astype("m8[s]"), r"got timedelta64\[s\]"),
    "complex": (X + 1j, "got complex128"),
    "long double": (X.astype(np.longdouble), "got "),
    "None": (None, "got object"),
}


def test_every_function_is_called():
    functions = {name for name in exact.__all__ if name not in OTHERS}
    assert functions == CALLS.keys()


def test_one_axis():
    assert exact.sort([3, 1, 2]).tolist() == [1, 2, 3]
    assert exact.argsort([3, 1, 2, 1], descending=True).tolist() == [0, 2, 1, 3]
    assert exact.median([3, 1, 4]) == 3.0
    assert exact.sort([[3, 1], [2, 4]], None).tolist() == [1, 2, 3, 4]
    assert exact.argsort(np.asfortranarray([[3, 1], [2, 4]]), None).tolist() == [1, 2, 0, 3]
    assert exact.topk([[3, 1], [2, 4]], 2, None).values.tolist() == [4, 3]
    assert exact.select([[3, 1], [2, 4]], 1, None) == 2


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_numbers_give_the_same_results(name, kind):
    expected, found = CALLS[name](X), CALLS[name](TAKEN[kind])
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert type(found) is np.ndarray


@pytest.mark.parametrize("kind", REFUSED)
@pytest.mark.parametrize("name", CALLS)
def test_arrays_that_say_more_than_numbers_are_refused(name, kind):
    x, message = REFUSED[kind]
    if kind in ("datetime", "timedelta") and name in ORDERS | {"median"}:
        found = CALLS[name](x)
        # The order on both sides of a place is NumPy's, and differs by type.
        assert name.endswith("partition") or np.array_equal(found.astype(np.int64), CALLS[name](X))
        return
    with pytest.raises(nsc.OperandTypeError, match=f"^nsc.numpy.{name}: the array .*{message}") as caught:
        CALLS[name](x)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", CALLS)
def test_lists_of_different_lengths_are_refused(name):
    with pytest.raises(nsc.OperandError, match=f"^nsc.numpy.{name}: the array is no array of numbers"):
        CALLS[name]([[1.0, 2.0], [3.0]])


@pytest.mark.parametrize("name", sorted(CALLS.keys() - FILTERS))
@pytest.mark.parametrize(
    ("axis", "error"),
    [
        (1.0, nsc.OperandTypeError),
        (True, nsc.OperandTypeError),
        (2, np.exceptions.AxisError),
        (-3, np.exceptions.AxisError),
    ],
)
def test_an_axis_is_a_whole_number(name, axis, error):
    with pytest.raises(error):
        CALLS[name](X, axis=axis)
    if name in STATISTICS:
        with pytest.raises(error):
            CALLS[name](X, axis=(0, axis))
    assert np.array_equal(CALLS[name](X, axis=np.int8(1)), CALLS[name](X))


@pytest.mark.parametrize("name", STATISTICS)
@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"axis": ()}, nsc.OperandError, r"one axis or more, each once, got \(\)"),
        ({"axis": (1, -1)}, nsc.OperandError, "each once"),
        ({"keepdims": 1}, nsc.OperandTypeError, "keepdims"),
        ({"out": [0.0] * 4}, nsc.OperandTypeError, "out must be an array, got list"),
        ({"out": np.zeros(5)}, nsc.OperandError, r"array of \(4,\), got \(5,\)"),
        ({"out": np.zeros(4, int)}, nsc.OperandTypeError, "hold float64, got int64"),
        ({"out": read_only()[:, 0]}, nsc.OperandError, "read-only"),
        ({"out": np.ma.zeros(4)}, nsc.OperandTypeError, "out must be an array, got MaskedArray"),
    ],
)
def test_wrong_arguments_of_statistics(name, arguments, error, message):
    with pytest.raises(error, match=message):
        CALLS[name](X, **arguments)


@pytest.mark.parametrize("name", STATISTICS)
def test_no_values_have_no_statistic(name):
    with pytest.raises(nsc.OperandError, match="no values"):
        CALLS[name](np.zeros((3, 0)))
    assert CALLS[name](np.zeros((0, 5))).shape == (0,)


@pytest.mark.parametrize("name", STATISTICS)
def test_one_value_without_axes(name):
    assert CALLS[name](3.0, axis=None) == 3.0
    with pytest.raises(np.exceptions.AxisError):
        CALLS[name](3.0, axis=0)


@pytest.mark.parametrize("name", STATISTICS)
def test_axes_and_results(name):
    """All axes, several in any order and place, kept or not, and results written where the caller wants."""
    x = np.random.default_rng(1).standard_normal((2, 3, 2, 5))
    call = CALLS[name]
    for lying in (x, np.asfortranarray(x), x.swapaxes(0, 2).copy().swapaxes(0, 2)):
        for axes in (None, 1, (0, 1), (2, 0), (-1, 1), (0, 1, 2, 3)):
            places = range(4) if axes is None else {axis % 4 for axis in ([axes] if axes == 1 else axes)}
            moved = np.moveaxis(lying, sorted(places), range(-len(places), 0))
            expected = call(moved.reshape(*moved.shape[: 4 - len(places)], -1))
            found = call(lying, axis=axes)
            assert np.array_equal(found, expected)
            kept = call(lying, axis=axes, keepdims=True)
            assert kept.shape == tuple(1 if axis in places else length for axis, length in enumerate(x.shape))
            assert np.array_equal(kept.reshape(found.shape), expected)
            for dtype, order in (("float32", "C"), ("float64", "C"), ("float64", "F")):
                out = np.full(found.shape, -1, dtype, order)
                assert call(lying, axis=axes, out=out) is out
                assert np.array_equal(out, expected.astype(dtype))


@pytest.mark.parametrize("name", STATISTICS)
def test_results_over_what_is_read(name):
    """They are the same if `out` lies in the array, in whatever order blocks are done."""
    x = np.random.default_rng(0).standard_normal((3, 90_000))
    call, halves = CALLS[name], x.copy()
    expected = call(x[:, : x.shape[1] // 2], axis=0)
    found = call(halves[:, : x.shape[1] // 2], axis=0, out=halves[1, 7 : 7 + len(expected)])
    assert np.array_equal(found, expected)
    apart = np.zeros((2, len(expected) * 2))  # with steps
    call(x[:, : len(expected)], axis=0, out=apart[1, ::2])
    assert np.array_equal(apart[1, ::2], expected)
    assert not apart[0].any()
    assert not apart[1, 1::2].any()


def test_samples_that_fill_a_block():
    x = np.random.default_rng(0).standard_normal((200_000, 3))
    assert np.array_equal(exact.median(x, axis=0), np.median(x, axis=0))
    assert np.array_equal(exact.nanquantile(x, 0.3, axis=0), np.quantile(x, 0.3, axis=0))


def test_without_a_compiler_numpy_serves():
    """Small calls need none. Where a kernel would pay there is one warning, and `prepare` raises."""
    code = """
import warnings
import numpy as np
import nsc, nsc.numpy as exact
from nsc.join.on_demand import exact_kind
stack = np.random.default_rng(0).random((9, 100_000), dtype=np.float32)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert exact.sort([3, 1]).tolist() == [1, 3] and exact.rank_filter([5, 1, 4], 0, 3).tolist() == [1, 1, 1]
    assert not caught
    exact_kind(9, (4, 8), "float32", False, "NumPy")._build_seconds = 0
    for _ in range(5):
        assert np.array_equal(exact.median(stack, 0), np.median(stack, 0))
try:
    with exact.prepare():
        exact.median(stack, 0)
except nsc.ToolchainError as error:
    assert "NSC_CXX" in str(error)
assert len(caught) == 1 and "NSC_CXX" in str(caught[0].message), caught
assert caught[0].category is RuntimeWarning
"""
    environment = {**os.environ, "NSC_CXX": "/nonexistent/c++"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
