"""The edge of every function: arguments are checked here, and small arrays and Dask arrays are passed on.

The decorator `public` gives small arrays to NumPy's own functions, since the way to a kernel takes longer
than the work. It gives Dask arrays to a rule of nsc.numpy.chunks.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nsc.arguments import flag, integer, whole, wholes
from nsc.contract.exact import ELEMENTS
from nsc.errors import OperandError, OperandTypeError
from nsc.join import choosing
from nsc.runtime.devices.threads import cores

Array = NDArray[Any]
# An axis, several, or None for all.
Axes = int | tuple[int, ...] | None
Function = TypeVar("Function", bound=Callable[..., Any])

# Maps dtypes of arrays to keys of ELEMENTS. Dtypes in the other byte order are missing.
NAMES = {np.dtype(name): name for name in ELEMENTS if hasattr(np, name)}
# The kinds of dtypes of times, and the functions that take times.
TIMES = "mM"
_OF_TIMES = ("sort", "argsort", "topk", "top_k", "select", "partition", "argpartition", "median")
# Most values of a small array. With more, NumPy's work takes longer than the general way's checks.
_SMALL = 1 << 13
# A call on fewer values uses one thread.
_LEAST_VALUES = 1 << 14
# The number of threads that was set; None: nothing yet.
_threads: int | None = None


class Sorted(NamedTuple):
    """Sorted values along an axis, and the index that each value had before.

    >>> import nsc
    >>> nsc.numpy.sort([3, 1, 2], return_indices=True).indices
    array([1, 2, 0])
    """

    values: Array
    indices: Array


def public(
    by_blocks: Callable[..., Any], small: Callable[..., Any] | None = None
) -> Callable[[Function], Function]:
    """Return a decorator for a function that takes an array.

    Args:
        by_blocks: takes the function, the arguments and the options of a call with a Dask array.
        small: takes a small array and the other arguments. It returns the same results, or raises any
            exception: then the function itself is called, and says if something is wrong.
    """

    def decorate(function: Function) -> Function:
        @wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            array = args[0] if args else options.get("array")
            if small is not None and args:
                x = _as_small(array) if type(array) is list else array
                if type(x) is np.ndarray and 0 < x.size <= _SMALL and x.dtype in NAMES:
                    try:
                        if not choosing.is_prepared():
                            return small(x, *args[1:], **options)
                    except Exception:  # the function itself is called, and says if something is wrong
                        pass
            return by_blocks(call, args, options) if is_chunked(array) else function(*args, **options)

        return cast(Function, call)

    return decorate


def _as_small(array: list[Any]) -> Array | None:
    """Return a list of few numbers as an array; None for other lists."""
    return np.array(array) if len(array) <= _SMALL and {*map(type, array)} <= {int, float} else None


def is_chunked(array: object) -> bool:
    """Return whether an object is a Dask array."""
    dask = sys.modules.get("dask.array")
    return dask is not None and isinstance(array, getattr(dask, "Array", ()))


def read(function: str, array: ArrayLike) -> Array:
    """Return a caller's argument as an array of NumPy's own class, in this machine's byte order.

    Raises:
        OperandTypeError: a type that ELEMENTS lacks, times in a function of numbers; a class whose meaning
            the result would lose.
        OperandError: lists of different lengths.
    """
    x = plain(function, array)
    if not x.dtype.isnative:
        x = x.astype(x.dtype.newbyteorder("="))
    if x.dtype not in NAMES and not (x.dtype.kind in TIMES and function in _OF_TIMES):
        hint = ""
        if x.dtype == object:  # such as the values of a frame with missing integers
            hint = ": make numbers of it, as x.astype(float) or frame.to_numpy(float, na_value=np.nan)"
        raise OperandTypeError(
            f"nsc.numpy.{function}: the array must be of {', '.join(NAMES.values())}, got {x.dtype}{hint}"
        )
    return x


def plain(function: str, array: ArrayLike, name: str = "the array") -> Array:
    """Return an array of any type; refuse classes that mean more than their values, in lists too.

    Args:
        function: the function that was called, for messages.
        array: the caller's argument.
        name: the argument's name, for messages.

    Raises:
        OperandTypeError: a class whose meaning the result would lose: a mask, a unit, a matrix's product.
        OperandError: lists of different lengths.
    """
    _check_items(function, array, name, 0)
    try:
        x = np.asanyarray(array)
    except ValueError as error:
        raise OperandError(f"nsc.numpy.{function}: {name} is no array of numbers: {error}") from None
    _check_class(function, x, name)
    return np.asarray(x)


def _check_items(function: str, array: object, name: str, depth: int) -> None:
    # Arrays have at most 64 axes.
    if isinstance(array, list | tuple) and depth < 64:
        for item in array:
            if isinstance(item, np.ndarray):
                _check_class(function, item, name)
            elif isinstance(item, list | tuple):
                _check_items(function, item, name, depth + 1)


def _check_class(function: str, x: Array, name: str) -> None:
    if type(x) in (np.ndarray, np.memmap):
        return  # without an import of numpy.ma, which takes longer than most calls
    if isinstance(x, np.ma.MaskedArray):
        raise OperandTypeError(
            f"nsc.numpy.{function}: {name} is masked, and masks are not read: fill it, as "
            f"{'x' if x.dtype.kind == 'f' else 'x.astype(float)'}.filled(np.nan) for nanmedian and its like, "
            "or use numpy.ma"
        )
    raise OperandTypeError(
        f"nsc.numpy.{function}: {name} is a {type(x).__name__}, which the result would not be: pass "
        "np.asarray(x)"
    )


def axis_of(function: str, axis: object, ndim: int) -> int:
    """Return an axis as a number from 0 on.

    Raises:
        OperandTypeError: no whole number.
        numpy.exceptions.AxisError: no such axis.
    """
    number = axis if type(axis) is int else whole(axis)
    if number is None:
        raise OperandTypeError(f"nsc.numpy.{function}: axis must be an integer, got {axis!r}")
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim)
    return number % ndim


def axes_of(function: str, axes: object, ndim: int) -> tuple[int, ...]:
    """Return one axis, several, or all for None, as numbers from 0 on, in the order named.

    Raises:
        OperandTypeError: neither a whole number, nor several, nor None.
        OperandError: no axis, or an axis that is named twice.
        numpy.exceptions.AxisError: no such axis.
    """
    if axes is None:
        return tuple(range(ndim))
    if type(axes) is int or whole(axes) is not None:
        return (axis_of(function, axes, ndim),)
    listed = wholes(axes)
    if listed is None:
        raise OperandTypeError(
            f"nsc.numpy.{function}: axis must be an integer, a tuple of integers or None, got {axes!r}"
        )
    numbers = tuple(axis_of(function, axis, ndim) for axis in listed)
    if not numbers or len(set(numbers)) < len(numbers):
        raise OperandError(f"nsc.numpy.{function}: axis must name one axis or more, each once, got {axes!r}")
    return numbers


def read_along(function: str, array: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """Return an array and the axis to sort along; None flattens it, as in numpy.sort. Errors as in `read`."""
    x = read(function, array)
    return (x.reshape(-1), 0) if axis is None else (x, axis_of(function, axis, x.ndim))


def keeps_axes(keepdims: object) -> bool:
    """Return the value of `keepdims`, which most calls leave out."""
    return keepdims is not False and flag("keepdims", keepdims, OperandTypeError)


def check_out(function: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error unless `out` is None or takes results of a shape and a type.

    Raises:
        OperandTypeError: no array of NumPy's own class, or an array of a type of another kind.
        OperandError: an array of another shape, or a read-only array.
    """
    if out is None:
        return
    if type(out) not in (np.ndarray, np.memmap):
        raise OperandTypeError(f"nsc.numpy.{function}: out must be an array, got {type(out).__name__}")
    assert isinstance(out, np.ndarray)
    if not np.can_cast(dtype, out.dtype, "same_kind"):
        raise OperandTypeError(f"nsc.numpy.{function}: out must be able to hold {dtype}, got {out.dtype}")
    if out.shape != shape or not out.flags.writeable:
        found = out.shape if out.shape != shape else "one that is read-only"
        raise OperandError(f"nsc.numpy.{function}: out must be a writable array of {shape}, got {found}")


def check_mask(function: str, mask: Any, shape: tuple[int, ...]) -> Any:
    """Return a mask, NumPy's or Dask's; raise an error unless it is of bool and of an array's shape."""
    if mask.dtype != bool:
        raise OperandTypeError(
            f"nsc.numpy.{function}: mask must be of bool, True for values that are missing, got {mask.dtype}"
        )
    if mask.shape != shape:
        raise OperandError(
            f"nsc.numpy.{function}: mask must have the array's shape {shape}, got {mask.shape}"
        )
    return mask


def index_dtype_of(function: str, dtype: DTypeLike) -> np.dtype[Any]:
    """Return the dtype of indices that is asked for."""
    try:
        index = None if dtype is None else np.dtype(dtype)
    except TypeError:
        index = None
    if index not in (np.int64, np.int32):
        found = repr(dtype) if index is None else index
        raise OperandTypeError(f"nsc.numpy.{function}: index_dtype must be int64 or int32, got {found}")
    return index


def some_of(x: Array, share: float, axis: int | None = None) -> Array:
    """Return about a share of an array, cut along its longest axis other than `axis`."""
    longest = max((at for at in range(x.ndim) if at != axis), key=x.shape.__getitem__)
    part: Array = np.moveaxis(x, longest, 0)[: max(1, int(share * x.shape[longest]))]
    return np.moveaxis(part, 0, longest)


def set_num_threads(k: int) -> None:
    """Set the most threads that a call of this process uses, unless the call itself gives `workers`.

    A call takes the number when it begins, so other threads may set it at any time.

    Args:
        k: at least 1; or -1, for the cores that this process may use.

    Raises:
        OperandTypeError: k is no integer.
        OperandError: k is neither positive nor -1.

    >>> before = get_num_threads()
    >>> set_num_threads(2)
    >>> get_num_threads()
    2
    >>> set_num_threads(before)
    """
    global _threads
    _threads = _count("set_num_threads", "k", k)


def get_num_threads() -> int:
    """Return the most threads that a call without `workers` uses.

    Until `set_num_threads` is called, the number is OMP_NUM_THREADS, as in torch. Schedulers of many
    processes set this variable to 1. Without it, the number is the count of cores that the process may use.

    >>> get_num_threads() >= 1
    True
    """
    return _threads or _threads_by_environment() or cores()


def thread_count(function: str, workers: int | None, values: int) -> int:
    """Return the most threads that a call on so many values uses.

    Args:
        function: the function that was called, for messages.
        workers: what the call says; -1: the cores; None: the process's number, or 1 for few values.
        values: how many.
    """
    if workers is None:
        return 1 if values < _LEAST_VALUES else get_num_threads()
    return _count(function, "workers", workers)


def _count(function: str, name: str, value: object) -> int:
    count = integer(name, value, OperandTypeError)
    if count == -1:
        return cores()
    if count < 1:
        raise OperandError(f"nsc.numpy.{function}: {name} must be at least 1, or -1, got {count}")
    return count


def _threads_by_environment() -> int | None:
    """Return OMP_NUM_THREADS, or its first level if it is a list; None if it is not set or no number."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else None
