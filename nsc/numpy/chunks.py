"""Dask arrays: what a function returns for one is lazy, and made of calls of the function on blocks.

A rule says which blocks: sorts and statistics take blocks with all that lies along their axes, filters and
moving windows take blocks with as much of their neighbours as a window reaches. So results have the bits that
the whole array gives. Only who passes a Dask array has Dask loaded.
"""

# Dask has annotations, but not of the functions used here.
# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import inspect
import math
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import Any, TypeVar, cast

import numpy as np

from nsc.arguments import flag
from nsc.errors import OperandError, OperandTypeError
from nsc.numpy.arrays import Array, axes_of, axis_of, plain, read
from nsc.numpy.small import Small, small_of
from nsc.numpy.weights import check_shape

Function = TypeVar("Function", bound=Callable[..., Any])
# A Dask array; its class is not loaded here.
Chunked = Any
# From a function, a Dask array and the function's other arguments to its result.
Rule = Callable[[Callable[..., Any], Chunked, dict[str, Any]], Any]
# How far windows reach before a value and behind it along each axis; whether they go on at the other end.
Reach = tuple[Sequence[tuple[int, int]], bool]


def is_chunked(array: object) -> bool:
    """Return whether an object is a Dask array."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(array, getattr(dask, "Array", ()))


def by_blocks(rule: Rule, small: Small | None = None) -> Callable[[Function], Function]:
    """Return a decorator that lets a function of an array take a Dask array too, by a rule.

    Args:
        rule: from the function, a Dask array and the other arguments to the result.
        small: NumPy's own function, which takes small arrays.
    """

    def decorate(function: Function) -> Function:
        signature = inspect.signature(function)

        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if small is not None and args:
                array = small_of(args[0])
                if array is not None:
                    try:
                        return small(array, *args[1:], **options)
                    except Exception:  # the general way serves, or says what is wrong
                        pass
            if not is_chunked(args[0] if args else options.get("array")):
                return function(*args, **options)
            given = signature.bind(*args, **options)
            given.apply_defaults()
            x = read_chunked(function.__name__, given.arguments.pop("array"))
            if 0 in x.shape:  # Dask does not cut it
                return _lazy(function(np.empty(x.shape, x.dtype), **given.arguments))
            # The scheduler of Dask runs blocks at the same time.
            threads = {"workers": 1} if given.arguments["workers"] is None else {}
            return rule(call, x, given.arguments | threads)

        return cast(Function, call)

    return decorate


def _lazy(found: Any) -> Any:
    """Return results, an array or a tuple of some, as Dask arrays."""
    import dask.array

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


def along(function: Callable[..., Any], x: Chunked, options: dict[str, Any]) -> Any:
    """The rule of what sorts or selects along one axis: a call for each block of whole samples."""
    name, axis = function.__name__, options["axis"]
    if axis is None:
        _check_is_one_block(name, x)
        x, axis = x.reshape(-1), 0
    options["axis"] = axis = axis_of(name, axis, x.ndim)
    found = function(_stand_in(x, (axis,)), **options)
    parts = found if isinstance(found, tuple) else (found,)
    is_left_out = parts[0].ndim == x.ndim
    each = partial(_with_axis, function, options, axis) if is_left_out else partial(function, **options)
    lengths, x = {axis: 1 if is_left_out else parts[0].shape[axis]}, _in_whole_samples(x, (axis,))
    if not isinstance(found, tuple):
        results = _each_block(each, [(x, range(x.ndim))], lengths, found.dtype)
        return results.squeeze(axis) if is_left_out else results
    # A block of both results is a tuple, of which each array takes its own.
    both = _each_block(each, [(x, range(x.ndim))], lengths, np.dtype(object))
    taken = [
        _each_block(operator.itemgetter(place), [(both, range(x.ndim))], {}, part.dtype)
        for place, part in enumerate(found)
    ]
    return type(found)(*taken)


def over(function: Callable[..., Any], x: Chunked, options: dict[str, Any]) -> Any:
    """The rule of statistics of samples along one axis or several: a call for each block of whole samples."""
    name, weights = function.__name__, options.pop("weights")
    if options.pop("out") is not None:
        raise OperandError(f"nsc.numpy.{name}: a Dask array has no out: write its result by dask.array.store")
    keepdims = flag("keepdims", options.pop("keepdims"), OperandTypeError) and x.ndim > 0
    if options["axis"] is None:
        _check_is_one_block(name, x)
        x = x.reshape(1) if x.ndim == 0 else x
    options["axis"] = axes = axes_of(name, options["axis"], x.ndim)
    each = partial(function, keepdims=True, **options)
    x, stand_in = _in_whole_samples(x, axes), _stand_in(x, axes)
    operands: list[tuple[Chunked, Sequence[int]]] = [(x, range(x.ndim))]
    if weights is None:
        found = each(stand_in)
    else:
        laid, places = _laid_weights(name, weights, x, axes)
        is_of_all = laid.shape == x.shape
        trial = np.ones(stand_in.shape if is_of_all else laid.shape, laid.dtype)
        found = each(stand_in, weights=trial if is_of_all or is_chunked(weights) else weights)
        each, operands = partial(_weighted, each), [*operands, (laid, places)]
    leading = found.shape[: found.ndim - stand_in.ndim]
    results = _each_block(each, operands, dict.fromkeys(axes, 1), found.dtype, leading)
    return results if keepdims else results.squeeze(tuple(len(leading) + axis for axis in axes))


def around(reach: Callable[[int, Mapping[str, Any]], Reach]) -> Rule:
    """Return the rule of windows that reach so far: a call for each block and what it needs beside it.

    Args:
        reach: from a number of axes and the arguments of a call to how far its windows reach.
    """

    def rule(function: Callable[..., Any], x: Chunked, options: dict[str, Any]) -> Any:
        import dask.array

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

    return rule


def _check_is_one_block(function: str, x: Chunked) -> None:
    if x.npartitions > 1:
        raise OperandError(
            f"nsc.numpy.{function}: axis=None takes the whole array into memory, which is in {x.npartitions} "
            "blocks: name axes, or pass x.rechunk(-1)"
        )


def _stand_in(x: Chunked, axes: Sequence[int]) -> Array:
    """Return an array without values that is checked in the place of an array, along the same axes."""
    return np.empty([*(n if axis in axes else 0 for axis, n in enumerate(x.shape)), 0], x.dtype)


def _in_whole_samples(x: Chunked, axes: Sequence[int]) -> Chunked:
    """Return an array in blocks that have all of some axes; where they had, the blocks stay."""
    if all(x.numblocks[axis] == 1 for axis in axes):
        return x
    return x.rechunk({axis: -1 if axis in axes else "auto" for axis in range(x.ndim)})


def _longer(lengths: tuple[int, ...], reach: int) -> tuple[int, ...]:
    """Return lengths of blocks above the reach of a window, which mirrors what lies so far from an end."""
    from dask.array.overlap import ensure_minimum_chunksize

    if len(lengths) == 1 or reach == 0:
        return lengths
    return ensure_minimum_chunksize(reach + 1, lengths) if sum(lengths) > reach else (sum(lengths),)


def _laid_weights(
    function: str, weights: Any, x: Chunked, axes: tuple[int, ...]
) -> tuple[Chunked, tuple[int, ...]]:
    """Return weights as a Dask array in the blocks of an array, and the axes along which they lie."""
    import dask.array

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
    import dask.array

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


def _like(ndim: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Return what tells Dask of results, which it would find out by a call."""
    return {"dtype": dtype, "meta": np.empty((0,) * ndim, dtype)}


def _with_axis(function: Callable[..., Any], options: Mapping[str, Any], axis: int, block: Array) -> Array:
    return np.expand_dims(function(block, **options), axis)


def _weighted(each: Callable[..., Any], block: Array, weights: Array) -> Any:
    return each(block, weights=weights)
