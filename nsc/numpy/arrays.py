"""Arguments, the same for every function: arrays and their axes, dtypes of indices, numbers of threads."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nsc.arguments import integer
from nsc.contract.exact import ELEMENTS, MOST
from nsc.errors import OperandError, OperandTypeError
from nsc.runtime.threads import cores

Array = NDArray[Any]

# Dtypes of arrays to their keys of ELEMENTS.
NAMES = {np.dtype(name): name for name in ELEMENTS if hasattr(np, name)}


def dtype_name(function: str, x: Array) -> str:
    """Return the key of ELEMENTS of an array's type."""
    name = NAMES.get(x.dtype)
    if name is None:
        raise OperandTypeError(
            f"nsc.numpy.{function}: the array must be of {', '.join(NAMES.values())}, in this machine's "
            f"order of bytes; got {x.dtype}"
        )
    return name


def split_shape(function: str, x: Array, axis: int) -> tuple[int, int, int]:
    """Return how many values lie in front of the axis, on it, and behind it."""
    place = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    if x.shape[place] > MOST:
        raise OperandError(
            f"nsc.numpy.{function}: at most {MOST:,} values along the axis, got {x.shape[place]:,}: "
            "use numpy's function"
        )
    return around(x, place)


def around(x: Array, place: int) -> tuple[int, int, int]:
    return math.prod(x.shape[:place]), x.shape[place], math.prod(x.shape[place + 1 :])


def index_dtype_of(function: str, dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype that indices may have."""
    try:
        index = None if dtype is None else np.dtype(dtype)
    except TypeError:
        index = None
    if index not in (np.int64, np.int32):
        found = repr(dtype) if index is None else index
        raise OperandTypeError(f"nsc.numpy.{function}: index_dtype must be int64 or int32, got {found}")
    return index


def thread_count(function: str, workers: int) -> int:
    """Return a number of threads that is asked for; -1 stands for the cores that this process may use."""
    count = integer("workers", workers, OperandTypeError)
    if count == -1:
        return cores()
    if count < 1:
        raise OperandError(f"nsc.numpy.{function}: workers must be at least 1, or -1, got {count}")
    return count
