"""Catches a filter of nsc.numpy that differs from a plain loop over each window, for some window or rule."""

from __future__ import annotations

import functools
import itertools
import tracemalloc

import numpy as np
import pytest
import torch

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

import nsc
import nsc.numpy as exact
from nsc.contract.windows import MODES, NAN_RULES
from nsc.errors import OperandError, OperandTypeError, WindowError

pytestmark = pytest.mark.slow("many kernels are built")


def disk(radius):
    steps = np.arange(-radius, radius + 1)
    return steps[:, None] ** 2 + steps**2 <= radius**2


RING = disk(2) & ~np.pad(disk(1), 1)
CROSS = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
# Windows that have kernels here: by size and by footprint, with gaps at all sides.
KNOWN = (
    *(np.ones(shape, bool) for shape in [(3, 3), (2, 4), (1, 5), (3, 1)]),
    *(CROSS, disk(2), RING, np.array([[1, 0, 0, 1, 0]], bool), np.eye(3, dtype=bool)[1:]),
    *(np.array([[0, 0, 1]], bool), np.array([[0], [0], [1], [1]], bool)),
)
FUNCTIONS = ("median", "minimum", "maximum", "rank", "percentile")


def inside(place, length, mode):
    """Return the place of an array that stands at a place of its extension; None: nothing, or cval."""
    if 0 <= place < length:
        return place
    if mode == "nearest":
        return min(max(place, 0), length - 1)
    if mode == "wrap":
        return place % length
    if mode in ("reflect", "mirror"):
        period = 2 * length if mode == "reflect" else max(1, 2 * length - 2)
        at = place % period
        return at if at < length else (2 * length - 1 if mode == "reflect" else period) - at
    return None


def by_loops(x, select, footprint, mode, cval, origin, nan, mask, least):
    """Return a filter's results. `select` takes the ascending numbers of a window."""
    found = np.empty_like(x)
    none = np.nan if x.dtype.kind == "f" else cval
    skips = nan in ("ignore", "keep")
    for place in np.ndindex(x.shape):
        values, has_nan = [], False
        for offset in np.argwhere(footprint):
            at = [
                inside(p + o - size // 2 - shift, length, mode)
                for p, o, size, shift, length in zip(
                    place, offset, footprint.shape, origin, x.shape, strict=True
                )
            ]
            if None in at:
                if mode == "shrink":
                    continue
                value = x.dtype.type(cval)
            elif mask is not None and mask[tuple(at)]:
                continue
            else:
                value = x[tuple(at)]
            has_nan |= bool(value != value)
            if not (skips and value != value):
                values.append(value)
        ordered = np.sort(np.array(values, x.dtype))
        is_kept = nan == "keep" and (x[place] != x[place] or (mask is not None and mask[place]))
        result = select(ordered) if len(values) >= least else None
        if nan == "propagate" and has_nan:
            result = np.nan
        found[place] = x[place] if is_kept else none if result is None else result
    return found


def median_of(values, is_mean):
    low, high = values[(len(values) - 1) // 2], values[len(values) // 2]
    if not is_mean or low == high:
        return high
    wide = np.float64 if values.dtype == np.float64 else np.float32
    return (wide(low) + wide(high)) / 2


def at_rank(rank, count, values, is_mean):
    """Return the value of a rank of windows of `count` values, of one that may lack some."""
    if 2 * rank == count - 1:
        return median_of(values, is_mean)
    at = rank if 2 * rank < count else len(values) + rank - count
    return values[at] if 0 <= at < len(values) else None


@st.composite
def calls(draw):
    """Return a call: the function, the array, options of the call, and the same for `by_loops`."""
    seed = np.random.default_rng(draw(st.integers(0, 2**32)))
    dtype = draw(st.sampled_from(["float32", "float64", "float16", "uint8", "int16", "bool", "int64"]))
    x = seed.integers(0, draw(st.sampled_from([3, 100])), tuple(seed.integers(1, 12, 2))).astype(dtype)
    is_float = x.dtype.kind == "f"
    if is_float:
        x /= 2
        x[seed.random(x.shape) < draw(st.sampled_from([0, 0.05, 0.4, 1]))] = np.nan
        x[seed.random(x.shape) < 0.05] = np.inf
    if draw(st.integers(0, 3)):
        footprint = KNOWN[draw(st.integers(0, len(KNOWN) - 1))]
    else:
        footprint = seed.random(tuple(seed.integers(1, 5, 2))) < 0.6
        footprint[tuple(seed.integers(0, footprint.shape))] = True
    mode, nan = draw(st.sampled_from(sorted(MODES))), draw(st.sampled_from(NAN_RULES))
    mask = seed.random(x.shape) < draw(st.sampled_from([0.1, 0.7])) if draw(st.booleans()) else None
    count = int(footprint.sum())
    may_miss = mask is not None or mode == "shrink" or (is_float and nan in ("ignore", "keep"))
    least = draw(st.integers(1, count)) if may_miss and draw(st.booleans()) else None
    origin = tuple(draw(st.integers(-(size // 2), (size - 1) // 2)) for size in footprint.shape)
    cval = draw(st.sampled_from([0, 1]))
    name, is_mean = draw(st.sampled_from(FUNCTIONS)), may_miss and is_float
    rank, percentile = draw(st.integers(-count, count - 1)), draw(st.sampled_from([0, 10, 50, 99, 100, -20]))
    part = percentile % 100 if percentile < 0 else percentile
    select = {
        "median": lambda v: median_of(v, is_mean),
        "minimum": lambda v: v[0],
        "maximum": lambda v: v[-1],
        "rank": lambda v: at_rank(rank % count, count, v, is_mean),
        "percentile": lambda v: v[min(int(len(v) * part / 100), len(v) - 1)],
    }[name]
    first = {"rank": [rank], "percentile": [percentile]}.get(name, [])
    options = {"mode": mode, "cval": cval, "origin": origin, "nan": nan, "mask": mask, "min_count": least}
    options |= (
        {"size": footprint.shape} if footprint.all() and draw(st.booleans()) else {"footprint": footprint}
    )
    loops = (x, select, footprint, mode, cval, origin, nan, mask, least or 1)
    return getattr(exact, f"{name}_filter"), (x, *first), options, loops


@settings(max_examples=120)
@given(calls())
def test_numpy_gives_what_loops_give(call):
    function, arguments, options, loops = call
    found = function(*arguments, **options)
    assert found.dtype == arguments[0].dtype
    assert np.array_equal(found, by_loops(*loops), equal_nan=found.dtype.kind == "f")


@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("footprint", [KNOWN[0], disk(2), KNOWN[3], RING], ids=str)
def test_kernels_give_what_numpy_gives(footprint, dtype):
    """Windows that lack none, few or most of their values, at borders and inside, in strips and rims."""
    random = np.random.default_rng(0)
    for shape, share in itertools.product([(11, 70), (9, 3)], [0, 0.02, 0.3, 0.95]):
        x = random.integers(0, 50, shape).astype(dtype)
        mask = random.random(shape) < share
        for mode, least in itertools.product(["shrink", "reflect", "constant"], [1, 3]):
            options = {"footprint": footprint, "mode": mode, "cval": 7, "mask": mask, "min_count": least}
            for call in (exact.median_filter, exact.minimum_filter, exact.maximum_filter):
                by_peer = call(x, **options)
                with exact.prepare():
                    found = call(x, **options)
                assert np.array_equal(found, by_peer, equal_nan=x.dtype.kind == "f")


SERIES = [np.nan, 2, 3, 4, 10, 6, 7, np.nan, 9, 10, 11]
ONE_NAN = np.where(np.eye(5)[2][:, None] * np.eye(5)[2], np.nan, 0.0)

# Public reports: the call, and the right results.
REPORTS = {
    "scipy 22000, NaN the largest": (
        lambda: exact.median_filter(SERIES, 5),
        [3, 4, 4, 4, 6, 7, 9, 9, 10, 11, 10],
    ),
    "scipy 22000, NaN left out": (
        lambda: exact.median_filter(SERIES, 5, nan="ignore"),
        [2, 3, 3.5, 4, 6, 6.5, 8, 8, 9.5, 10.5, 10],
    ),
    "scipy 10807, as Matlab": (
        lambda: exact.median_filter(ONE_NAN, 3, "constant", nan="keep"),
        ONE_NAN,
    ),
    "scipy 4800, the numbers of a window": (
        lambda: exact.median_filter([[1, np.nan, 3]] * 3, 3, "nearest", nan="ignore"),
        [[1, 2, 3]] * 3,
    ),
    "silx 2016, NaN stays": (
        lambda: exact.median_filter([1, np.nan, 3, 4], 3, "nearest", nan="keep"),
        [1, np.nan, 3.5, 4],
    ),
    "scipy 16648, bool": (
        lambda: exact.median_filter([True, True, False, True, False], 3, "constant"),
        [True, True, True, False, False],
    ),
    "scikit-image 7960, cut at the border": (
        lambda: exact.median_filter(np.arange(1, 10, dtype=np.uint8).reshape(3, 3), 3, "shrink"),
        [[4, 4, 5], [5, 5, 6], [7, 7, 8]],
    ),
    "CellProfiler 4387, masked": (
        lambda: exact.median_filter(
            np.array([9, 1, 2, 9], np.uint8), 3, "shrink", mask=[True, False, False, True]
        ),
        [1, 2, 2, 2],
    ),
}


@pytest.mark.parametrize("name", REPORTS)
def test_what_public_reports_ask_for(name):
    call, expected = REPORTS[name]
    assert np.array_equal(call(), expected, equal_nan=True)


MESSAGES = [
    ({"footprint": np.zeros((3, 3))}, WindowError, "footprint has no place: set one or more"),
    ({"footprint": np.ones(3)}, WindowError, r"footprint must have an axis for each of the 2 axes, .*\(3,\)"),
    ({"size": 3, "footprint": np.ones((3, 3))}, WindowError, "by size or by footprint, got both"),
    ({}, WindowError, "by size or by footprint, got neither"),
    (
        {"size": 3, "mask": np.zeros(4, bool)},
        OperandError,
        r"mask must have the array's shape \(4, 5\), got \(4,\)",
    ),
    ({"size": 3, "mask": np.zeros((4, 5))}, OperandTypeError, "mask must be of bool, .* got float64"),
    (
        {"size": 3, "nan": "omit"},
        OperandError,
        "nan must be one of largest, propagate, ignore, keep, got 'omit'",
    ),
    ({"size": 3, "nan": "ignore", "min_count": 10}, OperandError, r"min_count .* in 1 … 9, got 10"),
    ({"size": 3, "min_count": 2}, OperandError, "add nan='ignore', a mask or mode='shrink'"),
    ({"size": 3, "axes": (0, 0)}, OperandError, "each once"),
]


@pytest.mark.parametrize(("options", "error", "message"), MESSAGES)
def test_messages_say_what_to_do(options, error, message):
    with pytest.raises(error, match=message):
        exact.median_filter(np.zeros((4, 5)), **options)


def test_windows_without_a_kernel_are_filtered_with_a_warning():
    x = np.random.default_rng(0).random((20, 21))
    with pytest.warns(RuntimeWarning, match="windows of up to 225 values have kernels"):
        found = exact.median_filter(x, 17)
    assert np.array_equal(found, ndimage.median_filter(x, 17))
    series = np.random.default_rng(0).integers(0, 99, 600)
    for rank, origin in ((3, 0), (200, -100)):
        expected = ndimage.rank_filter(series, rank, 257, origin=origin)
        assert np.array_equal(exact.rank_filter(series, rank, 257, origin=origin), expected)
    assert np.array_equal(exact.maximum_filter(x, 17), ndimage.maximum_filter(x, 17))


@pytest.mark.filterwarnings("ignore:.*NumPy sorts each window")
def test_large_windows_take_little_memory():
    """All windows of the first image would take 200 MB."""
    x = np.random.default_rng(0).random((1, 200, 425))
    tracemalloc.start()
    found = exact.median_filter(x, (1, 17, 17))
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 100e6
    assert np.array_equal(found[0, 50:60], exact.median_filter(x[0, 40:70], 17)[10:20])


@pytest.mark.parametrize("footprint", [disk(3), RING])
def test_footprints_and_axes_are_scipys(footprint):
    x = np.random.default_rng(0).random((3, 12, 30))
    for axes in ((1, 2), (0, 2), (2, 1)):
        expected = ndimage.percentile_filter(x, 30, footprint=footprint, axes=axes, mode="mirror", origin=1)
        found = exact.percentile_filter(x, 30, footprint=footprint, axes=axes, mode="mirror", origin=1)
        assert np.array_equal(found, expected)
    # A size belongs to the axis named at the same place.
    expected = ndimage.median_filter(x, size=(5, 3), axes=(0, 2))
    assert np.array_equal(exact.median_filter(x, (3, 5), axes=(2, 0)), expected)


@pytest.mark.parametrize("mode", ["reflect", "shrink"])
@pytest.mark.parametrize("nan", NAN_RULES)
def test_filters_of_tensors_are_numpys(nan, mode):
    """With a kernel, written out in a transform, and compiled by torch."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(2, 9, 20, generator=generator)
    x[torch.rand(x.shape, generator=generator) < 0.1] = torch.nan
    mask = torch.rand(x.shape, generator=generator) < 0.1
    for rank, options in ((None, {}), (2, {"min_count": 4}), (-1, {})):
        if nan in ("largest", "propagate") and mode == "reflect":
            options = {}
        filter_ = nsc.compile_filter(rank=rank, footprint=disk(2))
        call = functools.partial(filter_, mode=mode, nan=nan, **options)
        named = {"footprint": disk(2), "axes": (1, 2), "mode": mode, "nan": nan, **options}
        for hidden in (None, mask) if not options else (mask,):
            more = {} if hidden is None else {"mask": hidden.numpy()}
            select = exact.median_filter if rank is None else functools.partial(exact.rank_filter, rank=rank)
            expected = select(x.numpy(), **named, **more)
            assert np.array_equal(call(x, mask=hidden).numpy(), expected, equal_nan=True)
            dims = (0, None if hidden is None else 0)
            written = torch.func.vmap(lambda x, mask, call=call: call(x, mask=mask), dims)
            assert np.array_equal(written(x, hidden).numpy(), expected, equal_nan=True)


def test_layers_take_footprints_and_missing_pixels():
    x = torch.randn(2, 3, 8, 9)
    x[0, 0, 2, 3] = torch.nan
    mask = torch.zeros(x.shape, dtype=torch.bool)
    mask[1, 2, 4, 4] = True
    layer = nsc.nn.MedianFilter2d(footprint=disk(1), mode="shrink", nan="ignore", min_count=2)
    expected = exact.median_filter(
        x.numpy(), footprint=disk(1), axes=(2, 3), mode="shrink", nan="ignore", min_count=2, mask=mask.numpy()
    )
    assert np.array_equal(layer(x, mask).numpy(), expected)
    assert (
        repr(layer)
        == "MedianFilter2d(the median of 5 of 3x3 pixels, mode='shrink', nan='ignore', min_count=2)"
    )
    compiled = torch.compile(layer, fullgraph=True)
    assert torch.equal(compiled(x, mask), layer(x, mask))
    last = x.to(memory_format=torch.channels_last)
    assert torch.equal(layer(last, mask), layer(x, mask))
    with pytest.raises(OperandError, match="exact filters"):
        nsc.nn.MedianFilter2d(3, relaxed=True, nan="ignore")


def test_the_gradient_of_a_mean_goes_to_both_pixels():
    x = torch.tensor([[1.0, torch.nan, 2.0, 5.0]], requires_grad=True)
    nsc.compile_filter("1x3")(x, "shrink", nan="ignore").sum().backward()
    # The medians of 1; of 1 and 2; of 2 and 5; of 2 and 5.
    assert x.grad.tolist() == [[1.5, 0, 1.5, 1.0]]
