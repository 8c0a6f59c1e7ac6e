"""Arguments: which objects are taken for a whole number or a real one, the same in every room.

NumPy's numbers, its arrays of no axis and everything else with `__index__` or of `numbers.Real` are taken
and become Python's own int and float at once; bool and its likes are no numbers.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from numbers import Real

from nsc.errors import NscError
from nsc.wording import argument


def whole(value: object) -> int | None:
    """Return a whole number as an int, None for what is none: a float, a text, a truth value.

    >>> import numpy as np
    >>> whole(np.int8(3)), whole(3.0), whole(True)
    (3, None, None)
    """
    if type(value) is int:
        return value
    if _is_truth(value):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def real(value: object) -> float | None:
    """Return a real number as a float, infinite where a float cannot hold it; None for what is none.

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


def wholes(values: object) -> tuple[int, ...] | None:
    """Return whole numbers, of a list, an array or any other iterable; None if one is none."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return None
    try:
        numbers = tuple(whole(value) for value in values)
    except TypeError:  # an array of no axis, which says that it is iterable
        return None
    return None if None in numbers else numbers  # type: ignore[return-value]


def shown(number: object) -> str:
    """Return a real number as a message shows it: its value, or the length of an int that no float holds.

    >>> shown(1e39), shown(10**400)
    ('1e+39', 'an int of 1329 bits')
    """
    value = real(number)
    is_long = isinstance(number, int) and value is not None and math.isinf(value)
    return f"an int of {number.bit_length()} bits" if is_long else repr(value)  # type: ignore[attr-defined]


def integer(name: str, value: object, error: type[NscError]) -> int:
    """Return an argument that must be a whole number as an int.

    Raises:
        error: it is none.
    """
    number = whole(value)
    if number is None:
        raise error(f"{argument(name)} must be an integer, got {value!r}")
    return number


def _is_truth(value: object) -> bool:
    """Return whether a value is a bool, Python's, NumPy's or torch's; some of them have `__index__`."""
    return isinstance(value, bool) or str(getattr(value, "dtype", "")).endswith("bool")
