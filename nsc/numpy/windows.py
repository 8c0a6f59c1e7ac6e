"""Windows written out: what NumPy filters where there is no compiler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from nsc.contract.windows import Mode
from nsc.numpy.arrays import Array

# Modes to those of numpy.pad.
_PADS: dict[Mode, Any] = {
    Mode.REFLECT: "symmetric",
    Mode.NEAREST: "edge",
    Mode.MIRROR: "reflect",
    Mode.WRAP: "wrap",
    Mode.CONSTANT: "constant",
}
# Values that are written out at a time.
_VALUES = 1 << 22


def filter_by_numpy(
    x: Array, sizes: Sequence[int], before: Sequence[int], rank: int, mode: Mode, outside: Array
) -> Array:
    """Return the value of a rank of the window around each value.

    Args:
        x: an array with at least one value.
        sizes, before: the window along each axis, and how many places before its value it begins.
        rank: 0 the smallest.
        mode, outside: what stands outside of the array, and its value for the mode constant.
    """
    widths = [(first, size - 1 - first) for size, first in zip(sizes, before, strict=True)]
    more = {"constant_values": outside} if mode is Mode.CONSTANT else {}
    padded = np.pad(x, widths, _PADS[mode], **more)
    windows = np.lib.stride_tricks.sliding_window_view(padded, tuple(sizes))
    values, volume = np.empty(x.shape, x.dtype), math.prod(sizes)
    step = max(1, _VALUES // (math.prod(x.shape[1:]) * volume))
    for start in range(0, len(x), step):
        some = windows[start : start + step]
        rows = some.reshape(*some.shape[: x.ndim], volume)
        values[start : start + step] = np.partition(rows, rank, axis=-1)[..., rank]
    return values
