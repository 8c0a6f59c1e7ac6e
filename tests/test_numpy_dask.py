"""Catches a result of a Dask array that is not lazy, or has not the shape and bits of the whole array's."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

pytest.importorskip("hypothesis")
pytest.importorskip("dask.array")

import dask
import dask.array as da
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import nsc
import nsc.numpy as exact
from nsc.compiler.exact import compiling
from nsc.join import on_demand as join

SLOW = pytest.mark.slow("arrays in many blocks are compared with whole ones")
DTYPES = ("float32", "int16")


def drawn_array(data, dtype, shape):
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = (random.standard_normal(shape) * 40).astype(dtype)
    if x.dtype.kind == "f":
        x[random.random(shape) < 0.1] = np.nan
    return x


def drawn_blocks(data, shape):
    """Draw the lengths of blocks along each axis; some have no value."""
    return tuple(
        tuple(data.draw(st.sampled_from([(n,), (n - n // 2, n // 2), (n // 3, n - n // 3), (1,) * n])))
        for n in shape
    )


def assert_same(found, expected):
    """Assert that lazy results are what Dask says of them, and have the bits that were expected."""
    lazy, whole = (found, expected) if isinstance(expected, tuple) else ([found], [expected])
    assert type(found) is type(expected) or not isinstance(expected, tuple)
    for result, of_array in zip(lazy, whole, strict=True):
        assert isinstance(result, da.Array)
        assert (result.shape, result.dtype) == (np.shape(of_array), of_array.dtype)
        block = result.compute(scheduler="synchronous")
        assert (np.shape(block), block.dtype) == (np.shape(of_array), of_array.dtype)
        assert np.ascontiguousarray(block).tobytes() == np.ascontiguousarray(of_array).tobytes()


ALONG = {
    "sort": lambda x, axis: exact.sort(x, axis),
    "sort with indices": lambda x, axis: exact.sort(x, axis, descending=True, return_indices=True),
    "argsort": lambda x, axis: exact.argsort(x, axis, index_dtype="int32"),
    "topk": lambda x, axis: exact.topk(x, min(2, x.shape[axis]), axis, largest=False),
    "top_k": lambda x, axis: exact.top_k(x.astype("m8[s]"), min(2, x.shape[axis]), axis=axis),
    "partition": lambda x, axis: exact.partition(x, x.shape[axis] // 2, axis, descending=True),
    "argpartition": lambda x, axis: exact.argpartition(x, [0, -1], axis),
    "select one": lambda x, axis: exact.select(x, x.shape[axis] // 2, axis),
    "select": lambda x, axis: exact.select(x, range(0, x.shape[axis], 2), axis),
}
OVER = {
    "median": exact.median,
    "nanmedian": exact.nanmedian,
    "trimmed_mean": lambda x, axis, **more: exact.trimmed_mean(x, 0.2, axis, **more),
    "quantile": lambda x, axis, **more: exact.quantile(x, [[0.3, 0.9]], axis, **more),
    "nanquantile": lambda x, axis, **more: exact.nanquantile(x, 0.3, axis, method="higher", **more),
    "percentile": lambda x, axis, **more: exact.percentile(x, 30, axis, **more),
    "nanpercentile": lambda x, axis, **more: exact.nanpercentile(x, [30], axis, **more),
}
ROLLING = {
    "median": lambda rolling: rolling.median(),
    "min": lambda rolling: rolling.min(),
    "max": lambda rolling: rolling.max(),
    "quantile": lambda rolling: rolling.quantile(0.3, "weibull"),
    "rank": lambda rolling: rolling.rank(),
}
MODES = ("reflect", "nearest", "mirror", "wrap", "constant", "shrink")


@SLOW
@settings(max_examples=5)
@given(data=st.data())
@pytest.mark.parametrize("name", ALONG)
def test_along_an_axis(name, data):
    shape = tuple(data.draw(st.sampled_from([1, 4])) for _ in range(data.draw(st.integers(1, 3))))
    x = drawn_array(data, data.draw(st.sampled_from(DTYPES)), shape)
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    assert_same(ALONG[name](da.from_array(x, drawn_blocks(data, shape)), axis), ALONG[name](x, axis))


@SLOW
@settings(max_examples=5)
@given(data=st.data())
@pytest.mark.parametrize("name", OVER)
def test_over_axes(name, data):
    shape = tuple(data.draw(st.sampled_from([1, 3])) for _ in range(data.draw(st.integers(1, 3))))
    x = drawn_array(data, data.draw(st.sampled_from(DTYPES)), shape)
    blocks = drawn_blocks(data, shape)
    axes = tuple(data.draw(st.permutations(range(len(shape))))[: data.draw(st.integers(1, len(shape)))])
    keepdims = data.draw(st.booleans())
    found = OVER[name](da.from_array(x, blocks), axis=axes, keepdims=keepdims)
    assert_same(found, OVER[name](x, axis=axes, keepdims=keepdims))


@SLOW
@settings(max_examples=5)
@given(data=st.data())
def test_weights(data):
    shape = (3, 1, 3)
    x = drawn_array(data, "float32", shape)
    axes = tuple(data.draw(st.permutations(range(3)))[: data.draw(st.integers(1, 3))])
    of = data.draw(st.sampled_from([shape, tuple(shape[axis] for axis in axes)]))
    weights = np.random.default_rng(0).random(of)
    kind = data.draw(st.sampled_from(["array", "list", "Dask"]))
    given_weights = {
        "array": lambda: weights,
        "list": weights.tolist,
        "Dask": lambda: da.from_array(weights, drawn_blocks(data, of)),
    }[kind]()
    call = data.draw(st.sampled_from([exact.median, exact.nanmedian, OVER["trimmed_mean"]]))
    found = call(da.from_array(x, drawn_blocks(data, shape)), axis=axes, weights=given_weights)
    assert_same(found, call(x, axis=axes, weights=weights))


@SLOW
@settings(max_examples=5)
@given(data=st.data())
@pytest.mark.parametrize("mode", MODES)
def test_filters(mode, data):
    """Also where windows are longer than blocks, or than the array, and begin at any place."""
    sizes = data.draw(st.sampled_from([(1,), (6,), (2, 3), (3, 1), (2, 1, 3)]))
    shape = tuple(
        data.draw(st.sampled_from([1, 4, 13])) for _ in range(data.draw(st.integers(len(sizes), 3)))
    )
    x = drawn_array(data, "int16", shape)
    sizes = (1,) * (len(shape) - len(sizes)) + sizes
    origin = [data.draw(st.integers(-(size // 2), (size - 1) // 2)) for size in sizes]
    lazy, arguments = da.from_array(x, drawn_blocks(data, shape)), (sizes, mode, 7, origin)
    found = exact.median_filter(lazy, *arguments)
    assert_same(found, exact.median_filter(x, *arguments))
    if mode != "shrink":
        assert_same(exact.rank_filter(lazy, math.prod(sizes) // 2, *arguments), found.compute())
    if all(itertools.chain(*lazy.chunks)):  # Dask cuts no array anew that has blocks without values
        mask = np.random.default_rng(0).random(shape) < 0.3
        hidden = da.from_array(mask, chunks=2) if data.draw(st.booleans()) else mask
        masked = exact.median_filter(x / 2, *arguments, mask=mask)
        assert_same(exact.median_filter(lazy / 2, *arguments, mask=hidden), masked)
    if mode != "shrink" and all(n >= size for n, size in zip(shape, sizes, strict=True)):
        options = {"mode": mode, "cval": 7, "origin": origin}
        assert np.array_equal(found.compute(), ndimage.median_filter(x, sizes, **options))


@pytest.mark.parametrize("mode", MODES)
def test_windows_as_long_as_blocks_and_one_more(mode):
    """A mirror shows what lies just behind the first block."""
    x = np.random.default_rng(0).permutation(12).astype("int16")
    lazy = da.from_array(x, chunks=4)
    for origin in (2, -2):
        assert_same(exact.median_filter(lazy, 5, mode, 7, origin), exact.median_filter(x, 5, mode, 7, origin))


@SLOW
@settings(max_examples=5)
@given(data=st.data())
@pytest.mark.parametrize("name", ROLLING)
def test_moving_windows(name, data):
    shape = (3, data.draw(st.sampled_from([1, 4, 40])))
    x = drawn_array(data, data.draw(st.sampled_from(DTYPES)), shape)
    axis, window = data.draw(st.sampled_from([0, -1])), data.draw(st.sampled_from([1, 4, 300]))
    options = {
        "min_periods": data.draw(st.sampled_from([None, 1])),
        "center": data.draw(st.booleans()),
    }
    lazy = exact.rolling(da.from_array(x, drawn_blocks(data, shape)), window, axis, **options)
    assert_same(ROLLING[name](lazy), ROLLING[name](exact.rolling(x, window, axis, **options)))


def test_one_block_is_a_sample_of_all_axes():
    x = np.arange(12.0).reshape(3, 4)[::-1]
    lazy = da.from_array(x, chunks=(3, 4))
    assert_same(exact.median(lazy), np.float64(5.5))
    assert_same(exact.sort(lazy, axis=None), np.arange(12.0))
    assert_same(exact.median(da.from_array(np.array(3.0), ())), np.float64(3.0))


def test_only_an_axis_in_blocks_is_put_together():
    x = da.zeros((11, 1000), chunks=(11, 10), dtype="f4")
    assert exact.median(x, axis=0).chunks == ((10,) * 100,)
    assert exact.sort(x, axis=0).chunks == x.chunks
    with dask.config.set({"array.chunk-size": "11kB"}):
        assert exact.median(da.zeros((11, 1000), chunks=(1, 1000), dtype="f4"), axis=0).numblocks == (4,)
    assert exact.median_filter(x, (1, 3)).chunks == x.chunks


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("said", "expected"), [({}, 1), ({"workers": 3}, 3)])
def test_a_block_has_one_thread_unless_the_call_says_more(said, expected, monkeypatch):
    asked = []
    for module in ("windows", "samples"):
        monkeypatch.setattr(
            f"nsc.numpy.{module}.share_out",
            lambda do, threads, parts: (asked.append(threads), [do(part, parts) for part in range(parts)]),
        )
    lazy = da.zeros((6, 8), chunks=(6, 4))
    results = (
        exact.sort(lazy, 0, **said),
        exact.median(lazy, 0, **said),
        exact.median_filter(lazy, (1, 5), **said),
        exact.rolling(lazy, 5, **said).median(),
    )
    dask.compute(*results)
    assert len(asked) >= 8
    assert max(asked) == expected


def test_swapped_bytes():
    x = np.random.default_rng(0).standard_normal((5, 6)).astype(">f4")
    assert_same(exact.median(da.from_array(x, chunks=2), axis=0), np.median(x, axis=0).astype("f4"))
    assert_same(exact.rolling(da.from_array(x, chunks=2), 2).max(), exact.rolling(x, 2).max())


LAZY = da.zeros((4, 6), chunks=3, dtype="f4")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: exact.median(LAZY),
            nsc.OperandError,
            "axis=None takes the whole array .* in 4 blocks: name",
        ),
        (lambda: exact.median(LAZY, 0, out=np.zeros(6)), nsc.OperandError, "no out: .* dask.array.store"),
        (lambda: exact.sort(LAZY[LAZY[:, 0] > 0]), nsc.OperandError, "sort: .*compute_chunk_sizes"),
        (lambda: exact.rolling(LAZY[LAZY[:, 0] > 0], 2), nsc.OperandError, "rolling: .*compute_chunk_sizes"),
        (lambda: exact.sort(da.ma.masked_equal(LAZY, 0)), nsc.OperandTypeError, "sort: the array is masked"),
        (lambda: exact.median(LAZY.astype("c8"), 0), nsc.OperandTypeError, "median: .* got complex64"),
        (lambda: exact.topk(LAZY, 7), nsc.OperandError, "an integer in 0 … 6, the length of the axis, got 7"),
        (lambda: exact.median(LAZY, 0, workers=0), nsc.OperandError, "workers must be at least 1"),
        (lambda: exact.quantile(LAZY, 2, 0), nsc.OperandError, "q must be in 0 … 1"),
        (lambda: exact.median(LAZY, 0, weights=[1, 2]), nsc.OperandError, r"\(4, 6\) or \(4,\), got \(2,\)"),
        (lambda: exact.median(LAZY, 0, weights=[1, -1, 1, 1]), nsc.OperandError, "none negative"),
        (lambda: exact.median_filter(LAZY, 3, origin=2), nsc.WindowError, "in -1 … 1"),
        (lambda: exact.rolling(LAZY, 3, workers=0), nsc.OperandError, "workers must be at least 1"),
    ],
)
def test_what_is_not_served_is_refused_at_the_call(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_blocks_of_another_library_are_refused():
    """Such as those of sparse and CuPy, which say that they are arrays."""

    other = da.zeros(4, dtype="f4")
    other._meta = memoryview(b"")
    with pytest.raises(nsc.OperandTypeError, match="blocks of the array must be NumPy's, got memoryview"):
        exact.sort(other)


@pytest.mark.usefixtures("kernels")
def test_blocks_prove_a_network_once(monkeypatch, tmp_path):
    """They begin at the same time, before there is a kernel."""
    monkeypatch.setenv("NSC_CACHE_DIR", str(tmp_path))
    made = []
    compiled = compiling.compile_exact

    def slowly(n, *more):
        made.append(n)
        return compiled(n, *more)

    monkeypatch.setattr(compiling, "compile_exact", slowly)
    join.exact_kernel.cache_clear()
    join.exact_kind.cache_clear()
    x = np.random.default_rng(0).random((7, 80))
    found = exact.median(da.from_array(x, chunks=(7, 10)), axis=0)
    assert np.array_equal(found.compute(scheduler="threads", num_workers=8), np.median(x, axis=0))
    assert made == [7]


@SLOW
def test_blocks_pass_to_other_processes():
    x = np.random.default_rng(0).random((5, 12)).astype("f4")

    def results(x):
        return (
            exact.median(x, 0),
            exact.topk(x, 2, 0).indices,
            exact.rolling(x, 3).quantile(0.5),
            exact.median_filter(x, 3),
        )

    with dask.config.set(scheduler="processes", num_workers=1):
        found = dask.compute(*results(da.from_array(x, chunks=(5, 4))))
    for one, other in zip(found, results(x), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


@pytest.mark.parametrize("axes", [(0, 2), (2, 0)])
def test_an_empty_axis(axes):
    array = da.zeros((5, 4, 0), chunks=(2, 3, 1))
    with pytest.raises(nsc.OperandError, match="no values"):
        exact.median(array, axis=axes)
    assert exact.rolling(array, 3).median().compute().shape == (5, 4, 0)
    assert exact.sort(array, axis=0, return_indices=True).indices.compute().shape == (5, 4, 0)
