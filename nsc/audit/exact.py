"""Checks of built exact kernels: each way to call one gives the values and places of a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.compiler.verify import Run
from nsc.runtime.exact.kernel import ExactKernel, Layout

# Most numbers of a batch that a kernel sorts in every way; it sorts a larger batch in one way.
_MOST_IN_EVERY_WAY = 1 << 20


def run_in_every_way(exact: ExactKernel, dtype: str, descends: bool) -> Run:
    """Return a function that runs an exact kernel, for `check_emitted`; an index is -1 where two ways differ.

    The ways: samples as rows and as columns, with places and without, ascending and descending.

    Args:
        exact: the kernel.
        dtype: a float, a key of ELEMENTS.
        descends: whether the kernel's results are the first places of a descending order. Then samples are
            reversed, because the last of equal values has the highest rank, and the first place.
    """
    n, outputs, kernel = exact.source.n, exact.source.outputs, exact.function(dtype)

    def call(
        x: npt.NDArray[Any], in_rows: bool, index: str | None, descending: bool = descends
    ) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64] | None]:
        count = len(x)
        layout = Layout(1, count, 0, 1, n) if in_rows else Layout(1, count, 0, count, 1)
        x = np.ascontiguousarray(x if in_rows else x.T)
        values = np.empty((count, outputs) if in_rows else (outputs, count), x.dtype)
        places = None if index is None else np.empty(values.shape, index)
        address, size = (None, 0) if places is None else (places.ctypes.data, places.itemsize)
        kernel.call(x.ctypes.data, layout, values.ctypes.data, address, size, descending)
        if in_rows:
            return values, None if places is None else places.astype(np.int64)
        return values.T, None if places is None else places.T.astype(np.int64)

    def run(inputs: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        x = inputs.astype(dtype)[:, :: -1 if descends else 1]
        values, places = call(x, True, "int64")
        assert places is not None
        wanted = n - 1 - places if descends else places
        if len(x) * n > _MOST_IN_EVERY_WAY:
            return values, wanted
        # In the opposite order the negated numbers come out in the same places.
        opposite, indices = call(np.negative(x), True, "int64", not descends)
        others = [call(x, False, "int32"), call(x, True, None), call(x, False, None)]
        others.append((np.negative(opposite), indices))
        same = np.ones(values.shape, bool)
        for other, indices in others:
            same &= other == values
            if indices is not None:
                same &= indices == places
        return values, np.where(same, wanted, -1)

    return run


def on_negatives(run: Run) -> Run:
    """Return a function that runs a kernel of floats on -2 and -1, then on -1 and 1, in the place of 0 and 1.

    The bits of negative numbers are in the opposite order. An index is -1 where the two runs differ.
    """

    def run_twice(inputs: npt.NDArray[np.float64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        values, places = run(inputs - 2)
        assert places is not None
        if inputs.size > _MOST_IN_EVERY_WAY:
            return values + 2, places
        others, indices = run(2 * inputs - 1)
        assert indices is not None
        same = (2 * values + 3 == others) & (places == indices)
        return values + 2, np.where(same, places, -1)

    return run_twice
