"""The relaxed network in 50-digit arithmetic, written from the definition, for the tests of the runtime."""

from __future__ import annotations

import mpmath
import numpy as np

SMALLEST_NORMAL = {"float32": 2.0**-126, "float64": 2.0**-1022}

# f(v) of each sigmoid family; beyond 60 the gaussian is below every normal number.
SIGMOIDS = {
    "logistic": lambda v: 1 / (1 + mpmath.exp(-v)),
    "gaussian": lambda v: mpmath.ncdf(max(-60, min(60, v))),
    "reciprocal": lambda v: 1 / (2 - v) if v < 0 else 1 - 1 / (2 + v),
    "cauchy": lambda v: mpmath.atan2(1, -v) / mpmath.pi,
    "optimal": lambda v: -1 / (16 * v) if v < -0.25 else 1 - 1 / (16 * v) if v > 0.25 else v + 0.5,
    "hard": lambda v: mpmath.mpf(v >= 0),
}


def activation(d, art_lambda):
    """Return φ(d), the activation replacement trick."""
    return d / (abs(d) + mpmath.mpf("1e-10")) ** mpmath.mpf(art_lambda) if art_lambda else d


def weights(sigmoid, art_lambda, steepness, d):
    """Return α and β of a comparator with x[hi] - x[lo] = d, each from its own tail."""
    v = steepness * activation(d, art_lambda)
    return SIGMOIDS[sigmoid](v), SIGMOIDS[sigmoid](-v)


def mix_rows(P, lo, hi, alpha, beta):
    """Mix two rows of a matrix, a list of lists, in place, as one comparator does."""
    a, b = P[lo], P[hi]
    P[lo] = [alpha * p + beta * q for p, q in zip(a, b, strict=True)]
    P[hi] = [beta * p + alpha * q for p, q in zip(a, b, strict=True)]


def unit_matrix(n):
    return [[mpmath.mpf(int(row == column)) for column in range(n)] for row in range(n)]


def permutation(comparators, x, sigmoid, art_lambda, steepness):
    """Return P of a network, given as pairs, for one sample of mpmath numbers."""
    x = list(x)
    P = unit_matrix(len(x))
    for lo, hi in comparators:
        alpha, beta = weights(sigmoid, art_lambda, steepness, x[hi] - x[lo])
        mix_rows(P, lo, hi, alpha, beta)
        x[lo], x[hi] = alpha * x[lo] + beta * x[hi], beta * x[lo] + alpha * x[hi]
    return P


def cut_log(p):
    return max(mpmath.log(p), -80) if p else mpmath.mpf(-80)


def cross_entropy(P, target):
    """Return the loss of one sample."""
    return -sum(cut_log(P[rank][column]) for column, rank in enumerate(target)) / len(P)


def binary_cross_entropy(P, target):
    """Return the loss of one sample; 1 - p is the sum of the column's other entries."""
    n, total = len(P), mpmath.mpf(0)
    for column, rank in enumerate(target):
        for row in range(n):
            others = sum(P[other][column] for other in range(n) if other != row)
            total -= cut_log(P[row][column] if row == rank else others)
    return total / n**2


def ulps(values, exact, dtype):
    """Return distances in units in the last place of the exact values, which are mpmath numbers."""
    number = np.dtype(dtype).type
    return [
        abs(mpmath.mpf(float(f)) - e) / float(np.spacing(number(float(abs(e)))))
        for f, e in zip(values, exact, strict=True)
    ]
