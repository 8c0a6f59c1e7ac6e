"""Window: the shape of a neighbourhood of pixels, and the rank that a filter selects of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from nsc.arguments import integer, whole, wholes
from nsc.contract.folding import fold
from nsc.errors import WindowError
from nsc.wording import argument

# Most values of a window: 15x15. Its network is planned and proved in two seconds and built in about ten.
MOST_VALUES = 225


@dataclass(frozen=True)
class Window:
    """A neighbourhood of pixels and a rank of its values.

    The window of pixel p covers p - size // 2 … p - size // 2 + size - 1 along each axis, as in
    scipy.ndimage.

    Attributes:
        planes, rows, columns: its size along the last three axes of an image; 1 plane for a flat one.
        rank: which of its values is selected, 0 the smallest.

    Raises:
        WindowError: no window, one of more than MOST_VALUES values, or a rank that it does not have.
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
            rank: an integer, negative ones count from the largest; None: the median of an odd number of
                values.

        Raises:
            WindowError: as in the class, no size, or no rank for an even number of values.
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
        """The window that a kernel has for it; see contract/folding.py. Its values have the same order."""
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
    def size_text(self) -> str:
        """Its size, such as 3x5, or 3x3x3 where it has planes."""
        return "x".join(map(str, self.shape if self.planes > 1 else self.shape[1:]))

    @property
    def label(self) -> str:
        """The default name of a filter, such as median_3x3 or rank_2_3x5."""
        return f"{'median' if self.is_median else f'rank_{self.rank}'}_{self.size_text}"

    @property
    def words(self) -> str:
        """What a filter selects, such as "the median of 3x3 pixels"."""
        what = "the median" if self.is_median else f"rank {self.rank}"
        return f"{what} of {self.size_text} pixels"


def _numbers(size: Any) -> Sequence[int] | None:
    one = whole(size)
    if one is not None:
        return [one, one]
    if isinstance(size, str):
        # Nine digits are enough for a message about windows that are too large.
        match = re.fullmatch(r"\s*(\d{1,9}(?:\s*[x×,]\s*\d{1,9}){1,2})\s*", size, re.ASCII)
        return [int(word) for word in re.split(r"\s*[x×,]\s*", match[1])] if match else None
    return wholes(size)
