"""Samples: an array seen as outer × n × inner values, and their sort by a kernel or by NumPy.

A sort returns all of its results. A statistic is computed for one block of sorted samples at a time, while
the block is in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from nsc.contract.exact import ASCENDING, MOST, NAN_LAST
from nsc.join.choosing import Kind, serve
from nsc.join.on_demand import exact_kind
from nsc.numpy.by_numpy import Ranks, sort_by_numpy
from nsc.numpy.calls import NAMES, TIMES, Array, Sorted, some_of, thread_count
from nsc.runtime.devices.threads import parts_of, share_out
from nsc.runtime.exact.kernel import ExactFunction, Layout, layout_of, places_fit

Result = TypeVar("Result")

# Bytes of a block's sorted values: they and the results fit a core's second-level cache.
BLOCK_BYTES = 1 << 20
# A block fills whole registers for every type.
_LANES = 64
# The indices of a sort that is not asked for any.
_NO_INDICES = np.empty(0, np.int64)


class Samples(NamedTuple):
    """How an array is seen as samples.

    Attributes:
        order: the array's axes in the order in which they are read; the axes of a sample are neighbours.
        axes: the axes of a sample.
        lengths: the lengths of all axes, in the array's own order.
        shape: outer, n, inner.
    """

    order: tuple[int, ...]
    axes: Sequence[int]
    lengths: tuple[int, ...]
    shape: tuple[int, int, int]

    @classmethod
    def of(cls, x: Array, axes: Sequence[int]) -> Samples:
        """Return the samples of an array along some axes, in an order that needs no copy if there is one.

        If too few samples lie side by side, each is copied to a row.
        """
        # The axes as they lie in memory.
        order, strides = tuple(range(x.ndim)), x.strides
        if x.flags.c_contiguous and len(axes) == 1:
            first, last = axes[0], axes[0] + 1
            lying = x.shape
        else:
            if not x.flags.c_contiguous:
                order = tuple(sorted(order, key=lambda axis: -abs(strides[axis])))
            places = [place for place, axis in enumerate(order) if axis in axes]
            first, last = places[0], places[-1] + 1
            if last - first > len(axes):  # other axes lie between them
                order = (*(axis for axis in order if axis not in axes), *sorted(axes))
                first, last = x.ndim - len(axes), x.ndim
            lying = tuple(x.shape[axis] for axis in order)
        outer, n, inner = math.prod(lying[:first]), math.prod(lying[first:last]), math.prod(lying[last:])
        if layout_of(outer, n, inner) is None:
            order, outer, inner = order[:first] + order[last:] + order[first:last], outer * inner, 1
        return cls(order, axes, x.shape, (outer, n, inner))

    @property
    def kept(self) -> dict[int, int]:
        """The axes that are not of a sample, in the order in which they are read, and their lengths."""
        return {axis: self.lengths[axis] for axis in self.order if axis not in self.axes}

    def lay(self, array: Array) -> Array:
        """Return an array of the same shape as outer × n × inner values in C order."""
        return np.ascontiguousarray(array.transpose(self.order).reshape(self.shape))

    def back(self, results: Array) -> Array:
        """Return results, count × outer × inner, as count × the axes that are kept, in the array's order."""
        kept = self.kept
        places = [*kept]
        found: Array = results.reshape(len(results), *kept.values())
        turned: Array = found.transpose(0, *(1 + places.index(axis) for axis in sorted(places)))
        return turned

    def put(self, results: Array) -> Array:
        """Return results, outer × count × inner, with the count in the place of a sample's one axis."""
        (axis,), order = self.axes, self.order
        turned = results.reshape([results.shape[1] if at == axis else self.lengths[at] for at in order])
        if order != tuple(range(len(order))):
            turned = turned.transpose([order.index(at) for at in range(len(order))])
        return turned if turned.flags.forc else np.ascontiguousarray(turned)

    def forth(self, found: Array) -> Array:
        """Undo `back`: return results as count × outer × inner; a view, if the strides allow it."""
        kept = self.kept
        places = sorted(kept)
        results: Array = found.transpose(0, *(1 + places.index(axis) for axis in kept))
        return results.reshape(len(found), self.shape[0], self.shape[2])


class SortedBlock(NamedTuple):
    """Some samples, sorted.

    Attributes:
        values: a row for each rank that is known, a column for each sample.
        ranks: the rank of each row; None: all, in their order.
        indices: where each value lay; empty if indices were not asked for.
        part: cuts the same samples out of an array that `Samples.lay` returned.
    """

    values: Array
    ranks: Ranks
    indices: Array
    part: tuple[slice, slice, slice]

    def at(self, rank: int) -> Array:
        """Return the values of a rank."""
        row: Array = self.values[rank if self.ranks is None else self.ranks.index(rank)]
        return row

    def of(self, laid: Array) -> Array:
        """Return this block of another array of the same shape, a column for each sample."""
        return _columns(laid[self.part])


class Statistic(NamedTuple):
    """A statistic of sorted samples.

    Attributes:
        of_block: takes a block and returns the results; each result has a number for each sample.
        ranks: the ranks that it reads, ascending; None: all.
        reads_indices: whether it reads the indices of values.
        selects: whether a kernel is built for these ranks alone. All others use a kernel that sorts.
    """

    of_block: Callable[[SortedBlock], Sequence[Array]]
    ranks: Ranks = None
    reads_indices: bool = False
    selects: bool = False


def sort_along(
    function: str,
    x: Array,
    axis: int,
    ranks: Ranks,
    workers: int | None,
    descending: bool = False,
    index_dtype: np.dtype[Any] | None = None,
    kth: Ranks = None,
) -> Sorted:
    """Sort or select along an axis, from 0 on; NaN and NaT come last.

    Args:
        function, workers: as in `thread_count`.
        x: an array of numbers or times.
        axis, ranks, descending, index_dtype: as in `sort_by_numpy`.
        kth: at which ranks NumPy partitions an array, where a kernel sorts it.
    """
    if x.dtype.kind in TIMES:
        # NaT is the least number. It becomes the greatest, all others one less, unless the order descends.
        shift = np.int64(not descending)
        numbers = x.view(np.int64) - shift
        found = sort_along(function, numbers, axis, ranks, workers, descending, index_dtype, kth)
        return Sorted((found.values + shift).view(x.dtype), found.indices)
    threads, n = thread_count(function, workers, x.size), x.shape[axis]
    if x.size == 0 or ranks == ():
        results = (*x.shape[:axis], n if ranks is None else len(ranks), *x.shape[axis + 1 :])
        return Sorted(np.empty(results, x.dtype), np.empty(results, index_dtype))
    if index_dtype is not None and not places_fit(n, x.itemsize):
        wide = x.astype(np.int16)
        found = sort_along(function, wide, axis, ranks, workers, descending, index_dtype, kth)
        return Sorted(found.values.astype(x.dtype), found.indices)

    def sort(kernel: ExactFunction | None) -> Sorted:
        if kernel is None:
            return sort_by_numpy(x, axis, ranks, descending, index_dtype, kth)
        samples = Samples.of(x, (axis,))
        order = NAN_LAST if descending else ASCENDING
        values, indices = _sort_by_kernel(kernel, samples.lay(x), order, index_dtype, threads)
        return Sorted(samples.put(values), indices if index_dtype is None else samples.put(indices))

    return _served(x, axis, ranks, ranks, descending, index_dtype, sort, kth)


def each_block(
    laid: Array, statistic: Statistic, results: Array, threads: int, kernel: ExactFunction | None = None
) -> None:
    """Sort samples and write a statistic of them to results.

    Args:
        laid: outer × n × inner values, as `Samples.lay` returned them, or a view of overlapping windows.
        statistic: the statistic to compute.
        results: count × outer × inner, a row for each result.
        threads: how many at most.
        kernel: is used in any case; None: a kernel if that pays, or else NumPy.
    """
    index_dtype = np.dtype(np.int32) if statistic.reads_indices else None
    if index_dtype is not None and not places_fit(laid.shape[1], laid.itemsize):
        laid = laid.astype(np.int16)

    def compute(kernel: ExactFunction | None) -> None:
        known = statistic.ranks if kernel is None or statistic.selects else None
        outputs = laid.shape[1] if known is None else len(known)
        index_bytes = 0 if index_dtype is None else index_dtype.itemsize
        # Few large blocks: between blocks a thread needs the interpreter, which one thread holds at a time.
        least = parts_of(threads, _work_of(kernel, laid, index_bytes), 2)
        blocks = _blocks(laid.shape, outputs * (laid.itemsize + index_bytes), least)

        def do(number: int, count: int) -> None:
            part = blocks[number]
            with np.errstate(all="ignore"):
                if kernel is None:
                    found = sort_by_numpy(laid[part].swapaxes(1, 2), 2, known, False, index_dtype)
                    values, indices = (each.reshape(-1, outputs).T for each in found)
                else:
                    values, indices = _sort_by_kernel(kernel, laid[part], ASCENDING, index_dtype, 1)
                    values, indices = _columns(values), _columns(indices) if index_bytes else indices
                rows = statistic.of_block(SortedBlock(values, known, indices, part))
                for row, result in zip(results, rows, strict=True):
                    target = row[part[0], part[2]]
                    target[...] = result.reshape(target.shape)

        share_out(do, threads, len(blocks))

    if kernel is not None:
        compute(kernel)
    else:
        ranks = statistic.ranks if statistic.selects else None
        _served(laid, 1, statistic.ranks, ranks, False, index_dtype, compute)


def _served(
    x: Array,
    axis: int,
    ranks: Ranks,
    kernels: Ranks,
    descending: bool,
    index_dtype: np.dtype[Any] | None,
    call: Callable[[ExactFunction | None], Result],
    kth: Ranks = None,
) -> Result:
    """Return the result of a call, by a kernel if that pays, or else by NumPy.

    Args:
        x, axis, ranks, descending, index_dtype, kth: as in `sort_by_numpy`.
        kernels: the ranks that are the kernel's results; None: all.
        call: does the work by a kernel, or by NumPy if it is given None.
    """
    n = x.shape[axis]

    def find() -> Kind[ExactFunction] | None:
        peer = "NumPy" if kth is None else "numpy.partition"
        return None if n > MOST else exact_kind(n, kernels, NAMES[x.dtype], index_dtype is not None, peer)

    def probe(share: float) -> int:
        some = some_of(x, share, axis)
        sort_by_numpy(some, axis, ranks, descending, index_dtype, kth)
        return int(some.size // n)

    return serve(find, x.size // n, x.size, call, probe)


def _sort_by_kernel(
    kernel: ExactFunction, x: Array, order: int, index_dtype: np.dtype[Any] | None, threads: int
) -> tuple[Array, Array]:
    """Return values, and indices if their dtype is given, as outer × results × inner."""
    outer, n, inner = x.shape
    steps = [stride // x.itemsize for stride in x.strides]
    if not (steps[1] == 1 if inner == 1 else steps[2] == 1 and steps[1] >= inner):
        x = np.ascontiguousarray(x)
        steps = [n * inner, inner, 1]
    layout = Layout(1, outer, 0, 1, steps[0]) if inner == 1 else Layout(outer, inner, steps[0], steps[1], 1)
    values = np.empty((outer, kernel.source.outputs, inner), x.dtype)
    indices, index_bytes, places = _NO_INDICES, 0, None
    if index_dtype is not None:
        indices, index_bytes = np.empty(values.shape, index_dtype), index_dtype.itemsize
        places = indices.ctypes.data

    def do(part: int, parts: int) -> None:
        addresses = values.ctypes.data, places
        kernel.call(x.ctypes.data, layout, *addresses, index_bytes, order, part=part, parts=parts)

    share_out(do, threads, parts_of(threads, _work_of(kernel, x, index_bytes)))
    return values, indices


def _work_of(kernel: ExactFunction | None, x: Array, index_bytes: int) -> float:
    """Return the work of sorting an array, in the unit of LEAST_WORK."""
    if kernel is None:
        return x.nbytes * 100.0  # about NumPy's work
    # A word with an index has twice the width, and takes twice the operations to make and to read.
    return x.nbytes * kernel.source.operations / kernel.source.n * (4 if index_bytes else 1)


def _blocks(shape: tuple[int, ...], sample_bytes: int, least: int) -> list[tuple[slice, slice, slice]]:
    """Return blocks: each holds several slabs of samples, or some of the columns of one slab.

    Args:
        shape: outer, n, inner.
        sample_bytes: of a sorted sample.
        least: the fewest blocks, if samples fill so many registers.
    """
    outer, n, inner = shape
    lanes = 1 if n > MOST else _LANES
    samples = lanes * math.ceil(max(1, min(BLOCK_BYTES // sample_bytes, outer * inner / least)) / lanes)
    slabs, columns = (1, samples) if inner > samples else (max(1, samples // inner), inner)
    return [
        (slice(slab, slab + slabs), slice(None), slice(start, start + columns))
        for slab in range(0, outer, slabs)
        for start in range(0, inner, columns)
    ]


def _columns(laid: Array) -> Array:
    """Return slabs × values × samples as values × all samples."""
    columns: Array = laid[0] if len(laid) == 1 else laid.swapaxes(0, 1)
    return np.ascontiguousarray(columns).reshape(laid.shape[1], -1)
