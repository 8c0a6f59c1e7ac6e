"""Filters: windows and their ranks, how a kernel sees an array's axes, and a filter's source for the runtime.

A window has sizes for the last axes of an array, one for each axis. The last sizes may be 1, as in a window
of 3 × 3 × 1 on an image of rows × columns × colours. Then the values along these axes are filtered
separately. They lie side by side, and are called the channels of a pixel.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any, Literal

from nsc.arguments import integer, is_name, real, whole, wholes
from nsc.contract.exact import C_TYPES
from nsc.errors import OperandError, WindowError
from nsc.wording import argument

# Most values of a window: 15x15. Its network is planned and proved in two seconds and built in about ten.
MOST_VALUES = 225
# Most values of the box around a window with gaps.
_MOST_IN_BOX = 4096
# Most channels that are filtered where they lie, by a kernel for their number; more are copied to planes.
MOST_CHANNELS = 32


class Mode(IntEnum):
    """The values outside of an image, by scipy.ndimage's names. A row a b c d continues at both ends as:

    - reflect: d c b a | a b c d | d c b a
    - mirror: d c b | a b c d | c b a
    - nearest: a a a | a b c d | d d d
    - wrap: a b c d | a b c d | a b c d
    - constant: one value everywhere.
    - shrink: nothing; windows are cut at the border. For filters that take missing values.
    """

    REFLECT = 0
    NEAREST = 1
    MIRROR = 2
    CONSTANT = 3
    WRAP = 4
    SHRINK = 5


MODES = {mode.name.lower(): mode for mode in Mode}
# The least whole number that a floating-point type rounds to infinity.
_OVERFLOWS = {
    "float16": 2**16 - 2**4,
    "bfloat16": 2**128 - 2**119,
    "float32": 2**128 - 2**103,
    "float64": 2**1024 - 2**970,
}


@dataclass(frozen=True)
class Window:
    """A neighbourhood of pixels and ranks of its values.

    The window of pixel p covers p - size // 2 … p - size // 2 + size - 1 along each axis, as in
    scipy.ndimage, or some places of this box.

    Attributes:
        planes, rows, columns: the size of its box along the last three axes of an image; 1 plane for a flat
            one.
        ranks: which values of the window are selected, 0 the smallest. It has one rank, but where values may
            be missing: then the ranks of windows that lack a few follow it.
        places: the window's places in the box, numbered by planes, then rows, then columns; none if it has
            no gaps.

    Raises:
        WindowError: no window, a window of more than MOST_VALUES values, or a rank that it does not have.
    """

    planes: int
    rows: int
    columns: int
    ranks: tuple[int, ...]
    places: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("planes", "rows", "columns"):
            object.__setattr__(self, name, integer(name, getattr(self, name), WindowError))
        if min(self.shape) < 1:
            raise WindowError(f"a window has at least 1 value along each axis, got {self.size_text}")
        box = math.prod(self.shape)
        if self.places == tuple(range(box)):
            object.__setattr__(self, "places", ())
        if self.values > MOST_VALUES or box > _MOST_IN_BOX:
            raise WindowError(
                f"a window has at most {MOST_VALUES} values, got {self.size_text} = {self.values:,}: "
                "nsc.numpy filters larger ones"
            )
        for rank in self.ranks:
            if not 0 <= rank < self.values:
                raise WindowError(
                    f"{argument('rank')} of a window of {self.size_text} must be in 0 … {self.values - 1}, 0 "
                    f"the smallest value, got {rank}"
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
        return cls(planes, rows, columns, (0,)).with_rank(rank)

    def with_rank(self, rank: Any) -> Window:
        """Return the same window with a rank as in `of`; errors as there."""
        if rank is None:
            middle = self.values // 2
            if self.values % 2 == 0:
                raise WindowError(
                    f"the median of {self.size_text} = {self.values} values is the mean of ranks "
                    f"{middle - 1} and {middle}, and a filter gives a value of the image: say "
                    f"{argument('rank', middle - 1)} or {argument('rank', middle)}"
                )
            return replace(self, ranks=(middle,))
        number = whole(rank)
        if number is None:
            raise WindowError(f"{argument('rank')} must be an integer, got {rank!r}")
        return replace(self, ranks=(number + self.values if -self.values <= number < 0 else number,))

    @property
    def folded(self) -> Window:
        """The window that a kernel has for this one; see `fold`. Both have their values in the same order."""
        planes, rows, columns = fold(self.shape).window
        return replace(self, planes=planes, rows=rows, columns=columns)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Planes, rows and columns of its box."""
        return self.planes, self.rows, self.columns

    @property
    def values(self) -> int:
        """How many values it has."""
        return len(self.places) or math.prod(self.shape)

    @property
    def offsets(self) -> list[tuple[int, int, int]]:
        """The plane, row and column of each of its values in the box, in order."""
        plane = self.rows * self.columns
        return [
            (place // plane, place % plane // self.columns, place % self.columns)
            for place in self.places or range(math.prod(self.shape))
        ]

    @property
    def rank(self) -> int:
        """Its first rank: the only one, but where values may be missing."""
        return self.ranks[0]

    @property
    def ascending(self) -> tuple[int, ...]:
        """Its ranks, the smallest first."""
        return tuple(sorted(self.ranks))

    @property
    def is_median(self) -> bool:
        """Whether it selects the median, which only an odd number of values has."""
        return self.values % 2 == 1 and self.ranks == (self.values // 2,)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Its sizes along the last axes of images: rows and columns, and planes in front if it has some."""
        return self.shape if self.planes > 1 else self.shape[1:]

    @property
    def size_text(self) -> str:
        """Its size, such as 3x5, or 3x3x3 where it has planes, or 13_of_5x5 where it has gaps."""
        box = "x".join(map(str, self.sizes))
        return f"{len(self.places)}_of_{box}" if self.places else box

    @property
    def key(self) -> str:
        """Its name in compiled and exported programs, such as 1x3x3:4; one with gaps ends by their bits."""
        ranks = ",".join(map(str, self.ranks))
        bits = sum(1 << place for place in self.places)
        return f"{'x'.join(map(str, self.shape))}:{ranks}" + (f":{bits:x}" if bits else "")

    @classmethod
    def of_key(cls, key: str) -> Window:
        """Return the window of a `key`."""
        box, ranks, *rest = key.split(":")
        bits = int(rest[0], 16) if rest else 0
        places = tuple(place for place in range(bits.bit_length()) if bits >> place & 1)
        planes, rows, columns = map(int, box.split("x"))
        return cls(planes, rows, columns, tuple(map(int, ranks.split(","))), places)

    @property
    def label(self) -> str:
        """The default name of a filter, such as median_3x3 or rank_2_3x5."""
        which = "median" if self.is_median else f"rank_{'_'.join(map(str, self.ranks))}"
        return f"{which}_{self.size_text}"

    @property
    def words(self) -> str:
        """The selected values in words, such as "the median of 3x3 pixels"."""
        ranks = ", ".join(map(str, self.ranks))
        what = "the median" if self.is_median else f"rank{'s' * (len(self.ranks) > 1)} {ranks}"
        return f"{what} of {self.size_text.replace('_', ' ')} pixels"


@dataclass(frozen=True)
class FilterSource:
    """The C++ source of a filter.

    Attributes:
        name: of the kernel, an identifier.
        window: its window, and the ranks that are selected.
        text: its source. `for_element` of contract/exact.py chooses the type and the channels.
    """

    name: str
    window: Window
    text: str


@dataclass(frozen=True)
class Place:
    """Where a result lies among values in ascending order.

    Attributes:
        low, high: the ranks on both sides.
        share: how far the result lies from the value at `low`, as a part of the distance to the value at
            `high`. None: the result is the value at `low`.
    """

    low: int
    high: int
    share: Any = None


# Takes how many numbers a window has, 1 or more, and returns the place of its result; None: it has none.
PlaceOf = Callable[[int], Place | None]


def place_of_median(count: int) -> Place:
    """Return the place of the median, the mean of the two middle numbers where their count is even."""
    low, high = (count - 1) // 2, count // 2
    return Place(low, high, None if low == high else 0.5)


@dataclass(frozen=True)
class PlaceOfRank:
    """Returns the place of a rank, counted from the largest number if it is negative."""

    rank: int

    def __call__(self, count: int) -> Place | None:
        at = self.rank + count if self.rank < 0 else self.rank
        return Place(at, at) if 0 <= at < count else None


@dataclass(frozen=True)
class PlaceOfPercentile:
    """Returns the place of a percentile in 0 … 100 as scipy.ndimage has it: a rank, rounded down."""

    percentile: float

    def __call__(self, count: int) -> Place:
        at = min(int(count * self.percentile / 100), count - 1)
        return Place(at, at)


def place_of(rank: int | None, values: int, is_mean: bool) -> PlaceOf:
    """Return where a rank of windows of so many values lies, also of windows that lack some.

    A rank below the middle counts from the smallest number, one above it from the largest. The middle is the
    median, and so is None. With `is_mean` the median of an even number of values is the mean of the two
    middle ones, or else the upper one.
    """
    if rank is None or 2 * (rank % values) == values - 1:
        return place_of_median if is_mean else PlaceOfPercentile(50)
    at = rank % values
    return PlaceOfRank(at if 2 * at < values else at - values)


# What NaN in a window means: it is the largest value, it makes the result NaN, it is missing, or it is
# missing and stays.
NanRule = Literal["largest", "propagate", "ignore", "keep"]
NAN_RULES = ("largest", "propagate", "ignore", "keep")


def least_of(function: str, min_count: object, values: int, may_miss: bool) -> int:
    """Return how many numbers a window of so many values must have, 1 for None.

    Raises:
        OperandError: no such number; or one where no value may be missing.
    """
    least = 1 if min_count is None else whole(min_count)
    if least is None or not 1 <= least <= values:
        raise OperandError(f"{function}: min_count must be an integer in 1 … {values}, got {min_count!r}")
    if min_count is not None and not may_miss:
        raise OperandError(
            f"{function}: min_count is for windows that may lack values: add nan='ignore', a mask or "
            "mode='shrink'"
        )
    return least


# Most ranks that a kernel selects of windows that may lack values, and of windows of 49 values and more,
# which lack more.
_MOST_RANKS, _MOST_OF_LARGE = 3, 5
# A rank that no window has.
NO_RANK = 255


@dataclass(frozen=True)
class Tables:
    """Which values results of a kernel are made of, for each number of values that a window may lack.

    Attributes:
        low, high: the ranks whose values are joined, among all values of a window, the missing ones too.
        share: how far the result lies from the one at `low`.
        rest: 1 - share.
        is_least: whether missing values come first, and not last.
        is_mean: whether two values are joined to their mean.
        ranks: the ranks that a kernel selects: those of windows that lack none or few.
    """

    low: tuple[int, ...]
    high: tuple[int, ...]
    share: tuple[float, ...]
    rest: tuple[float, ...]
    is_least: bool
    is_mean: bool
    ranks: tuple[int, ...]

    @classmethod
    def of(cls, place_of: PlaceOf, values: int, least: int) -> Tables:
        """Return the tables of windows of so many values, whose results need `least` numbers or more."""
        whole = place_of(values)
        # Missing values come at the end that is further from the result: a rank then serves more windows.
        is_least = whole is not None and whole.low + whole.high >= values

        def among_all(lacks: int) -> Place:
            found = place_of(values - lacks) if values - lacks >= least else None
            if found is None:
                return Place(NO_RANK, NO_RANK)
            first = lacks if is_least else 0
            return Place(found.low + first, found.high + first, found.share)

        places = [among_all(lacks) for lacks in range(values + 1)]
        ranks: tuple[int, ...] = ()
        most = _MOST_RANKS if values < 49 else _MOST_OF_LARGE
        for place in places:
            wanted = tuple(dict.fromkeys([*ranks, place.low, place.high]))
            if NO_RANK in wanted or len(wanted) > most:
                break
            ranks = wanted
        low, high = (tuple(getattr(place, side) for place in places) for side in ("low", "high"))
        share = tuple(float(place.share or 0) for place in places)
        rest = tuple(1 - each for each in share)
        return cls(low, high, share, rest, is_least, place_of is place_of_median, ranks)

    @cached_property
    def is_extreme(self) -> bool:
        """Whether all results are the least numbers of windows, or all the greatest."""
        end = self.low[0]
        return end in (0, len(self.low) - 2) and {*self.low, *self.high} <= {end, NO_RANK}


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

    With origin o, one for all axes or one for each, the window of pixel i covers i - size // 2 - o …
    i - size // 2 - o + size - 1. The pixel must lie inside.

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
    _check("mode", function, mode, MODES)


def check_nan(function: str, nan: object) -> None:
    """Raise OperandError unless a function's rule for NaN is one of NAN_RULES."""
    _check("nan", function, nan, NAN_RULES)


def _check(name: str, function: str, value: object, known: Iterable[str]) -> None:
    if not is_name(value, known):
        raise OperandError(f"{function}: {name} must be one of {', '.join(known)}, got {value!r}")


def outside_of(function: str, dtype: str, cval: object) -> float:
    """Return cval as a number of a dtype, a key of ELEMENTS: an integer for a type of integers.

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


def fold(sizes: Sequence[int], before: Sequence[int] | None = None) -> Folded:
    """Return the window of a kernel for the sizes along an array's last axes.

    Its windows begin `before` places before a value along each axis; None: size // 2.

    Raises:
        WindowError: sizes above 1 on axes that are not among three neighbouring ones.

    >>> fold((3, 5, 1))
    Folded(window=(1, 3, 5), before=(0, 1, 2), behind=1)
    >>> fold((1, 9, 1, 1), (0, 8, 0, 0))
    Folded(window=(1, 9, 1), before=(0, 8, 0), behind=2)
    """
    before = [size // 2 for size in sizes] if before is None else before
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
