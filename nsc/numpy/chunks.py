"""Dask arrays: the function is applied to each block, lazily. Only a call with a Dask array imports Dask.

A block holds all values that its results need:

- sorts and statistics: all values along their axes;
- filters and moving windows: the values of neighbouring blocks that a window reaches.

At the array's own ends a filter's mode applies; only `wrap` needs values from the other end. So results have
the bits that the whole array gives.

The same call on an array without values checks the arguments at once, and gives the type and the shape of
results.
"""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.calls import Array, axes_of, axis_of, check_mask, is_chunked, keeps_axes, plain, read
from nsc.numpy.weights import check_shape

Function = Callable[..., Any]
# Dask does not type its arrays.
Chunked = Any
# Takes a number of axes and the arguments of a call. Returns how far its windows reach before a value and
# behind it along each axis, and whether they go on at the other end of the array.
Reach = Callable[[int, Mapping[str, Any]], tuple[Sequence[tuple[int, int]], bool]]


def read_chunked(function: str, x: Chunked) -> Chunked:
    """Return a Dask array in this machine's byte order.

    Raises:
        OperandTypeError: as in `read`; or blocks that are not NumPy's.
        OperandError: blocks of unknown lengths.
    """
    if not isinstance(x._meta, np.ndarray):
        raise OperandTypeError(
            f"nsc.numpy.{function}: the blocks of the array must be NumPy's, got {type(x._meta).__name__}"
        )
    if any(math.isnan(length) for lengths in x.chunks for length in lengths):
        raise OperandError(
            f"nsc.numpy.{function}: the array has blocks of unknown lengths: call its compute_chunk_sizes()"
        )
    x = x.astype(read(function, x._meta).dtype)
    return x.rechunk(-1) if 0 in x.shape else x  # Dask does not cut an empty array


def _arguments(
    function: Function, args: Sequence[Any], options: Mapping[str, Any]
) -> tuple[Chunked, dict[str, Any]]:
    """Return the array and the other arguments of a call, by their names."""
    bound = inspect.signature(function).bind(*args, **options)
    bound.apply_defaults()
    given = bound.arguments
    if given["workers"] is None:
        given["workers"] = 1  # the scheduler of Dask runs blocks at the same time
    return read_chunked(function.__name__, given.pop("array")), given


def by_samples(function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
    """Return the result of a sort or a statistic of a Dask array: the function is called on each block.

    Blocks hold whole samples.

    Args:
        function: the function, which takes blocks too.
        args, options: of the call.
    """
    import dask.array

    x, given = _arguments(function, args, options)
    name, is_statistic, weights = function.__name__, "keepdims" in given, given.pop("weights", None)
    if given.pop("out", None) is not None:
        raise OperandError(f"nsc.numpy.{name}: a Dask array has no out: write its result by dask.array.store")
    # Blocks keep the axes of a sample. Axes that results lack are removed at the end.
    keeps = keeps_axes(given.pop("keepdims", True)) and x.ndim > 0
    if given["axis"] is None:
        if x.npartitions > 1:
            raise OperandError(
                f"nsc.numpy.{name}: axis=None takes the whole array into memory, which is in {x.npartitions} "
                "blocks: name axes, or pass x.rechunk(-1)"
            )
        x = x if is_statistic and x.ndim else x.reshape(-1)
    if is_statistic:
        axes = axes_of(name, given["axis"], x.ndim)
        given |= {"axis": axes, "keepdims": True}
    else:
        axes = (0 if given["axis"] is None else axis_of(name, given["axis"], x.ndim),)
        given["axis"] = axes[0]
    if any(x.numblocks[axis] > 1 for axis in axes):
        x = x.rechunk({axis: -1 if axis in axes else "auto" for axis in range(x.ndim)})
    # An array without values, but with the same axes, stands in for the array in these checks.
    trial = np.empty([*(n if axis in axes else 0 for axis, n in enumerate(x.shape)), 0], x.dtype)
    operands = [x, range(x.ndim)]
    if weights is None:
        found = function(trial, **given)
    else:
        laid = dask.array.asarray(weights if is_chunked(weights) else plain(name, weights))
        check_shape(name, laid.shape, x.shape, axes)
        is_of_all = laid.shape == x.shape
        places = range(x.ndim) if is_of_all else axes
        operands += [laid.rechunk(tuple(x.chunks[axis] for axis in places)), places]
        if is_of_all or is_chunked(weights):
            weights = np.ones(trial.shape if is_of_all else laid.shape, laid.dtype)
        found = function(trial, weights=weights, **given)
    parts = found if isinstance(found, tuple) else (found,)
    is_left_out, leading = parts[0].ndim < trial.ndim, parts[0].shape[: max(0, parts[0].ndim - trial.ndim)]
    front = range(x.ndim, x.ndim + len(leading))
    results = dask.array.blockwise(
        partial(_block_results, function, given, axes[0] if is_left_out else None),
        (*front, *range(x.ndim)),
        *operands,
        adjust_chunks={axis: 1 if is_left_out else parts[0].shape[len(leading) + axis] for axis in axes},
        new_axes=dict(zip(front, leading, strict=True)),
        align_arrays=False,
        **_like(len(leading) + x.ndim, np.dtype(object) if len(parts) > 1 else parts[0].dtype),
    )
    if len(parts) > 1:  # a block holds a tuple of both results; each array takes its own
        each = [
            results.map_blocks(itemgetter(place), **_like(x.ndim, part.dtype))
            for place, part in enumerate(parts)
        ]
        return type(found)(*each)
    return results if keeps and not is_left_out else results.squeeze(tuple(len(leading) + a for a in axes))


def _block_results(
    function: Function,
    given: Mapping[str, Any],
    left_out: int | None,
    block: Array,
    *weights: Array,
) -> Any:
    """Return the results of a block; an axis that the results lack is put back with length 1."""
    found = function(block, **given, weights=weights[0]) if weights else function(block, **given)
    return found if left_out is None else np.expand_dims(found, left_out)


def by_windows(reach: Reach) -> Function:
    """Return a `by_samples` for filters: it calls them on blocks with the neighbours that windows reach."""

    def filtered(function: Function, args: Sequence[Any], options: Mapping[str, Any]) -> Any:
        import dask.array

        x, given = _arguments(function, args, options)
        arrays, trials = [x], [np.empty((0,) * x.ndim, x.dtype)]
        if given.get("mask") is not None:
            name, mask = function.__name__, given.pop("mask")
            mask = check_mask(name, mask if is_chunked(mask) else plain(name, mask, "mask"), x.shape)
            arrays, trials = [x, dask.array.asarray(mask)], [*trials, trials[0].astype(bool)]
        dtype = _filtered(function, given, *trials).dtype
        sides, goes_on = reach(x.ndim, given)
        x = x.rechunk({axis: _longer(x.chunks[axis], max(both)) for axis, both in enumerate(sides)})
        cut = [axis for axis, both in enumerate(sides) if max(both) and x.numblocks[axis] > 1]
        depth = {axis: max(sides[axis]) if goes_on else sides[axis] for axis in cut}
        return dask.array.map_overlap(
            partial(_filtered, function, given),
            *(each.rechunk(x.chunks) for each in arrays),
            depth=[depth] * len(arrays),
            boundary=[dict.fromkeys(cut, "periodic" if goes_on else "none")] * len(arrays),
            allow_rechunk=False,
            **_like(x.ndim, dtype),
        )

    return filtered


def _filtered(function: Function, given: Mapping[str, Any], block: Array, *mask: Array) -> Any:
    return function(block, **given, **dict(zip(["mask"], mask, strict=False)))


def _longer(lengths: tuple[int, ...], reach: int) -> tuple[int, ...]:
    """Return lengths of blocks above a window's reach, so that a block holds all values that are mirrored."""
    from dask.array.overlap import ensure_minimum_chunksize

    if len(lengths) == 1 or reach == 0:
        return lengths
    return ensure_minimum_chunksize(reach + 1, lengths) if sum(lengths) > reach else (sum(lengths),)


def _like(ndim: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return the facts about results that Dask would otherwise find out by a call."""
    return {"dtype": dtype, "meta": np.empty((0,) * ndim, dtype)}
