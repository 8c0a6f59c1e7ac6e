"""Statistics along an axis: the median."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from nsc.compiler.selection import median as middle
from nsc.compiler.selection import ranks
from nsc.errors import OperandError
from nsc.numpy.arrays import Array, split_shape
from nsc.numpy.kernels import run


def median(array: ArrayLike, axis: int = -1, *, workers: int = 1) -> Array:
    """Return the median along an axis, as numpy.median: NaN where there is a NaN, float64 for integers.

    Raises:
        OperandError: no values along the axis; or as in `sort`.

    >>> median([[3, 1, 4], [1, 5, 9]]), median([[3, 1, 4, 1]], axis=1)
    (array([3., 5.]), array([2.]))
    """
    x = np.asarray(array)
    length = split_shape("median", x, axis)[1]
    if length == 0:
        raise OperandError("nsc.numpy.median: an axis of no values has no median")
    if x.dtype.kind != "f":
        wanted = middle() if length % 2 else ranks(length // 2 - 1, length // 2)
        found = np.moveaxis(run("median", x, axis, wanted, workers).values, axis, 0)
        return found.mean(axis=0, dtype=np.float64)  # type: ignore[no-any-return]
    # The last rank is NaN where there is one.
    places = sorted({(length - 1) // 2, length // 2, length - 1})
    found = np.moveaxis(run("median", x, axis, ranks(*places), workers).values, axis, 0)
    values, last = found[0] if length % 2 else found[:2].mean(axis=0), found[-1]
    if np.isnan(last.max(initial=-np.inf)):
        return np.where(np.isnan(last), last, values)[()]  # type: ignore[no-any-return]
    return values if values.flags.forc else values.copy()  # type: ignore[no-any-return]
