"""The orders that tests expect: of equal values the lower index comes first, and NaN and NaT come last."""

from __future__ import annotations

from typing import Any

import numpy as np

HAS_DESCENDING = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 5)


def stable_order(x: Any, axis: int, descending: bool = False) -> Any:
    """Return the indices of an order along an axis, by NumPy 2.5 if it is there, else by a plain loop."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    if HAS_DESCENDING:
        return np.argsort(x, axis=axis, stable=True, descending=True)
    rows = np.moveaxis(x.view(np.int64) if x.dtype.kind in "mM" else x, axis, -1)
    missing = np.moveaxis(np.isnan(x) if x.dtype.kind in "fmM" else np.zeros(x.shape, bool), axis, -1)
    # Python's reversed sort is stable too.
    found = [
        sorted(range(len(row)), key=lambda place: (not are_missing[place], row[place]), reverse=True)
        for row, are_missing in zip(_samples(rows), _samples(missing), strict=True)
    ]
    return np.moveaxis(np.array(found, np.int64).reshape(rows.shape), -1, axis)


def _samples(rows: Any) -> Any:
    return rows.reshape(-1, rows.shape[-1]).tolist()
