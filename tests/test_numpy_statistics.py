"""Catches a median, quantile or trimmed mean that is not NumPy's, SciPy's or its definition's."""

from __future__ import annotations

import math
import re
import warnings
from contextlib import nullcontext
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import nsc
import nsc.numpy as exact
from nsc.numpy.rules import METHODS

pytestmark = pytest.mark.slow("arrays of many types are compared with NumPy's")
WITH_KERNELS = pytest.mark.usefixtures("kernels")

# Each length and type has a kernel: most tests share one length, which other files use too.
LENGTH = 5
DTYPES = ("float16", "float32", "float64", "uint8", "int64")
LEVELS = (0.3, 0.5, 0, 1, 0.99, np.float64(0.25), np.float32(0.1), [0.0, 0.1, 0.5, 1.0], [[0.2], [0.7]])


def floats(dtype):
    few = st.sampled_from([0.0, -0.0, 1.0, 2.0, np.nan, np.nan, np.inf, -np.inf])
    return few | st.floats(width=np.dtype(dtype).itemsize * 8)


def draw_samples(data, dtype, n):
    """Draw an array with samples of n values along an axis of two or three."""
    shape = [data.draw(st.sampled_from([0, 1, 3])), data.draw(st.sampled_from([1, 5, 16, 130]))]
    axis = data.draw(st.integers(0, 2))
    shape.insert(axis, n)
    elements = floats(dtype) if dtype.startswith("float") else None
    drawn = data.draw(arrays(dtype, 30, elements=elements))
    x = np.random.default_rng(data.draw(st.integers(0, 1000))).choice(drawn, shape)
    return (np.asfortranarray(x) if data.draw(st.booleans()) else x), axis


def quietly(function, *arguments, **more):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*arguments, **more)


def of_each(function, x, axis, keeps_nan=False):
    """Return a function of the numbers of each sample, NaN of none, and of one with a NaN if it keeps NaN."""

    def of_numbers(sample):
        numbers = sample[~np.isnan(sample)] if sample.dtype.kind == "f" else sample
        if not numbers.size or (keeps_nan and numbers.size < sample.size):
            return np.nan
        return quietly(function, numbers)

    samples = np.moveaxis(x, axis, -1)
    return np.array([of_numbers(sample) for sample in samples.reshape(-1, samples.shape[-1])]).reshape(
        samples.shape[:-1]
    )


def right_median(numbers):
    ordered = sorted(numbers.tolist())
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return between(low, high, Fraction(1, 2))


def between(low, high, share):
    """Return the number at a share of the way, rounded once to float64."""
    if share in (0, 1):
        return float(high if share else low)
    if math.isinf(low) or math.isinf(high):
        return low + high
    return float(Fraction(low) + (Fraction(high) - Fraction(low)) * share)


@cache
def weights_of(n, q, method):
    """Return the two ranks that a quantile of n values reads, and the share of the second.

    NumPy says them: the quantile of samples of 0 and 1 is the share of the values that are 1.
    """
    steps = np.tri(n + 1, n, -1)[:, ::-1]  # as many 1 as the number of the row, at the end
    shares = quietly(np.quantile, steps, q, axis=1, method=method).tolist()
    low = max(rank for rank in range(n) if shares[n - rank] == 1)
    return low, min(low + 1, n - 1), Fraction(shares[n - low - 1])


def same(found, expected):
    return found.shape == expected.shape and np.array_equal(found, expected, equal_nan=True)


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize(
    ("dtype", "n", "server"),
    [
        *((dtype, 6, nullcontext) for dtype in DTYPES),
        ("float32", 6, exact.prepare),
        ("float64", LENGTH, exact.prepare),
    ],
)
def test_medians(dtype, n, server, data):
    x, axis = draw_samples(data, dtype, n)
    with server():
        medians, of_numbers = exact.median(x, axis), exact.nanmedian(x, axis)
    expected = quietly(np.median, x, axis)
    assert medians.dtype == of_numbers.dtype == expected.dtype
    assert same(medians, of_each(right_median, x, axis, keeps_nan=True).astype(expected.dtype))
    assert same(of_numbers, of_each(right_median, x, axis).astype(expected.dtype))
    if dtype != "int64":  # NumPy rounds large integers before it adds them
        assert ((medians == expected) | ~np.isfinite(expected)).all()


@WITH_KERNELS
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_quantiles_have_numpys_bits(dtype, method):
    """Samples with holes have every count of numbers."""
    random = np.random.default_rng(0)
    x = (random.standard_normal((LENGTH, 60)) * 20).astype(dtype)
    holes = x.copy()
    if dtype.startswith("float"):
        holes[random.random(x.shape) < 0.3] = np.nan
        holes[:, 0] = 1.0  # NumPy's results have the type of the first sample's
        x[:, 3] = np.nan
    calls = [
        *((exact.quantile, np.quantile, x, q) for q in LEVELS),
        *((exact.nanquantile, np.nanquantile, holes, q) for q in LEVELS),
        (exact.percentile, np.percentile, x, 30),
        (exact.percentile, np.percentile, x, np.float32(10)),
        (exact.nanpercentile, np.nanpercentile, holes, [[20], [70]]),
    ]
    for ours, numpys, array, q in calls:
        found, expected = (quietly(each, array, q, axis=0, method=method) for each in (ours, numpys))
        assert found.dtype == expected.dtype, (ours, q)
        assert same(found, expected), (ours, q)


EXTREMES = {
    "float16": [65504.0, 40000.0, 1.0, 6e-8],
    "float32": [float(np.finfo(np.float32).max), 3e38, 1.5, 1e-45],
    "float64": [float(np.finfo(np.float64).max), 1e308, 1.5, 5e-324],
    "int8": [127, 126, 3],
    "int16": [32767, 20000, 3],
    "int64": [2**63 - 1, 2**62 + 1, 2**53 + 1, 3],
}


@settings(max_examples=10)
@given(data=st.data())
@pytest.mark.parametrize("dtype", EXTREMES)
def test_huge_and_infinite_values(dtype, data):
    """No step of a quantile, a median or a mean overflows, or makes NaN of values that have a result."""
    is_float = dtype.startswith("float")
    values = [sign * value for value in EXTREMES[dtype] for sign in (1, -1)] + [0]
    drawn = st.sampled_from(values + [math.inf, -math.inf] * is_float)
    n, q = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([0.0, 0.1, 0.25, 1 / 3, 0.5, 0.9, 1.0]))
    x = data.draw(arrays(dtype, (3, n), elements=drawn))
    ordered, gaps = np.sort(x, axis=1), np.insert(x, n // 2, np.nan, axis=1) if is_float else x
    for method in METHODS:
        *ranks, share = weights_of(n, q, method)
        results = [
            exact.quantile(x, q, 1, method=method),
            exact.quantile(x, np.float64(q), 1, method=method),
            exact.nanquantile(gaps, q, 1, method=method),
            exact.rolling(x, n).quantile(q, method)[:, -1],
        ]
        if method == "linear":
            results.append(exact.quantile(x, q, 1))
        for found in results:
            check(found, ordered[:, ranks], lambda low, high, share=share: between(low, high, share))
            assert same(np.clip(found, *ordered[:, ranks].T), found)
    weights = np.full(n, 0.7)
    right = of_each(right_median, x, 1).astype(exact.median(x, 1).dtype)
    for found in (
        exact.median(x, 1),
        exact.median(x, 1, workers=1),
        exact.nanmedian(gaps, 1),
        exact.median(x, 1, weights=weights),
        np.array([exact.median(row) for row in x]),
    ):
        assert same(found, right)
    cut = n // 3
    check(exact.trimmed_mean(x, cut / n, 1), ordered[:, cut : n - cut], mean)
    check(exact.trimmed_mean(x, 0, 1, weights=weights), ordered, mean)


def mean(*values):
    infinite = sum(filter(math.isinf, values))
    return infinite or float(sum(map(Fraction, values)) / len(values))


def check(found, values, right):
    """Compare numbers with the right ones for rows of values. Rounding may cost four units of the largest."""
    types = [np.finfo(dtype) for dtype in (float, found.dtype, values.dtype) if np.dtype(dtype).kind == "f"]
    eps, least = (max(Fraction(float(getattr(each, name))) for each in types) for name in ("eps", "tiny"))
    for number, row in zip(found.tolist(), values.tolist(), strict=True):
        expected = right(*row)
        if math.isfinite(expected):
            largest = max(Fraction(abs(value)) for value in row if math.isfinite(value))
            assert abs(Fraction(number) - Fraction(expected)) <= 4 * eps * (largest + least)
        else:
            assert same(np.float64(number), np.float64(expected))


inf, nan = math.inf, math.nan
HALVES = np.float16([[1, 1e4, 4e4]] * 2)
LARGEST = float(np.finfo(np.float64).max)
INVERTED = {"method": "inverted_cdf"}
# Public reports of wrong results of NumPy, bottleneck, pandas and others, with the right ones.
REPORTS = {
    "numpy#30376": (lambda: exact.quantile(np.int16([32767, -1]), 0.5), 16383),
    "numpy#22688": (lambda: exact.nanmedian(np.float16([[1, 4e4]]), axis=0), [1, 4e4]),
    "numpy#22688, two rows": (lambda: exact.nanmedian(HALVES, axis=0), HALVES[0]),
    "mathilda#71": (lambda: exact.quantile([-1e308, 1e308], 0.5), 0),
    "weighted": (lambda: exact.trimmed_mean([LARGEST] * 3, 0, weights=[0.7] * 3), LARGEST),
    "float32": (lambda: exact.median(np.float32([[3e38], [3e38]])), np.float32(3e38)),
    "matrixone#28320": (lambda: exact.median([-(2**63), 2**63 - 1]), -0.5),
    "matrixone#28320, columns": (lambda: exact.median(np.array([[-(2**63)], [2**63 - 1]]), axis=0), [-0.5]),
    "matrixone#28320, weighted": (lambda: exact.median([-(2**63), 2**63 - 1], weights=[1, 1]), -0.5),
    "datafusion#19322": (lambda: exact.median(np.int8([-85, -56])), -70.5),
    "Statistics.jl#120": (lambda: exact.median([2**63 - 1] * 2), 2.0**63),
    "numpy#32535": (lambda: exact.median(np.zeros((0, 3, 4)), axis=(1, 2)), np.empty(0)),
    "numpy#22714": (
        lambda: exact.median(np.ones((2, 3)), 1, keepdims=True, out=np.zeros((2, 1))),
        [[1], [1]],
    ),
    "numpy#30066": (lambda: exact.nanquantile([1, nan], 0.5, weights=[0, 1], **INVERTED), nan),
    "numpy#27549": (lambda: exact.quantile(range(3), 0, weights=[0, 0, 1], **INVERTED), 2),
    "numpy#24593": (lambda: exact.quantile(range(100), 0, method="averaged_inverted_cdf"), 0),
    "numpy#31487": (lambda: exact.nanquantile(np.zeros(65521, np.float16), np.float16(0.5)), 0),
    "numpy#12282": (
        lambda: exact.percentile([inf, 5, 4], range(10, 91, 10)),
        [4.2, 4.4, 4.6, 4.8, 5, inf, inf, inf, inf],
    ),
    "numpy#21091": (lambda: exact.quantile([-inf, -inf, 3, 4], [0, 1 / 3, 2 / 3, 1]), [-inf, -inf, 3, 4]),
    "numpy#21932": (lambda: exact.quantile([1, inf], 0.0), 1),
    "numpy#22005": (lambda: [exact.quantile([5, inf], 0.7), exact.quantile([-inf, 5], 0.3)], [inf, -inf]),
    "bottleneck#12": (lambda: exact.nanmedian([nan, nan, 1]), 1),
    "bottleneck#22": (lambda: exact.nanmedian([1, nan, nan, 2]), 1.5),
    "bottleneck#111": (lambda: exact.rolling([1, 2, inf, 3, 4, 5], 3).median(), [nan, nan, 2, 3, 4, 4]),
    "bottleneck#111, huge": (lambda: exact.rolling([LARGEST] * 4, 3).median(), [nan, nan, LARGEST, LARGEST]),
    "windows of infinities": (
        lambda: exact.rolling([inf, inf, inf, 1], 2).quantile(0.3),
        [nan, inf, inf, inf],
    ),
    "bottleneck#104": (lambda: exact.nanmedian(np.array([3, 1, nan, 2], ">f4")), 2),
    "jax#6431": (lambda: exact.nanmedian([2, -nan, 4]), 3),
    "jax#2446": (lambda: exact.median([inf] * 4), inf),
    "statistics#136": (lambda: exact.quantile([inf] * 4, 0.3), inf),
    "jax#6444": (lambda: exact.quantile([1, 2, nan], 0.5), nan),
    "polars#28368": (lambda: exact.nanmedian([1, 2, nan, nan, nan, 6, 7]), 4),
    "mindspore#276": (lambda: exact.median([inf, 0, -1, nan, 5]), nan),
    "pandas#8365": (lambda: exact.rolling([1000.000669, 1000.000041, 1000.000351], 3).rank(), [nan, nan, 2]),
    "polars#22781": (
        lambda: exact.rolling([nan, nan, 1, nan, nan], 2, min_periods=1).quantile(0.5),
        [nan, nan, 1, 1, nan],
    ),
    "spectral-cube#476": (lambda: exact.nanmedian([[[1, nan], [3, 8]]] * 2, axis=(1, 2)), [3, 3]),
}


@pytest.mark.parametrize("report", REPORTS)
def test_reports(report):
    call, right = REPORTS[report]
    assert np.allclose(call(), right, rtol=1e-15, atol=0, equal_nan=True)
    assert np.shape(call()) == np.shape(right)


@pytest.mark.skipif(not np.__version__.startswith("2.4."), reason="the page is about NumPy 2.4")
def test_the_page_says_where_numpy_is_wrong():
    page = (Path(__file__).parents[1] / "docs" / "exact.md").read_text("utf-8").replace("−", "-")
    table = page.split("### Where NumPy is wrong")[1].split("|---|---|---|---|\n")[1].split("\n\n")[0]
    names = {"np": np, "inf": inf, "nan": nan}
    theirs = {name: getattr(np, name) for name in np.__all__} | {"trimmed_mean": stats.trim_mean}
    for row in table.splitlines():
        _, _, calls, wrong, right, _ = re.split(r" ?\| ?", row)
        is_refused = wrong == "an error"
        results = eval(f"[{right}]", names), eval(f"[{right if is_refused else wrong}]", names)
        for call, ours, numpys in zip(calls[1:-1].split("`, `"), *results, strict=True):
            found = eval(call, vars(exact) | names)
            assert np.array_equal(found, np.asarray(ours, found.dtype), equal_nan=True), call
            with pytest.raises(ValueError, match=r"reshape|Weights") if is_refused else nullcontext():
                assert np.array_equal(quietly(eval, call, theirs | names), numpys, equal_nan=True), call


@pytest.mark.parametrize("n", [70, exact.MOST + 1])
def test_many_values(n):
    """Samples are grouped by their counts of numbers; NumPy sorts the longer ones."""
    random = np.random.default_rng(0)
    x = random.standard_normal((n, 20)).astype(np.float32)
    x[random.random(x.shape) < random.random(20)] = np.nan
    x[:, 3] = np.nan
    assert same(exact.nanmedian(x, 0), of_each(np.median, x, 0).astype(np.float32))
    assert same(exact.nanquantile(x, 0.7, 0), quietly(np.nanquantile, x, 0.7, 0))


def whole_weights(data, shape):
    weights = data.draw(arrays(np.int64, shape, elements=st.integers(0, 4)))
    weights[..., 0] |= weights.sum(axis=-1) == 0
    return weights


@WITH_KERNELS
@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_weights_repeat_values(dtype, data):
    """Whole weights give the statistic of repeated values; NaN has no weight where it is left out."""
    n, rows = LENGTH, 5
    x = data.draw(arrays(dtype, (rows, n), elements=floats(dtype) if dtype != "uint8" else None))
    weights = whole_weights(data, data.draw(st.sampled_from([(n,), (rows, n)])))
    each = np.broadcast_to(weights, x.shape)
    proportion = data.draw(st.sampled_from([0.0, 0.25]))
    for row, of_row in zip(x, each, strict=True):
        repeated = np.repeat(row, of_row)
        is_nan = np.isnan(row).any()
        found = exact.nanmedian(row, weights=of_row)
        numbers = repeated[~np.isnan(repeated)]
        median = right_median(numbers) if numbers.size else np.nan
        assert same(found, np.asarray(median, found.dtype))
        assert same(exact.median(row, weights=of_row), np.asarray(np.nan if is_nan else median, found.dtype))
        if len(repeated) % 4 == 0 and np.isfinite(row).all():
            trimmed = quietly(stats.trim_mean, repeated.astype(np.float64), proportion)
            found = exact.trimmed_mean(row, proportion, weights=of_row)
            assert abs(found - trimmed) <= 1e-6 * np.abs(row.astype(np.float64)).max()
    found = exact.median(x, 1, weights=weights)
    assert same(found, np.array([exact.median(row, weights=w) for row, w in zip(x, each, strict=True)]))


@WITH_KERNELS
@settings(max_examples=40)
@given(data=st.data())
@pytest.mark.parametrize("dtype", ["float32", "uint8"])
def test_weighted_quantiles_are_numpys(dtype, data):
    x = data.draw(arrays(dtype, (5, LENGTH), elements=floats(dtype) if dtype != "uint8" else None))
    weights = whole_weights(data, data.draw(st.sampled_from([(LENGTH,), (5, LENGTH)])))
    q = data.draw(st.sampled_from([0, 0.5, 1.0, [0.1, 0.5]]))
    arguments = {"axis": 1, "weights": weights, "method": "inverted_cdf"}
    found, expected = exact.quantile(x, q, **arguments), quietly(np.quantile, x, q, **arguments)
    assert found.dtype == expected.dtype
    assert same(found, expected)
    if not (np.broadcast_to(weights, x.shape) * ~np.isnan(x)).any(axis=1).all():
        return  # NumPy refuses samples whose numbers have no weight
    weights = np.broadcast_to(weights, x.shape)
    assert same(
        exact.nanquantile(x, q, **arguments),
        quietly(np.nanquantile, x, q, **arguments | {"weights": weights}),
    )


@WITH_KERNELS
@pytest.mark.parametrize("n", [LENGTH, LENGTH + 1])
def test_equal_weights_change_nothing(n):
    """Sums of 0.1 are not whole, and still tell the middle from what is beside it."""
    x = np.random.default_rng(0).standard_normal((n, 50))
    for weight in (0.1, 1 / 3, 7e-300, 1e300):
        weights = np.full(n, weight)
        assert same(exact.median(x, 0, weights=weights), np.median(x, 0))
        found = exact.trimmed_mean(x, 0, 0, weights=weights)
        assert np.allclose(found, x.mean(axis=0), rtol=0, atol=1e-15)


@WITH_KERNELS
def test_the_weighted_median_of_negated_values_is_negated():
    random = np.random.default_rng(0)
    x, weights = random.standard_normal((LENGTH, 400)), random.random((LENGTH, 400))
    assert same(exact.median(-x, 0, weights=weights), -exact.median(x, 0, weights=weights))


@WITH_KERNELS
def test_weights_of_several_axes():
    """Weights follow their axes, in the order named and in any order in memory."""
    random = np.random.default_rng(0)
    x, weights = random.standard_normal((3, 40, 2)), random.integers(0, 5, (2, 3)) + 1
    full = np.broadcast_to(weights.T[:, None, :], x.shape)
    expected = [np.median(np.repeat(x[:, place].ravel(), weights.T.ravel())) for place in range(40)]
    for lying in (x, np.asfortranarray(x)):
        assert same(exact.median(lying, (2, 0), weights=weights), np.array(expected))
        assert same(exact.median(lying, (2, 0), weights=full), np.array(expected))


@WITH_KERNELS
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
@pytest.mark.parametrize("proportion", [0, 0.2, 0.49])
def test_trimmed_means_are_scipys(dtype, proportion):
    x = (np.random.default_rng(0).standard_normal((LENGTH, 90)) * 20).astype(dtype)
    found = exact.trimmed_mean(x, proportion, 0)
    expected = stats.trim_mean(x.astype(np.float64), proportion, axis=0)
    assert found.dtype == (np.float64 if dtype == "uint8" else dtype)
    assert np.allclose(found, expected, *((0, 1e-13) if found.dtype == np.float64 else (1e-7, 0)))
    if dtype != "uint8":
        x[3, 4], x[0, 5], x[1, 6] = np.nan, np.inf, -np.inf
        found = exact.trimmed_mean(x, 0.2, 0)
        assert np.isnan(found[4])
        assert np.isfinite(found[[5, 6]]).all()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: exact.quantile([1.0], 1.5), nsc.OperandError, "q must be in 0 … 1, got 1.5"),
        (lambda: exact.percentile([1.0], [1, -1]), nsc.OperandError, "q must be in 0 … 100"),
        (lambda: exact.quantile([1.0], "half"), nsc.OperandTypeError, "q must be one real number or some"),
        (lambda: exact.quantile([1.0], np.ma.array([0.5])), nsc.OperandTypeError, "q is masked"),
        (lambda: exact.quantile([1.0], 0.5, method="best"), nsc.OperandError, "method must be one of inv"),
        (
            lambda: exact.quantile([1.0], 0.5, weights=[1]),
            nsc.OperandError,
            "weights need the method 'inverted_cdf'",
        ),
        (
            lambda: exact.median([1.0, 2], weights=[1]),
            nsc.OperandError,
            r"shape \(2,\), got \(1,\)",
        ),
        (lambda: exact.median([1.0, 2], weights=[1, -1]), nsc.OperandError, "finite, and none negative"),
        (lambda: exact.median([1.0, 2], weights=[0, 0]), nsc.OperandError, "a finite sum above 0"),
        (lambda: exact.median([1.0, 2], weights=[1, np.nan]), nsc.OperandError, "finite, and none negative"),
        (
            lambda: exact.median(np.uint8([[3], [250]]), 0, out=np.zeros(1, np.uint8)),
            nsc.OperandTypeError,
            "out must be able to hold float64, got uint8",
        ),
        (lambda: exact.median([1.0, 2], weights=[1e308, 1e308]), nsc.OperandError, "a finite sum above 0"),
        (lambda: exact.median([1.0], weights=["a"]), nsc.OperandTypeError, "got <U1"),
        (lambda: exact.median([1.0], weights=np.ma.array([1])), nsc.OperandTypeError, "masked"),
        (lambda: exact.trimmed_mean([1.0, 2], 0.5), nsc.OperandError, "less than 1/2, got 0.5"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
