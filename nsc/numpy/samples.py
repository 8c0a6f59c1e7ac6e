"""Samples along one axis or several, sorted a block at a time, so that what follows finds them in the cache.

A statistic works on blocks: values in their order, one row for each rank, one column for each sample.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nsc.contract.exact import MOST
from nsc.numpy.arrays import Array, some_of
from nsc.numpy.kernels import Ranks, by_numpy, kind_of, work_of
from nsc.runtime.exact.kernel import ExactFunction, Layout, layout_of, places_fit
from nsc.runtime.threads import parts_of, share_out

# Bytes of the sorted values of a block: with what is computed of them they fit a core's second-level cache.
BLOCK_BYTES = 1 << 20
# A block is of whole registers, whatever the type.
_LANES = 64


@dataclass(frozen=True)
class Samples:
    """How an array is seen as samples: outer × n × inner values.

    Attributes:
        order: the array's axes; those of a sample stand together.
        kept: the other axes, in this order.
        lengths: of the axes that are kept.
        shape: outer, n, inner.
    """

    order: tuple[int, ...]
    kept: tuple[int, ...]
    lengths: tuple[int, ...]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, x: Array, axes: Sequence[int]) -> Samples:
        """Return the samples of an array along some axes, in an order in which it need not be copied."""
        # The axes as they lie in memory.
        lying = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
        places = [place for place, axis in enumerate(lying) if axis in axes]
        first, last = places[0], places[-1] + 1
        before, joined, behind = lying[:first], lying[first:last], lying[last:]
        if len(joined) > len(axes):  # others lie between them
            before, joined, behind = [axis for axis in lying if axis not in axes], sorted(axes), []
        outer, n, inner = (math.prod(x.shape[axis] for axis in some) for some in (before, joined, behind))
        kept = (*before, *behind)
        lengths = tuple(x.shape[axis] for axis in kept)
        return cls((*before, *joined, *behind), kept, lengths, (outer, n, inner))

    @property
    def is_in_rows(self) -> bool:
        """Whether each sample is copied to a row, because too few samples lie side by side."""
        return layout_of(*self.shape) is None

    def lay(self, array: Array) -> Array:
        """Return an array of the same shape as outer × n × inner values in C order."""
        laid = array.transpose(self.order).reshape(self.shape)
        if self.is_in_rows:
            laid = laid.transpose(0, 2, 1).reshape(-1, self.shape[1], 1)
        return np.ascontiguousarray(laid)

    @property
    def columns(self) -> tuple[int, int]:
        """The outer and inner lengths of what `lay` returns."""
        outer, _, inner = self.shape
        return (outer * inner, 1) if self.is_in_rows else (outer, inner)

    def back(self, results: Array) -> Array:
        """Return results, count × columns, as count × the axes that are kept, in the array's order."""
        places = (1 + self.kept.index(axis) for axis in sorted(self.kept))
        found: Array = results.reshape(len(results), *self.lengths).transpose(0, *places)
        return found

    def forth(self, found: Array) -> Array:
        """Return what `back` returned as it was; a view, if the strides allow it."""
        places = (1 + sorted(self.kept).index(axis) for axis in self.kept)
        results: Array = found.transpose(0, *places).reshape(len(found), *self.columns)
        return results


class SortedBlock(NamedTuple):
    """Some samples, sorted.

    Attributes:
        values: a row for each rank that is known.
        ranks: the rank of each row; None: all, in their order.
        indices: where each value lay, if that was asked for.
        part: cuts the same samples out of what `Samples.lay` returned.
    """

    values: Array
    ranks: Ranks
    indices: Array | None
    part: tuple[slice, slice, slice]

    def at(self, rank: int) -> Array:
        """Return the values of a rank."""
        row: Array = self.values[rank if self.ranks is None else self.ranks.index(rank)]
        return row

    def of(self, laid: Array) -> Array:
        """Return this block of another array of the same shape, a column for each sample."""
        return _columns(laid[self.part])


def each_block(
    function: str,
    laid: Array,
    ranks: Ranks,
    statistic: Callable[[SortedBlock], Sequence[Array]],
    results: Array,
    threads: int,
    with_indices: bool = False,
    selects: bool = False,
    kernel: ExactFunction | None = None,
) -> None:
    """Sort samples and write a statistic of them to results.

    Args:
        function: the function that was called, for messages.
        laid: outer × n × inner values, as `Samples.lay` returned them, or a view of overlapping windows.
        ranks: those that the statistic reads, ascending; None: all.
        statistic: from a block to its results, a number for each of its samples.
        results: count × outer × inner, a row for each result.
        threads: how many at most.
        with_indices: whether the statistic reads the indices of values.
        selects: whether a kernel is built for these ranks alone; one that sorts serves all others.
        kernel: serves in any case; None: what pays does.
    """
    index_dtype = np.dtype(np.int32) if with_indices else None
    if index_dtype is not None and not places_fit(laid.shape[1], laid.itemsize):
        laid = laid.astype(np.int16)
    outer, n, inner = laid.shape
    of_kernel = ranks if selects else None
    kind = None if kernel else kind_of(function, n, of_kernel, laid, with_indices)

    def probe(share: float) -> int:
        some = some_of(laid, share, 1)
        by_numpy(some, 1, ranks, False, index_dtype)
        return int(some.size // n)

    if kind is not None:
        kernel = kind.chosen(outer * inner, laid.size, probe)
    known = ranks if kernel is None else of_kernel
    outputs = n if known is None else len(known)
    sample_bytes = outputs * (laid.itemsize + (4 if with_indices else 0))
    work = work_of(kernel, laid, 4 if with_indices else 0)
    # Few large blocks: between them a thread needs Python, which only one thread has at a time.
    blocks = _blocks(laid.shape, sample_bytes, parts_of(threads, work, 2))

    def do(number: int, count: int) -> None:
        part = blocks[number]
        with np.errstate(all="ignore"):
            if kernel is None:
                found = by_numpy(laid[part].swapaxes(1, 2), 2, ranks, False, index_dtype)
                values, indices = (each.reshape(-1, outputs).T for each in found)
            else:
                values, indices = map(_columns, _sorted(kernel, laid[part], index_dtype))
            block = SortedBlock(values, known, indices if with_indices else None, part)
            for row, result in zip(results, statistic(block), strict=True):
                target = row[part[0], part[2]]
                target[...] = result.reshape(target.shape)

    with kind.timed(kernel, outer * inner) if kind is not None else nullcontext():
        share_out(do, threads, len(blocks))


def _blocks(shape: tuple[int, ...], sample_bytes: int, least: int) -> list[tuple[slice, slice, slice]]:
    """Return blocks: of several slabs of samples, or of some of the columns of one.

    Args:
        shape: outer, n, inner.
        sample_bytes: of a sorted sample.
        least: how many blocks there are at least, if samples fill so many registers.
    """
    outer, n, inner = shape
    lanes = 1 if n > MOST else _LANES
    samples = lanes * math.ceil(max(1, min(BLOCK_BYTES // sample_bytes, outer * inner / least)) / lanes)
    every = slice(None)
    if inner > samples:
        starts = range(0, inner, samples)
        return [
            (slice(slab, slab + 1), every, slice(start, min(start + samples, inner)))
            for slab in range(outer)
            for start in starts
        ]
    slabs = max(1, samples // max(1, inner))
    return [
        (slice(start, min(start + slabs, outer)), every, slice(0, inner)) for start in range(0, outer, slabs)
    ]


def _sorted(kernel: ExactFunction, x: Array, index_dtype: np.dtype[Any] | None) -> tuple[Array, Array]:
    """Return values, and indices if a dtype of them is given, of a block."""
    slabs, n, samples = x.shape
    is_rows = samples == 1
    steps = [stride // x.itemsize for stride in x.strides]
    if not (steps[1] == 1 if is_rows else steps[2] == 1 and steps[1] >= samples):
        x = np.ascontiguousarray(x)
        steps = [n * samples, samples, 1]
    layout = Layout(1, slabs, 0, 1, steps[0]) if is_rows else Layout(slabs, samples, steps[0], steps[1], 1)
    values = np.empty((slabs, kernel.source.outputs, samples), x.dtype)
    if index_dtype is None:
        kernel.call(x.ctypes.data, layout, values.ctypes.data, None, 0, False)
        return values, values
    indices = np.empty(values.shape, index_dtype)
    kernel.call(x.ctypes.data, layout, values.ctypes.data, indices.ctypes.data, indices.itemsize, False)
    return values, indices


def _columns(laid: Array) -> Array:
    """Return slabs × values × samples as values × all samples."""
    columns: Array = laid[0] if len(laid) == 1 else laid.swapaxes(0, 1)
    return np.ascontiguousarray(columns).reshape(laid.shape[1], -1)
