"""Catches a median, quantile or trimmed mean that is not NumPy's, SciPy's or its definition's."""

from __future__ import annotations

import warnings
from contextlib import nullcontext

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


def of_each(function, x, axis):
    """Return a function of the numbers of each sample, NaN of none."""

    def of_numbers(sample):
        numbers = sample[~np.isnan(sample)] if sample.dtype.kind == "f" else sample
        return quietly(function, numbers) if numbers.size else np.nan

    samples = np.moveaxis(x, axis, -1)
    return np.array([of_numbers(sample) for sample in samples.reshape(-1, samples.shape[-1])]).reshape(
        samples.shape[:-1]
    )


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
    assert same(medians, expected)
    assert same(of_numbers, of_each(np.median, x, axis).astype(expected.dtype))


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
        x[:, 1], holes[:, 2], x[:, 3] = np.inf, -np.inf, np.nan
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


def test_differences_of_integers_do_not_overflow():
    assert exact.quantile(np.array([-128, 127], np.int8), 0.5) == -0.5
    assert exact.quantile(np.array([0, 2**63 - 1]), 0.5) == 2.0**62


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
    # The sum of two is finite, which numpy.median forms of equal ones too.
    elements = floats(dtype).filter(lambda value: not 1e30 < abs(value) < np.inf)
    x = data.draw(arrays(dtype, (rows, n), elements=elements if dtype != "uint8" else None))
    weights = whole_weights(data, data.draw(st.sampled_from([(n,), (rows, n)])))
    each = np.broadcast_to(weights, x.shape)
    proportion = data.draw(st.sampled_from([0.0, 0.25]))
    for row, of_row in zip(x, each, strict=True):
        repeated = np.repeat(row, of_row)
        is_nan = np.isnan(row).any()
        median = np.nan if is_nan else quietly(np.median, repeated)
        assert same(exact.median(row, weights=of_row), np.asarray(median))
        numbers = repeated[~np.isnan(repeated)]
        median = quietly(np.median, numbers) if numbers.size else np.nan
        assert same(exact.nanmedian(row, weights=of_row), np.asarray(median))
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
        (lambda: exact.median([1.0, 2], weights=[1e308, 1e308]), nsc.OperandError, "a finite sum above 0"),
        (lambda: exact.median([1.0], weights=["a"]), nsc.OperandTypeError, "got <U1"),
        (lambda: exact.median([1.0], weights=np.ma.array([1])), nsc.OperandTypeError, "masked"),
        (lambda: exact.trimmed_mean([1.0, 2], 0.5), nsc.OperandError, "less than 1/2, got 0.5"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()
