"""Arguments: which objects count as numbers, truth values or names, the same in every room.

A whole number is any object with `__index__`; a real number is any `numbers.Real`. Both include NumPy's
numbers and arrays without axes, and become Python's int or float. A bool is not a number. Truth values are
Python's bool and, without axes, its NumPy and torch equivalents. A name is a str that a table has.
"""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Iterable
from numbers import Real
from pathlib import Path
from typing import TypeGuard

from nsc.errors import NscError
from nsc.wording import argument


def whole(value: object) -> int | None:
    """Return a whole number as an int; None for anything else, such as a float, a str or a bool.

    >>> import numpy as np
    >>> whole(np.int8(3)), whole(3.0), whole(True)
    (3, None, None)
    """
    if type(value) is int:
        return value
    if _is_bool(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def real(value: object) -> float | None:
    """Return a real number as a float, infinite if it is too large for one; None for anything else.

    >>> import numpy as np
    >>> real(np.float32(0.5)), real(10**400), real("1")
    (0.5, inf, None)
    """
    if type(value) is float:
        return value
    is_scalar_array = getattr(value, "shape", None) == () and hasattr(value, "item")
    scalar = value.item() if is_scalar_array else value  # type: ignore[attr-defined]
    if isinstance(scalar, bool) or not isinstance(scalar, Real):
        return None
    try:
        return float(scalar)
    except OverflowError:
        return math.inf if scalar > 0 else -math.inf  # type: ignore[operator]


def path_of(what: str, value: object, error: type[NscError]) -> Path:
    """Return the path that a str or a PathLike names; any other value raises the error.

    >>> path_of("a page", "page.html", NscError).name
    'page.html'
    """
    if not isinstance(value, str | os.PathLike):
        raise error(f"{what} is named by a str or a Path, got {value!r}")
    return Path(value)


def wholes(values: object) -> tuple[int, ...] | None:
    """Return the whole numbers of any iterable as ints; None if an item is not a whole number."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return None
    try:
        given = tuple(values)
    except TypeError:  # an array without axes: it has `__iter__`, which fails
        return None
    numbers = given if {*map(type, given)} == {int} else tuple(map(whole, given))
    return None if None in numbers else numbers  # type: ignore[return-value]


def reals(values: object) -> tuple[float, ...] | None:
    """Return the real numbers of any iterable as floats; None if an item is not a real number."""
    # The items of bytes are numbers, but not meant as such.
    if isinstance(values, str | bytes | bytearray | memoryview) or not isinstance(values, Iterable):
        return None
    try:
        numbers = tuple(map(real, values))
    except TypeError:  # an array without axes
        return None
    return None if None in numbers else numbers  # type: ignore[return-value]


def integer(name: str, value: object, error: type[NscError]) -> int:
    """Return the value of a whole-number argument as an int.

    Raises:
        error: the value is not a whole number.
    """
    number = whole(value)
    if number is None:
        raise error(f"{argument(name)} must be an integer, got {value!r}")
    return number


def flag(name: str, value: object, error: type[NscError]) -> bool:
    """Return the value of a True or False argument as a bool. A text such as "no" is refused.

    Raises:
        error: the value is not a bool.
    """
    if value is True or value is False:
        return value
    if not _is_bool(value) or getattr(value, "shape", None) != ():
        raise error(f"{argument(name)} must be True or False, got {value!r}")
    return bool(value)


def names(value: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name or several as a tuple; anything else in a tuple, which checks of names refuse.

    >>> names("float32"), names(["int8", "int16"])
    (('float32',), ('int8', 'int16'))
    """
    try:
        return (value,) if isinstance(value, str) else tuple(value)
    except TypeError:  # no iterable
        return (value,)  # type: ignore[return-value]


def is_name(value: object, names: Iterable[str]) -> TypeGuard[str]:
    """Return whether a value is one of some names. The value may have any type, even one without a hash.

    >>> is_name("a", {"a": 1}), is_name("b", {"a": 1}), is_name(["a"], {"a": 1})
    (True, False, False)
    """
    return isinstance(value, str) and value in names


def _is_bool(value: object) -> bool:
    """Return whether a value is a bool of Python, NumPy or torch; some of these have `__index__`."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
