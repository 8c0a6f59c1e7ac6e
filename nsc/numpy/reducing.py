"""Statistics that read two ranks of a sample for each result, of all its values or of those that are numbers.

NaN is larger than every number, so the numbers of a sorted sample lie in front. Their count gives a sample
its own ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nsc.arguments import flag
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.arrays import Array, axes_of, check_out, read
from nsc.numpy.kernels import Ranks
from nsc.numpy.methods import Place
from nsc.numpy.samples import Samples, SortedBlock, each_block
from nsc.numpy.threads import thread_count

# Of samples of up to so many values each rank is looked at for NaN; of longer ones, each count of numbers.
_FEW = 64


@dataclass(frozen=True)
class Rule:
    """A statistic of sorted samples.

    Attributes:
        places: from a number of values, at least 1, to where each result lies among them.
        join: from the values at both ranks of a place, and its share, to results.
        selects: whether a kernel is built for these ranks alone. One that sorts serves all other rules.
    """

    places: Callable[[int], Sequence[Place]]
    join: Callable[[Array, Array, Any], Array]
    selects: bool = False


@dataclass(frozen=True)
class Reduction:
    """A statistic that a caller asks for: an array, its samples, and where results go.

    Attributes:
        function: the function that was called, for messages.
        x: the array.
        axes: those of a sample.
        samples: how it is read.
        keepdims: whether these axes stay, with length 1.
        out: where results are written; None: to a new array.
        threads: how many at most.
    """

    function: str
    x: Array
    axes: tuple[int, ...]
    samples: Samples
    keepdims: bool
    out: Array | None
    threads: int

    @classmethod
    def of(
        cls, function: str, array: ArrayLike, axis: object, keepdims: bool, out: Any, workers: int | None
    ) -> Reduction:
        """Read the arguments that all statistics share.

        Raises:
            OperandTypeError, OperandError, AxisError: as `read`, `axes_of` and `thread_count`.
            OperandError: samples of no values.
        """
        x = read(function, array)
        keepdims = flag("keepdims", keepdims, OperandTypeError) and x.ndim > 0
        if x.ndim == 0 and axis is None:
            x = x.reshape(1)
        axes = axes_of(function, axis, x.ndim)
        samples = Samples.of(x, axes)
        if samples.shape[1] == 0:
            raise OperandError(
                f"nsc.numpy.{function}: an axis of no values has no {function.removeprefix('nan')}"
            )
        return cls(function, x, axes, samples, keepdims, out, thread_count(function, workers, x.size))

    def finish(
        self,
        leading: tuple[int, ...],
        dtype: np.dtype[Any],
        statistic: Callable[[SortedBlock], Sequence[Array]],
        ranks: Ranks,
        with_indices: bool = False,
        selects: bool = False,
    ) -> Array:
        """Return the results of a statistic; their axes are the leading ones, then those that are kept.

        Args:
            leading: the lengths of axes in front.
            dtype: of results.
            statistic, ranks, with_indices, selects: as in `each_block`.
        """
        shape = self._shape(leading)
        check_out(self.function, self.out, shape, dtype)
        results = self._room(leading, dtype)
        if results.size:
            laid = self.samples.lay(self.x)
            each_block(self.function, laid, ranks, statistic, results, self.threads, with_indices, selects)
        if self.out is None:
            return self.samples.back(results).reshape(shape)[()]
        if not np.may_share_memory(results, self.out):
            np.copyto(self.out, self.samples.back(results).reshape(shape), casting="same_kind")
        return self.out

    def _room(self, leading: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
        """Return where results are written: in `out`, if it has their type and holds nothing that is read."""
        count = math.prod(leading)
        if self.out is not None and self.out.dtype == dtype and not np.may_share_memory(self.out, self.x):
            kept = sorted(zip(self.samples.kept, self.samples.lengths, strict=True))
            room = self.samples.forth(self.out.reshape(count, *(length for _, length in kept)))
            if np.may_share_memory(room, self.out):  # no copy
                return room
        return np.empty((count, *self.samples.columns), dtype)

    def _shape(self, leading: tuple[int, ...]) -> tuple[int, ...]:
        kept = [
            1 if axis in self.axes else length
            for axis, length in enumerate(self.x.shape)
            if self.keepdims or axis not in self.axes
        ]
        return (*leading, *kept)

    def by_rule(self, leading: tuple[int, ...], dtype: np.dtype[Any], rule: Rule, skips_nan: bool) -> Array:
        """Return the results of a rule.

        A sample with a NaN gives NaN. If NaN is skipped, only a sample without a number does.
        """
        has_nan, n = self.x.dtype.kind == "f", self.samples.shape[1]
        if not has_nan or not skips_nan:
            places = rule.places(n)
            wanted = {rank for place in places for rank in (place.low, place.high)}
            wanted |= {n - 1} if has_nan else set()  # the last rank is NaN if any is
            return self.finish(
                leading,
                dtype,
                lambda block: _of_all(block, n, places, rule, has_nan),
                tuple(sorted(wanted)),
                selects=rule.selects,
            )
        return self.finish(leading, dtype, lambda block: of_numbers(block.values, rule, 1), None)


def _of_all(block: SortedBlock, n: int, places: Sequence[Place], rule: Rule, has_nan: bool) -> list[Array]:
    """Return a rule's results of samples, NaN where there is one."""
    found = [at_place(rule, place, block.at(place.low), block.at(place.high)) for place in places]
    if has_nan:
        last = block.at(n - 1)
        is_nan = np.isnan(last)
        if is_nan.any():
            found = [np.where(is_nan, last, row) for row in found]
    return found


def at_place(rule: Rule, place: Place, low: Array, high: Array) -> Array:
    """Return a rule's result at a place, from the values at its two ranks."""
    return low if place.share is None else rule.join(low, high, place.share)


def of_numbers(values: Array, rule: Rule, least: int) -> list[Array]:
    """Return a rule's results of the numbers of sorted samples.

    Args:
        values: a row for each rank, a column for each sample.
        rule: of at least one place.
        least: how many numbers a sample must have; NaN is the result for fewer.
    """

    def rows_of(count: int) -> list[Any]:
        places = rule.places(max(1, count))
        if count < least:
            return [np.nan] * len(places)
        return [at_place(rule, place, values[place.low], values[place.high]) for place in places]

    found = [np.array(row) for row in rows_of(len(values))]
    for count, where in _with_nan(values):
        for row, other in zip(found, rows_of(count), strict=True):
            np.copyto(row, other, where=where)
    return found


def _with_nan(values: Array) -> Iterator[tuple[int, Array]]:
    """Yield counts of numbers, each with the samples that have so many.

    Samples that have fewer may be among them: these come again later, with their own count.
    """
    n = len(values)
    if n <= _FEW:
        for count in range(n - 1, -1, -1):
            is_nan = np.isnan(values[count])
            if not is_nan.any():
                return
            yield count, is_nan
    elif np.isnan(values[-1]).any():
        counts = n - np.isnan(values).sum(axis=0)
        for count in np.unique(counts[counts < n]):
            yield int(count), counts == count
