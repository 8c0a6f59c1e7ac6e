"""The orders that tests expect: of equal values the lower index comes first, and NaN and NaT come last."""

from __future__ import annotations

from typing import Any

import numpy as np

NEWEST = tuple(map(int, np.__version__.split(".")[:2])) >= (2, 5)


def stable_order(x: Any, axis: int, descending: bool = False) -> Any:
    """Return the indices of an order along an axis, by NumPy 2.5 if it is there, else by a plain loop."""
    if not descending:
        return np.argsort(x, axis=axis, kind="stable")
    if NEWEST:
        return np.argsort(x, axis=axis, stable=True, descending=True)
    rows = np.moveaxis(x, axis, -1)
    found = [_descending(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()]
    return np.moveaxis(np.array(found, np.int64).reshape(rows.shape), -1, axis)


def _descending(row: list[Any]) -> list[int]:
    """Sort by Python, whose reversed sort is stable too; a list has None for NaT."""
    missing = [value is None or value != value for value in row]
    numbers = [index for index in range(len(row)) if not missing[index]]
    numbers.sort(key=row.__getitem__, reverse=True)
    return numbers + [index for index in range(len(row)) if missing[index]]
