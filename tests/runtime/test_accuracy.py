"""The vectorised sigmoids against 40 digits, tails included."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import torch

import nsc

SMALLEST_NORMAL = {"float32": 2.0**-126, "float64": 2.0**-1022}
ULPS = 4
GAUSSIAN_ULPS = 5  # the worst of 400,000 in the far tail is 4.3

EXACT = {
    "logistic": lambda v: 1 / (1 + mpmath.exp(-v)),
    "gaussian": lambda v: mpmath.ncdf(max(-60, min(60, v))),  # beyond, below every normal number
    "reciprocal": lambda v: 1 / (2 - v) if v < 0 else 1 - 1 / (2 + v),
    "cauchy": lambda v: mpmath.atan2(1, -v) / mpmath.pi,
    "optimal": lambda v: -1 / (16 * v) if v < -0.25 else 1 - 1 / (16 * v) if v > 0.25 else v + 0.5,
}


def points(dtype, count):
    """Differences of every size and both signs, and those where the sigmoids have their tails."""
    least, most = {"float32": (-30, 30), "float64": (-200, 200)}[dtype]
    rng = np.random.default_rng(0)
    sizes = np.concatenate([10 ** rng.uniform(least, most, count), rng.uniform(0, 110, 2 * count)])
    sizes = np.concatenate([sizes, 10 ** rng.uniform(-3, 2, count)])
    if dtype == "float64":
        sizes = np.concatenate([sizes, rng.uniform(0, 800, count)])
    values = np.concatenate([sizes, -sizes, [0.0, 1.0, -1.0, 0.25, -0.25]])
    return torch.from_numpy(values.astype(dtype))


def weights(op, gaps, steepness=1.0):
    """The keep weight of one comparator on (0, d): P[0, 0] of the network on two wires."""
    x = torch.stack([torch.zeros_like(gaps), gaps], -1)
    return op.sort_with_permutation(x, steepness)[1][:, 0, 0]


def ulps(found, exact, dtype):
    """Distances in units in the last place of the exact values, which are mpmath numbers."""
    spacing = [float(np.spacing(np.dtype(dtype).type(float(abs(e))))) for e in exact]
    return [abs(mpmath.mpf(float(f)) - e) / s for f, e, s in zip(found, exact, spacing, strict=True)]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sigmoid", EXACT)
def test_sigmoids(sigmoid, dtype):
    op = nsc.compile("bitonic", 2, relaxation=sigmoid, art_lambda=0, dtypes=(dtype,))
    gaps = points(dtype, 400)
    found = weights(op, gaps)
    with mpmath.workdps(40 if dtype == "float32" else 60):
        exact = [EXACT[sigmoid](mpmath.mpf(float(d))) for d in gaps]
        normal = [i for i, e in enumerate(exact) if e >= SMALLEST_NORMAL[dtype]]
        worst = max(ulps(found[normal], [exact[i] for i in normal], dtype))
    assert worst <= (GAUSSIAN_ULPS if sigmoid == "gaussian" else ULPS)
    tiny = sorted(set(range(len(exact))) - set(normal))
    assert (found[tiny] <= SMALLEST_NORMAL[dtype]).all()
    assert (found[gaps == 0] == 0.5).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("art_lambda", [0.1, 0.25, 0.4, 0.5, 0.9])
def test_the_activation_replacement_trick(art_lambda, dtype):
    """Through the reciprocal family, whose tail has the relative error of its argument."""
    op = nsc.compile("bitonic", 2, relaxation="reciprocal", art_lambda=art_lambda, dtypes=(dtype,))
    gaps = points(dtype, 300)
    found = weights(op, gaps)
    with mpmath.workdps(60):
        sizes = [mpmath.mpf(float(d)) for d in gaps]
        exact = [
            EXACT["reciprocal"](d / (abs(d) + mpmath.mpf("1e-10")) ** mpmath.mpf(art_lambda)) for d in sizes
        ]
        assert max(ulps(found, exact, dtype)) <= ULPS
