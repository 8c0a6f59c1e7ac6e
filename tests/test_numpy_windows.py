"""Catches a filter of nsc.numpy that differs from a plain loop over each window, for some window or rule."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("hypothesis")

from hypothesis import given, settings
from hypothesis import strategies as st

import nsc.numpy as exact
from nsc.contract.windows import MODES, NAN_RULES

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
