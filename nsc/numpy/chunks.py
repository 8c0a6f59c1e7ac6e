"""Dask arrays: what a function returns for one is lazy, and made of calls of the function on blocks.

Sorts and statistics take blocks with all that lies along their axes, filters and moving windows take blocks
with as much of their neighbours as a window reaches. At the array's own ends a filter's mode applies, and only
`wrap` needs values from the other end. So results have the bits that the whole array gives.

The same call on an array without values checks the arguments at once, and says the type and the shape of
results. This module is loaded for Dask arrays alone, so nsc.numpy does not load Dask.
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

import dask.array
import numpy as np
from dask.array.overlap import ensure_minimum_chunksize

from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.calls import Array, axes_of, axis_of, is_chunked, keeps_axes, plain, read
from nsc.numpy.weights import check_shape

# Dask does not type its arrays.
Chunked = Any
# From a number of axes and the arguments of a call to how far its windows reach before a value and behind it
# along each axis, and whether they go on at the other end of the array.
Reach = Callable[[int, Mapping[str, Any]], tuple[Sequence[tuple[int, int]], bool]]


def of_chunks(
    function: Callable[..., Any], reach: Reach | None, args: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Return what a function of nsc.numpy returns for a Dask array.

    Args:
        function: it, which takes blocks too.
        reach: of its windows; None: it works on samples.
        args, options: of the call.
    """
    bound = inspect.signature(function).bind(*args, **options)
    bound.apply_defaults()
    given = bound.arguments
    x = read_chunked(function.__name__, given.pop("array"))
    if 0 in x.shape:  # Dask does not cut it
        return _lazy(function(np.empty(x.shape, x.dtype), **given))
    if given["workers"] is None:
        given["workers"] = 1  # the scheduler of Dask runs blocks at the same time
    return _by_samples(function, x, given) if reach is None else _by_windows(function, x, given, reach)


def _lazy(found: Any) -> Any:
    """Return results, an array or a tuple of some, as Dask arrays."""
    if isinstance(found, tuple):
        return type(found)(*map(_lazy, found))
    return dask.array.from_array(np.asarray(found))


def read_chunked(function: str, x: Chunked) -> Chunked:
    """Return a Dask array in this machine's order of bytes.

    Raises:
        OperandTypeError: as `read`; or blocks that are not NumPy's.
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
    return x.astype(read(function, x._meta).dtype)


def _by_samples(function: Callable[..., Any], x: Chunked, options: dict[str, Any]) -> Any:
    """Return what a sort, or a statistic, returns: a call for each block of whole samples."""
    name, is_statistic = function.__name__, "keepdims" in options
    if options.pop("out", None) is not None:
        raise OperandError(f"nsc.numpy.{name}: a Dask array has no out: write its result by dask.array.store")
    weights = options.pop("weights", None)
    # Blocks keep the axes of a sample. Those that results lack are taken out in the end.
    keeps = keeps_axes(options.pop("keepdims", True)) and x.ndim > 0
    if options["axis"] is None:
        if x.npartitions > 1:
            raise OperandError(
                f"nsc.numpy.{name}: axis=None takes the whole array into memory, which is in {x.npartitions} "
                "blocks: name axes, or pass x.rechunk(-1)"
            )
        x = x if is_statistic and x.ndim else x.reshape(-1)
        options["axis"] = None if is_statistic else 0
    if is_statistic:
        options["axis"] = axes = axes_of(name, options["axis"], x.ndim)
        options["keepdims"] = True
    else:
        axes = (axis_of(name, options["axis"], x.ndim),)
        options["axis"] = axes[0]
    if any(x.numblocks[axis] > 1 for axis in axes):
        x = x.rechunk({axis: -1 if axis in axes else "auto" for axis in range(x.ndim)})
    # An array without values, along the same axes, is checked in the place of the array.
    trial = np.empty([*(n if axis in axes else 0 for axis, n in enumerate(x.shape)), 0], x.dtype)
    operands: list[tuple[Chunked, Sequence[int]]] = [(x, range(x.ndim))]
    if weights is None:
        found = function(trial, **options)
    else:
        laid, places = _laid_weights(name, weights, x, axes)
        operands.append((laid, places))
        is_of_all = laid.shape == x.shape
        if is_of_all or is_chunked(weights):
            weights = np.ones(trial.shape if is_of_all else laid.shape, laid.dtype)
        found = function(trial, weights=weights, **options)
    parts = found if isinstance(found, tuple) else (found,)
    is_left_out, leading = parts[0].ndim < trial.ndim, parts[0].shape[: max(0, parts[0].ndim - trial.ndim)]
    lengths = {axis: 1 if is_left_out or is_statistic else parts[0].shape[axis] for axis in axes}
    each = partial(_of_block, function, options, axes[0] if is_left_out else None)
    if isinstance(found, tuple):
        # A block of both results is a tuple, of which each array takes its own.
        both = _each_block(each, operands, lengths, np.dtype(object))
        taken = [
            _each_block(itemgetter(place), [(both, range(x.ndim))], {}, part.dtype)
            for place, part in enumerate(parts)
        ]
        return type(found)(*taken)
    results = _each_block(each, operands, lengths, found.dtype, leading)
    return results if keeps and not is_left_out else results.squeeze(tuple(len(leading) + a for a in axes))


def _of_block(
    function: Callable[..., Any],
    options: Mapping[str, Any],
    left_out: int | None,
    block: Array,
    *weights: Array,
) -> Any:
    """Return the results of a block; an axis that a result lacks is put back with length 1."""
    found = function(block, **options, **dict(zip(["weights"], weights, strict=False)))
    return found if left_out is None else np.expand_dims(found, left_out)


def _laid_weights(
    function: str, weights: Any, x: Chunked, axes: tuple[int, ...]
) -> tuple[Chunked, tuple[int, ...]]:
    """Return weights as a Dask array in the blocks of an array, and the axes along which they lie."""
    read = weights if is_chunked(weights) else plain(function, weights)
    check_shape(function, read.shape, x.shape, axes)
    places = tuple(range(x.ndim)) if read.shape == x.shape else axes
    return dask.array.asarray(read).rechunk(tuple(x.chunks[axis] for axis in places)), places


def _each_block(
    each: Callable[..., Any],
    operands: Sequence[tuple[Chunked, Sequence[int]]],
    lengths: Mapping[int, int],
    dtype: np.dtype[Any],
    leading: Sequence[int] = (),
) -> Chunked:
    """Return the results of a call for each block.

    Args:
        each: what is called.
        operands: Dask arrays in the same blocks, the first with all axes, and the axes of each.
        lengths: of axes that the call changes.
        dtype: of results.
        leading: the lengths of axes that it puts in front.
    """
    places = operands[0][1]
    front = range(len(places), len(places) + len(leading))
    return dask.array.blockwise(
        each,
        (*front, *places),
        *(item for operand in operands for item in operand),
        adjust_chunks=dict(lengths),
        new_axes=dict(zip(front, leading, strict=True)),
        align_arrays=False,
        **_like(len(front) + len(places), dtype),
    )


def _by_windows(function: Callable[..., Any], x: Chunked, options: dict[str, Any], reach: Reach) -> Any:
    """Return what a filter returns: a call for each block and what its windows reach beside it."""
    found = function(np.empty((0,) * x.ndim, x.dtype), **options)
    sides, goes_on = reach(x.ndim, options)
    x = x.rechunk({axis: _longer(x.chunks[axis], max(both)) for axis, both in enumerate(sides)})
    cut = [axis for axis, both in enumerate(sides) if max(both) and x.numblocks[axis] > 1]
    return dask.array.map_overlap(
        partial(function, **options),
        x,
        depth={axis: max(sides[axis]) if goes_on else sides[axis] for axis in cut},
        boundary=dict.fromkeys(cut, "periodic" if goes_on else "none"),
        allow_rechunk=False,
        **_like(x.ndim, found.dtype),
    )


def _longer(lengths: tuple[int, ...], reach: int) -> tuple[int, ...]:
    """Return lengths of blocks above the reach of a window, which mirrors what lies so far from an end."""
    if len(lengths) == 1 or reach == 0:
        return lengths
    return ensure_minimum_chunksize(reach + 1, lengths) if sum(lengths) > reach else (sum(lengths),)


def _like(ndim: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return what tells Dask of results, which it would find out by a call."""
    return {"dtype": dtype, "meta": np.empty((0,) * ndim, dtype)}
