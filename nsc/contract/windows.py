"""Filters: windows and their ranks, how a kernel sees an array's axes, and a filter's source for the runtime.

A window has sizes for the last axes of an array, one for each axis. The last sizes may be 1, as in a window
of 3 × 3 × 1 on an image of rows × columns × colours. Then the values along these axes are filtered
separately. They lie side by side, and are called the channels of a pixel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from nsc.arguments import integer, is_name, real, whole, wholes
from nsc.contract.exact import C_TYPES
from nsc.errors import OperandError, WindowError
from nsc.wording import argument

# Most values of a window: 15x15. Its network is planned and proved in two seconds and built in about ten.
MOST_VALUES = 225
# Most channels that are filtered where they lie, by a kernel for their number; more are copied to planes.
MOST_CHANNELS = 32


class Mode(IntEnum):
    """The values outside of an image, by scipy.ndimage's names. A row a b c d continues at both ends as:

    - reflect: d c b a | a b c d | d c b a
    - mirror: d c b | a b c d | c b a
    - nearest: a a a | a b c d | d d d
    - wrap: a b c d | a b c d | a b c d
    - constant: one value everywhere.
    """

    REFLECT = 0
    NEAREST = 1
    MIRROR = 2
    CONSTANT = 3
    WRAP = 4


MODES = {mode.name.lower(): mode for mode in Mode}
# The least whole number that a floating-point type rounds to infinity.
_OVERFLOWS = {
    "float16": 2**16 - 2**4,
    "bfloat16": 2**128 - 2**119,
    "float32": 2**128 - 2**103,
    "float64": 2**1024 - 2**970,
}


@dataclass(frozen=True)
class FilterSource:
    """The C++ source of a filter.

    Attributes:
        name: of the kernel, an identifier.
        shape: planes, rows and columns of the window.
        rank: which value of the window is selected, 0 the smallest.
        text: its source. `for_element` of contract/exact.py chooses the type and the channels.
    """

    name: str
    shape: tuple[int, int, int]
    rank: int
    text: str


def window_name(shape: tuple[int, int, int], rank: int) -> str:
    """Return the name of a window in compiled and exported programs, such as 1x3x3:4."""
    return f"{'x'.join(map(str, shape))}:{rank}"


@dataclass(frozen=True)
class Window:
    """A neighbourhood of pixels and a rank of its values.

    The window of pixel p covers p - size // 2 … p - size // 2 + size - 1 along each axis, as in
    scipy.ndimage.

    Attributes:
        planes, rows, columns: its size along the last three axes of an image; 1 plane for a flat one.
        rank: which value of the window is selected, 0 the smallest.

    Raises:
        WindowError: no window, a window of more than MOST_VALUES values, or a rank that it does not have.
    """

    planes: int
    rows: int
    columns: int
    rank: int

    def __post_init__(self) -> None:
        for name in ("planes", "rows", "columns", "rank"):
            object.__setattr__(self, name, integer(name, getattr(self, name), WindowError))
        if min(self.shape) < 1:
            raise WindowError(f"a window has at least 1 value along each axis, got {self.size_text}")
        if self.values > MOST_VALUES:
            raise WindowError(
                f"a window has at most {MOST_VALUES} values, got {self.size_text} = {self.values:,}: "
                "scipy.ndimage.rank_filter takes larger ones"
            )
        if not 0 <= self.rank < self.values:
            raise WindowError(
                f"{argument('rank')} of a window of {self.size_text} must be in 0 … {self.values - 1}, 0 the "
                f"smallest value, got {self.rank}"
            )

    @classmethod
    def of(cls, size: Any, rank: Any = None) -> Window:
        """Return the window of a size, as users write it.

        Args:
            size: 3 for 3 × 3; two or three numbers, rows and columns or planes, rows and columns; or text
                such as "3x5".
            rank: an integer; negative ranks count from the largest value; None: the median of an odd number
                of values.

        Raises:
            WindowError: as in the class; no such size; or an even number of values without a rank.
        """
        numbers = _numbers(size)
        if numbers is None or not 2 <= len(numbers) <= 3:
            raise WindowError(f"a window's size must be such as 3, (3, 5), (3, 3, 3) or '3x5', got {size!r}")
        planes, rows, columns = (1,) * (3 - len(numbers)) + tuple(numbers)
        lowest = cls(planes, rows, columns, 0)
        if rank is None:
            middle = lowest.values // 2
            if lowest.values % 2 == 0:
                raise WindowError(
                    f"the median of {lowest.size_text} = {lowest.values} values is the mean of ranks "
                    f"{middle - 1} and {middle}, and a filter gives a value of the image: say "
                    f"{argument('rank', middle - 1)} or {argument('rank', middle)}"
                )
            return cls(planes, rows, columns, middle)
        number = whole(rank)
        if number is None:
            raise WindowError(f"{argument('rank')} must be an integer, got {rank!r}")
        wanted = number + lowest.values if -lowest.values <= number < 0 else number
        return cls(planes, rows, columns, wanted)

    @property
    def folded(self) -> Window:
        """The window that a kernel has for this one; see `fold`. Both have their values in the same order."""
        return Window(*fold(self.shape).window, self.rank)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Planes, rows and columns."""
        return self.planes, self.rows, self.columns

    @property
    def values(self) -> int:
        """How many values it has."""
        return self.planes * self.rows * self.columns

    @property
    def is_median(self) -> bool:
        """Whether it selects the median, which only an odd number of values has."""
        return self.values % 2 == 1 and self.rank == self.values // 2

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its sizes along the last axes of images: rows and columns, and planes in front if it has some."""
        return self.shape if self.planes > 1 else self.shape[1:]

    @property
    def size_text(self) -> str:
        """Its size, such as 3x5, or 3x3x3 where it has planes."""
        return "x".join(map(str, self.sizes))

    @property
    def label(self) -> str:
        """The default name of a filter, such as median_3x3 or rank_2_3x5."""
        return f"{'median' if self.is_median else f'rank_{self.rank}'}_{self.size_text}"

    @property
    def words(self) -> str:
        """The selected value in words, such as "the median of 3x3 pixels"."""
        what = "the median" if self.is_median else f"rank {self.rank}"
        return f"{what} of {self.size_text} pixels"


@dataclass(frozen=True)
class Folded:
    """A window as a kernel has it.

    Attributes:
        window: its planes, rows and columns.
        before: how many planes, rows and columns before its pixel it begins.
        behind: how many last axes of the array are channels; if the window has one column, they are the
            columns of the image instead.
    """

    window: tuple[int, int, int]
    before: tuple[int, int, int]
    behind: int

    @property
    def is_column(self) -> bool:
        """Whether the axes behind the window are columns of its image, and not channels."""
        return self.behind > 0 and self.window[2] == 1


def origins_of(sizes: Sequence[int], origin: object) -> tuple[int, ...]:
    """Return how many places before its middle a window stands along each axis, as in scipy.ndimage.

    Args:
        sizes: of the window, 1 or more each.
        origin: one integer for all axes, or an integer for each axis. With origin o the window of pixel i
            covers i - size // 2 - o … i - size // 2 - o + size - 1. The pixel must lie inside: the greatest o
            is (size - 1) // 2, where the window ends at its pixel; the least is -(size // 2), where it
            begins there.

    Raises:
        WindowError: another number of integers, or a pixel outside of its window.
    """
    if type(origin) is int and origin == 0:
        return (0,) * len(sizes)
    one = whole(origin)
    shifts = wholes(origin) if one is None else (one,) * len(sizes)
    if shifts is None or len(shifts) != len(sizes):
        raise WindowError(
            f"origin must be an integer, or one for each of the window's {len(sizes)} sizes, got {origin!r}"
        )
    for size, shift in zip(sizes, shifts, strict=True):
        if not -(size // 2) <= shift <= (size - 1) // 2:
            raise WindowError(
                f"origin of a window of size {size} must be in {-(size // 2)} … {(size - 1) // 2} along its "
                f"axis, got {shift}"
            )
    return shifts


def check_mode(function: str, mode: object) -> None:
    """Raise OperandError unless a function's mode is one of MODES."""
    if not is_name(mode, MODES):
        raise OperandError(f"{function}: mode must be one of {', '.join(MODES)}, got {mode!r}")


def outside_of(function: str, dtype: str, cval: object) -> float:
    """Return the value outside of an image as Python's number, an integer for a type of integers.

    Args:
        function: the function that was called, for messages.
        dtype: a key of ELEMENTS.
        cval: as users write it.

    Raises:
        OperandError: no number that the type has.
    """
    if type(cval) is float and cval == 0:  # as in nearly all calls
        return cval if dtype in _OVERFLOWS else 0
    exact = int(cval) if isinstance(cval, bool) and dtype == "bool" else whole(cval)
    number = real(cval) if exact is None else exact
    if number is not None and dtype in _OVERFLOWS:
        if abs(number) < _OVERFLOWS[dtype] or (exact is None and not math.isfinite(number)):
            return float(number)
    elif number is not None:
        bits, sign = (1, 0) if dtype == "bool" else (C_TYPES[dtype].bits, int(C_TYPES[dtype].is_signed))
        least, most = -sign << bits - 1, (1 << bits - sign) - 1
        if least <= number <= most and number == int(number):
            return int(number)
    raise OperandError(f"{function}: cval must be a number that {dtype} has, got {cval!r}")


def fold(sizes: Sequence[int], origins: Sequence[int] | None = None) -> Folded:
    """Return the window of a kernel for the sizes along an array's last axes.

    Args:
        sizes: along the last axes, 1 or more each.
        origins: of `origins_of`; None: 0 for each.

    Raises:
        WindowError: sizes above 1 on axes that are not among three neighbouring ones.

    >>> fold((3, 5, 1))
    Folded(window=(1, 3, 5), before=(0, 1, 2), behind=1)
    >>> fold((1, 9, 1, 1), (0, 4, 0, 0))
    Folded(window=(1, 9, 1), before=(0, 8, 0), behind=2)
    """
    shifts = [0] * len(sizes) if origins is None else origins
    before = [size // 2 + shift for size, shift in zip(sizes, shifts, strict=True)]
    wide = [axis for axis, size in enumerate(sizes) if size > 1] or [len(sizes) - 1]
    first, last = wide[0], wide[-1] + 1
    if last - first > 3:
        raise WindowError(
            f"the sizes above 1 of a window must lie on at most three neighbouring axes, got {tuple(sizes)}"
        )
    behind = len(sizes) - last
    # A window along one axis, with values behind it, becomes a column: these values are adjacent in memory.
    is_column = behind > 0 and last - first == 1
    leading = 3 - is_column - (last - first)

    def placed(numbers: Sequence[int], other: int) -> tuple[int, int, int]:
        planes, rows, columns = [other] * leading + [*numbers[first:last]] + [other] * is_column
        return planes, rows, columns

    return Folded(placed(sizes, 1), placed(before, 0), behind)


def _numbers(size: Any) -> Sequence[int] | None:
    one = whole(size)
    if one is not None:
        return [one, one]
    if isinstance(size, str):
        # Nine digits are enough for a message about windows that are too large.
        match = re.fullmatch(r"\s*(\d{1,9}(?:\s*[x×,]\s*\d{1,9}){1,2})\s*", size, re.ASCII)
        return [int(word) for word in re.split(r"\s*[x×,]\s*", match[1])] if match else None
    return wholes(size)
