"""Catches a statistic of moving windows that is not one of their numbers, by kernels, peers or NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import nsc
import nsc.numpy as exact
from nsc.numpy import moving

pytestmark = pytest.mark.slow("arrays of many types are compared with NumPy's")


@pytest.fixture(params=["kernels", "peers", "NumPy"])
def peers(request, monkeypatch):
    """Let kernels serve; or bottleneck and pandas, as without this fixture; or NumPy, as without them."""
    if request.param == "kernels":
        request.getfixturevalue("kernels")
    if request.param == "NumPy":
        monkeypatch.setattr(moving, "_bottleneck", lambda: None)
        monkeypatch.setattr(moving, "_pandas", lambda: None)


STATISTICS = {
    "median": (lambda rolling: rolling.median(), np.median),
    "min": (lambda rolling: rolling.min(), np.min),
    "max": (lambda rolling: rolling.max(), np.max),
    "quantile": (lambda rolling: rolling.quantile(0.3), lambda x: np.quantile(x, 0.3)),
}


def by_definition(function, x, window, least, ahead, places=None):
    """Return a statistic of the numbers of the windows at some places, or at all."""
    found = []
    for place in range(len(x)) if places is None else places:
        values = x[max(0, place + ahead - window + 1) : max(0, place + ahead + 1)]
        numbers = values[~np.isnan(values)]
        found.append(function(numbers) if len(numbers) >= least else np.nan)
    return np.array(found)


@settings(max_examples=25)
@given(data=st.data())
@pytest.mark.parametrize(
    ("dtype", "window", "name"),
    [
        *(("float64", 5, name) for name in STATISTICS),
        ("float32", 6, "median"),
        ("uint8", 1, "median"),
        ("uint8", 5, "median"),
    ],
)
@pytest.mark.usefixtures("peers")
def test_windows(dtype, window, name, data):
    length = data.draw(st.sampled_from([0, 1, 3, 5, 70]))
    random = np.random.default_rng(data.draw(st.integers(0, 1000)))
    x = (random.standard_normal((2, length)) * data.draw(st.sampled_from([2, 40]))).astype(dtype)
    if dtype != "uint8":
        x = np.round(x)  # ties
        if data.draw(st.booleans()):
            x[random.random(x.shape) < data.draw(st.sampled_from([0.1, 0.9]))] = np.nan
    least, center = data.draw(st.sampled_from([None, 1, window])), data.draw(st.booleans())
    ours, function = STATISTICS[name]
    lying, axis = (x.T, 0) if data.draw(st.booleans()) else (x, 1)
    found = ours(exact.rolling(lying, window, axis, min_periods=least, center=center))
    assert found.dtype == (np.float64 if dtype == "uint8" else dtype)
    ahead = (window - 1) // 2 if center else 0
    rows = x.astype(found.dtype)
    expected = [by_definition(function, row, window, least or window, ahead) for row in rows]
    found = found.T if axis == 0 else found
    assert np.array_equal(found, np.array(expected).reshape(x.shape).astype(found.dtype), equal_nan=True)


@pytest.mark.parametrize("window", [1, 4])
@pytest.mark.parametrize("least", [None, 1])
@pytest.mark.parametrize("center", [False, True])
def test_ranks_of_last_values(window, least, center):
    random = np.random.default_rng(0)
    x = np.round(random.standard_normal(200) * 2)
    x[random.random(200) < 0.2] = np.nan
    found = exact.rolling(x, window, min_periods=least, center=center).rank()
    ahead = (window - 1) // 2 if center else 0
    for place, rank in enumerate(found):
        values = x[max(0, place + ahead - window + 1) : place + ahead + 1]
        numbers = values[~np.isnan(values)]
        is_there = len(numbers) >= (least or window) and not np.isnan(values[-1])
        expected = stats.rankdata(numbers)[-1] if is_there else np.nan
        assert np.array_equal(rank, expected, equal_nan=True)


@pytest.mark.filterwarnings("ignore:.*NumPy sorts each window")
@pytest.mark.parametrize("missing", [(), ("bottleneck",), ("bottleneck", "pandas")])
@pytest.mark.parametrize("name", STATISTICS)
def test_windows_beyond_the_largest_filter(name, missing, monkeypatch):
    """Bottleneck, pandas and NumPy serve them; there are more values than a kernel sorts, too."""
    for module in missing:
        monkeypatch.setattr(moving, f"_{module}", lambda: None)
    x = np.random.default_rng(0).standard_normal(1100)
    places = [0, 1, 2, 230, 700, 1099]
    ours, function = STATISTICS[name]
    for window in (230, exact.MOST + 6):
        found = ours(exact.rolling(x, window, min_periods=3))
        expected = by_definition(function, x, window, 3, 0, places)
        assert np.array_equal(found[places], expected, equal_nan=True)


@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("window", [4, 9, 10**12])
def test_windows_beyond_the_series(window, center):
    x = np.array([4.0, 1.0, 3.0])
    ahead = (window - 1) // 2 if center else 0
    for least in (None, 1, 3):
        rolling = exact.rolling(x, window, min_periods=least, center=center)
        expected = by_definition(np.median, x, window, least or window, ahead)
        assert np.array_equal(rolling.median(), expected, equal_nan=True)
    assert np.isnan(exact.rolling(x, window, center=center).rank()).all()


def test_a_frame_rolls_down_its_rows():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.arange(25.0).reshape(5, 5))
    expected = frame.rolling(3).median().to_numpy()
    assert np.array_equal(exact.rolling(frame, 3).median(), expected, equal_nan=True)
    assert exact.rolling(frame, 3, axis=1).median()[0, 4] == 3


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: exact.rolling([1.0], 0), nsc.OperandError, "window must be an integer, 1 or more, got 0"),
        (lambda: exact.rolling([1.0], 2, min_periods=3), nsc.OperandError, "integer in 1 … 2, got 3"),
        (lambda: exact.rolling([1.0], 2, center=1), nsc.OperandTypeError, "center must be True or False"),
        (lambda: exact.rolling([1.0], 2).quantile(2), nsc.OperandError, "q must be in 0 … 1, got 2"),
        (lambda: exact.rolling([1.0], 2).quantile([0.5]), nsc.OperandTypeError, "q must be one real number"),
        (lambda: exact.rolling(3.0, 2), np.exceptions.AxisError, "out of bounds"),
    ],
)
def test_wrong_arguments(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_rolling_shows_itself():
    assert repr(exact.rolling([1.0], 3)) == "Rolling(window=3, axis=0, min_periods=3)"


@pytest.mark.usefixtures("peers")
def test_medians_do_not_overflow():
    for dtype in (np.float64, np.float32):
        most = np.finfo(dtype).max
        found = exact.rolling(np.array([most, most, np.inf, -most, most], dtype), 2).median()
        assert found.dtype == dtype
        assert found.tolist()[1:] == [most, np.inf, np.inf, 0]
