"""Exact sorting and selection of NumPy arrays along short axes, by proved networks; needs no torch.

    import nsc.numpy
    values = nsc.numpy.sort(image, axis=0)
    values, indices = nsc.numpy.topk(scores, 8)

The first call for a length of the axis proves a network, and the first for a type builds its kernel in a
second or two; the build is kept on disk. Types are NumPy's integers, bool, float16, float32 and float64. NaN
is larger than every number. Ties keep their order where indices are asked for. A sort of values alone leaves
-0 before 0.

All functions take `workers`, the number of threads; -1 is one for each core that this process may use.
Results do not depend on it, bit for bit. One thread sorts a small array.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nsc.arguments import flag, integer, is_name, real, whole, wholes
from nsc.compiler.selection import Selection, ranks, top_k
from nsc.compiler.selection import median as middle
from nsc.compiler.windows import Window
from nsc.contract.exact import ELEMENTS, MOST
from nsc.contract.windows import MODES
from nsc.errors import OperandError, OperandTypeError, WindowError
from nsc.join.exact import exact_kernel
from nsc.join.filters import compiled_filter, window_kernel
from nsc.runtime.exact import ExactKernel, layout_of, places_fit
from nsc.runtime.threads import cores, share_out
from nsc.runtime.window import Images

__all__ = [
    "MOST",
    "Sorted",
    "argsort",
    "median",
    "median_filter",
    "rank_filter",
    "select",
    "sort",
    "topk",
]

Array = NDArray[Any]


class Sorted(NamedTuple):
    """Values along an axis, and the place that each had there.

    >>> sort(np.array([3, 1, 2]), return_indices=True).indices
    array([1, 2, 0])
    """

    values: Array
    indices: Array


@overload
def sort(
    array: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
    return_indices: Literal[False] = False,
    index_dtype: DTypeLike = np.int64,
    workers: int = 1,
) -> Array: ...


@overload
def sort(
    array: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
    return_indices: Literal[True],
    index_dtype: DTypeLike = np.int64,
    workers: int = 1,
) -> Sorted: ...


def sort(
    array: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
    return_indices: bool = False,
    index_dtype: DTypeLike = np.int64,
    workers: int = 1,
) -> Array | Sorted:
    """Return a sorted copy of an array, as numpy.sort.

    Args:
        array: of at most MOST values along the axis.
        axis: the axis along which to sort.
        descending: whether the largest value, or NaN, comes first.
        return_indices: whether to return the indices too, as a stable numpy.argsort.
        index_dtype: int64 or int32.
        workers: threads, or -1.

    Raises:
        OperandTypeError: a type that is not of ELEMENTS, or not in this machine's order of bytes; an option
            of another type.
        OperandError: too many values along the axis; workers neither positive nor -1.
        numpy.exceptions.AxisError: no such axis.

    >>> sort([3, 1, 2]), sort([[3, 1], [2, 4]], axis=0, descending=True).tolist()
    (array([1, 2, 3]), [[3, 4], [2, 1]])
    """
    index, descends = _index_dtype("sort", index_dtype), flag("descending", descending, OperandTypeError)
    if flag("return_indices", return_indices, OperandTypeError):
        return _run("sort", array, axis, None, workers, descends, index)
    return _run("sort", array, axis, None, workers, descends).values


def argsort(
    array: ArrayLike,
    axis: int = -1,
    *,
    descending: bool = False,
    index_dtype: DTypeLike = np.int64,
    workers: int = 1,
) -> Array:
    """Return the indices that sort an array, as a stable numpy.argsort. Arguments and errors as in `sort`.

    >>> argsort([3, 1, 2, 1])
    array([1, 3, 2, 0])
    """
    descends = flag("descending", descending, OperandTypeError)
    return _run("argsort", array, axis, None, workers, descends, _index_dtype("argsort", index_dtype)).indices


def topk(
    array: ArrayLike,
    k: int,
    axis: int = -1,
    *,
    index_dtype: DTypeLike = np.int64,
    workers: int = 1,
) -> Sorted:
    """Return the k largest values along an axis, largest first, with their indices.

    They are the last k of a stable `sort`, turned around: of equal values the one that lies last comes first.

    Raises:
        OperandError: k outside 1 … the length of the axis; or as in `sort`.

    >>> topk([3, 1, 4, 1, 5], 2)
    Sorted(values=array([5, 4]), indices=array([4, 2]))
    """
    count = whole(k)
    length = _shape("topk", np.asarray(array), axis)[1]
    if count is None or not 1 <= count <= length:
        raise OperandError(f"nsc.numpy.topk: k must be an integer in 1 … {length}, got {k!r}")
    return _run("topk", array, axis, top_k(count), workers, index=_index_dtype("topk", index_dtype))


def select(array: ArrayLike, wanted: Any, axis: int = -1, *, workers: int = 1) -> Array:
    """Return the values of some ranks along an axis, in their order; rank 0 is the smallest.

    The values are those of numpy.partition at these ranks.

    Args:
        array, axis, workers: as in `sort`.
        wanted: one rank, which leaves out the axis, or a sequence of ranks. Negative ones count from the end.

    Raises:
        OperandError: a rank that the axis does not have, or one that is named twice; or as in `sort`.

    >>> select([[3, 1, 4, 1, 5]], 1), select([3, 1, 4, 1, 5], [0, -1])
    (array([1]), array([1, 5]))
    """
    length = _shape("select", np.asarray(array), axis)[1]
    one = whole(wanted)
    listed = wholes(wanted if one is None else [one]) or ()
    numbers = [rank + length if -length <= rank < 0 else rank for rank in listed]
    if not numbers or any(not 0 <= rank < length for rank in numbers):
        raise OperandError(f"nsc.numpy.select: ranks must be integers in 0 … {length - 1}, got {wanted!r}")
    if len(set(numbers)) < len(numbers):
        raise OperandError(f"nsc.numpy.select: each rank once, got {wanted!r}")
    values = _run("select", array, axis, ranks(*numbers), workers).values
    return values if one is None else np.take(values, 0, axis)


def median(array: ArrayLike, axis: int = -1, *, workers: int = 1) -> Array:
    """Return the median along an axis, as numpy.median: NaN where there is a NaN, float64 for integers.

    Raises:
        OperandError: no values along the axis; or as in `sort`.

    >>> median([[3, 1, 4], [1, 5, 9]]), median([[3, 1, 4, 1]], axis=1)
    (array([3., 5.]), array([2.]))
    """
    x = np.asarray(array)
    length = _shape("median", x, axis)[1]
    if length == 0:
        raise OperandError("nsc.numpy.median: an axis of no values has no median")
    if x.dtype.kind != "f":
        found = np.moveaxis(_run("median", x, axis, middle(), workers).values, axis, 0)
        return found.mean(axis=0, dtype=np.float64)  # type: ignore[no-any-return]
    # The last rank is NaN where there is one.
    places = sorted({(length - 1) // 2, length // 2, length - 1})
    found = np.moveaxis(_run("median", x, axis, ranks(*places), workers).values, axis, 0)
    values, last = found[0] if length % 2 else found[:2].mean(axis=0), found[-1]
    if np.isnan(last.max(initial=-np.inf)):
        return np.where(np.isnan(last), last, values)[()]  # type: ignore[no-any-return]
    return values if values.flags.forc else values.copy()  # type: ignore[no-any-return]


def median_filter(
    array: ArrayLike, size: Any, mode: str = "reflect", cval: float = 0.0, *, workers: int = 1
) -> Array:
    """Return the median of the window around each value, as scipy.ndimage.median_filter.

    Args:
        array: of one to three axes, or more if `size` has two or three numbers, for the last axes. Types are
            those of `sort`.
        size: of the window, a number for each axis, or one for all axes; at most 225 values. It covers
            i - size // 2 … i - size // 2 + size - 1. Of an even number of values the upper median is taken.
        mode: what stands outside: reflect, nearest, mirror, wrap or constant.
        cval: the value outside, for the mode constant.
        workers: threads, or -1.

    Raises:
        WindowError: no such window.
        OperandTypeError: a type that is not served.
        OperandError: no such mode, or a cval that the type does not have; workers neither positive nor -1.

    >>> median_filter([[1, 9, 3], [4, 5, 6], [7, 8, 2]], 3)[1, 1]
    np.int64(5)
    """
    return _filter("median_filter", array, None, size, mode, cval, workers)


def rank_filter(
    array: ArrayLike, rank: int, size: Any, mode: str = "reflect", cval: float = 0.0, *, workers: int = 1
) -> Array:
    """Return the value of a rank of the window around each value, as scipy.ndimage.rank_filter.

    Args:
        rank: 0 the smallest, -1 the largest.
        array, size, mode, cval, workers: and errors, as in `median_filter`.

    >>> rank_filter([5, 1, 4], 0, 3)
    array([1, 1, 1])
    """
    return _filter("rank_filter", array, rank, size, mode, cval, workers)


def _filter(
    function: str,
    array: ArrayLike,
    rank: int | None,
    size: Any,
    mode: str,
    cval: float,
    workers: int,
) -> Array:
    x, threads = np.asarray(array), _threads(function, workers)
    dtype = _dtype_name(function, x)
    if not is_name(mode, MODES):
        raise OperandError(f"nsc.numpy.{function}: mode must be one of {', '.join(MODES)}, got {mode!r}")
    window = _window(function, x, size, rank)
    outside = _outside(function, x.dtype, cval)
    lying = np.ascontiguousarray(x)
    values = np.empty(x.shape, x.dtype)
    if values.size:
        shape = (1,) * (2 - x.ndim) + x.shape
        images = Images.without_gaps(shape, 3 if window.planes > 1 else 2)
        kernel = window_kernel(window)

        def do(part: int, parts: int) -> None:
            addresses = lying.ctypes.data, images, values.ctypes.data
            kernel.call(dtype, *addresses, MODES[mode], outside.ctypes.data, part=part, parts=parts)

        share_out(do, threads, values.nbytes * compiled_filter(window).operations)
    return values


def _window(function: str, x: Array, size: Any, rank: int | None) -> Window:
    one = whole(size)
    listed = wholes(size) if one is None else (one,) * x.ndim
    if one is not None and not 1 <= x.ndim <= 3:
        raise WindowError(
            f"nsc.numpy.{function}: one size is for 1 to 3 axes, the array has {x.ndim}: give a size for "
            "each of the last two or three axes"
        )
    if not listed or len(listed) > min(3, x.ndim):
        raise WindowError(
            f"nsc.numpy.{function}: size must be an integer, or one for each of the last axes, 3 at most, "
            f"of an array of {x.ndim}; got {size!r}"
        )
    sizes = listed if len(listed) > 1 else (1, *listed)
    return _median_window(sizes) if rank is None else Window.of(sizes, rank)


@cache
def _median_window(sizes: tuple[int, ...]) -> Window:
    return Window.of(sizes)


def _outside(function: str, dtype: np.dtype[Any], cval: float) -> Array:
    number = real(cval)
    if number is None and not isinstance(cval, bool):
        raise OperandError(f"nsc.numpy.{function}: cval must be a number, got {cval!r}")
    with np.errstate(all="ignore"):
        exact = whole(cval)
        try:
            outside = np.array(cval if exact is None else exact).astype(dtype)
            has_it = dtype.kind == "f" or bool(outside == cval)
        except OverflowError:
            has_it = False
    if not has_it:
        raise OperandError(f"nsc.numpy.{function}: cval must be a number that {dtype} has, got {cval!r}")
    return outside


def _dtype_name(function: str, x: Array) -> str:
    """Return the key of ELEMENTS of an array's type."""
    name = _NAMES.get(x.dtype)
    if name is None:
        raise OperandTypeError(
            f"nsc.numpy.{function}: the array must be of {', '.join(_NAMES.values())}, in this machine's "
            f"order of bytes; got {x.dtype}"
        )
    return name


def _shape(function: str, x: Array, axis: int) -> tuple[int, int, int]:
    """Return how many values lie in front of the axis, on it, and behind it."""
    place = np.lib.array_utils.normalize_axis_index(axis, x.ndim)
    if x.shape[place] > MOST:
        raise OperandError(
            f"nsc.numpy.{function}: at most {MOST:,} values along the axis, got {x.shape[place]:,}: "
            "use numpy's function"
        )
    return _around(x, place)


def _around(x: Array, place: int) -> tuple[int, int, int]:
    return math.prod(x.shape[:place]), x.shape[place], math.prod(x.shape[place + 1 :])


def _index_dtype(function: str, dtype: DTypeLike) -> np.dtype[Any]:
    """Return a dtype that indices may have."""
    try:
        index = None if dtype is None else np.dtype(dtype)
    except TypeError:
        index = None
    if index not in (np.int64, np.int32):
        found = repr(dtype) if index is None else index
        raise OperandTypeError(f"nsc.numpy.{function}: index_dtype must be int64 or int32, got {found}")
    return index


def _run(
    function: str,
    array: ArrayLike,
    axis: int,
    selection: Selection | None,
    workers: int,
    descending: bool = False,
    index: np.dtype[Any] | None = None,
) -> Sorted:
    """Sort or select along an axis; without a dtype of indices these are empty."""
    x, threads = np.asarray(array), _threads(function, workers)
    _dtype_name(function, x)  # refuses others
    if index is not None and not places_fit(_shape(function, x, axis)[1], x.itemsize):
        found = _run(function, x.astype(np.int16), axis, selection, workers, descending, index)
        return Sorted(found.values.astype(x.dtype), found.indices)
    lying, place, back = _arranged(x, np.lib.array_utils.normalize_axis_index(axis, x.ndim))
    shape = _shape(function, lying, place)
    if shape[1] == 0:
        return Sorted(x.copy(), np.empty(x.shape, index or np.int64))
    kernel = exact_kernel(shape[1], selection)
    results = (*lying.shape[:place], kernel.source.outputs, *lying.shape[place + 1 :])
    values = np.empty(results, x.dtype)
    indices = np.empty(0 if index is None else results, index or np.int64)
    if values.size:
        _call(kernel, lying, shape, values, indices, descending, threads)
    return Sorted(back(values), indices if index is None else back(indices))


def _arranged(x: Array, place: int) -> tuple[Array, int, Callable[[Array], Array]]:
    """Return an array as a kernel can read it, in C order, with the place of its axis, and the way back."""
    if x.flags.f_contiguous and not x.flags.c_contiguous:
        lying, axis, back = _arranged(np.ascontiguousarray(x.T), x.ndim - 1 - place)
        return lying, axis, lambda result: back(result).T
    if layout_of(*_around(x, place)) is None:
        moved = np.ascontiguousarray(np.moveaxis(x, place, -1))
        return moved, x.ndim - 1, lambda result: np.ascontiguousarray(np.moveaxis(result, -1, place))
    return np.ascontiguousarray(x), place, lambda result: result


def _threads(function: str, workers: int) -> int:
    """Return a number of threads that is asked for; -1 stands for the cores that this process may use."""
    count = integer("workers", workers, OperandTypeError)
    if count == -1:
        return cores()
    if count < 1:
        raise OperandError(f"nsc.numpy.{function}: workers must be at least 1, or -1, got {count}")
    return count


_NAMES = {np.dtype(name): name for name in ELEMENTS if hasattr(np, name)}


def _call(
    kernel: ExactKernel,
    x: Array,
    shape: tuple[int, int, int],
    values: Array,
    indices: Array,
    descending: bool,
    threads: int,
) -> None:
    layout = layout_of(*shape)
    assert layout is not None  # _arranged saw to it
    index_bytes = indices.itemsize if indices.size else 0

    def do(part: int, parts: int) -> None:
        addresses = values.ctypes.data, indices.ctypes.data
        kernel.call(
            x.dtype.name, x.ctypes.data, layout, *addresses, index_bytes, descending, part=part, parts=parts
        )

    # A word with a place is of twice the width, and takes twice the operations to make and to read.
    work = x.nbytes * kernel.source.operations / kernel.source.n * (4 if index_bytes else 1)
    share_out(do, threads, work)
