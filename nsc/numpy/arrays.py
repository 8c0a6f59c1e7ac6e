"""Arguments, the same for every function: arrays, axes, results to write to, dtypes of indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nsc.arguments import whole, wholes
from nsc.contract.exact import ELEMENTS
from nsc.errors import OperandError, OperandTypeError

Array = NDArray[Any]
# An axis, several, or None for all.
Axes = int | tuple[int, ...] | None

# Dtypes of arrays to their keys of ELEMENTS.
NAMES = {np.dtype(name): name for name in ELEMENTS if hasattr(np, name)}


def read(function: str, array: ArrayLike) -> Array:
    """Return what a caller passed as an array of NumPy's own class, in this machine's order of bytes.

    Raises:
        OperandTypeError: a type that is not of ELEMENTS, or a class whose meaning the result would lose.
        OperandError: lists of different lengths.
    """
    x = plain(function, array)
    native = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    dtype_name(function, native)  # refuses others
    return native


def plain(function: str, array: ArrayLike, name: str = "the array") -> Array:
    """Return an array of any type; refuse classes that say more than their values, in lists too.

    Args:
        function: the function that was called, for messages.
        array: what the caller passed.
        name: of the argument, for messages.

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
        return  # and numpy.ma is not imported, which takes longer than most calls
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


def dtype_name(function: str, x: Array) -> str:
    """Return the key of ELEMENTS of an array's type."""
    name = NAMES.get(x.dtype)
    if name is None:
        hint = ""
        if x.dtype == object:  # as of a frame with missing integers
            hint = ": make numbers of it, as x.astype(float) or frame.to_numpy(float, na_value=np.nan)"
        raise OperandTypeError(
            f"nsc.numpy.{function}: the array must be of {', '.join(NAMES.values())}, got {x.dtype}{hint}"
        )
    return name


def axis_of(function: str, axis: object, ndim: int) -> int:
    """Return an axis as a number from 0 on.

    Raises:
        OperandTypeError: no whole number.
        numpy.exceptions.AxisError: no such axis.
    """
    number = whole(axis)
    if number is None:
        raise OperandTypeError(f"nsc.numpy.{function}: axis must be an integer, got {axis!r}")
    if not -ndim <= number < ndim:
        raise np.exceptions.AxisError(number, ndim)
    return number % ndim


def axes_of(function: str, axes: object, ndim: int) -> tuple[int, ...]:
    """Return one axis, several, or all for None, as numbers from 0 on, in the order named.

    Raises:
        OperandTypeError: neither a whole number, nor some, nor None.
        OperandError: no axis, or one that is named twice.
        numpy.exceptions.AxisError: no such axis.
    """
    if axes is None:
        return tuple(range(ndim))
    if whole(axes) is not None:
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


def flat_or_along(function: str, x: Array, axis: int | None) -> tuple[Array, int]:
    """Return an array and the axis to sort along; None flattens it, as in numpy.sort."""
    return (x.reshape(-1), 0) if axis is None else (x, axis_of(function, axis, x.ndim))


def check_out(function: str, out: object, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Raise an error unless results of a shape and a type can be written to `out`, or it is None.

    Raises:
        OperandTypeError: no array of NumPy's own class, or one of a type of another kind.
        OperandError: an array of another shape, or one that may not be written to.
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
    """Return about a share of an array, cut along its longest axis but the one that is named."""
    longest = max((at for at in range(x.ndim) if at != axis), key=x.shape.__getitem__)
    part: Array = np.moveaxis(x, longest, 0)[: max(1, int(share * x.shape[longest]))]
    return np.moveaxis(part, 0, longest)
