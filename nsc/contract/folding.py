"""Folding: which axes of an array are the planes, rows and columns of a filter, and which are channels.

A window has a size for each of the last axes of an array. Where the last sizes are 1, as in a window of
3 × 3 × 1 on an image of rows × columns × colours, the values along these axes are filtered each for itself.
They lie side by side, so a pixel has several: its channels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsc.arguments import whole, wholes
from nsc.errors import WindowError

# Most channels that are filtered where they lie, by a kernel for their number. More are copied to planes.
MOST_CHANNELS = 32


@dataclass(frozen=True)
class Folded:
    """A window as a kernel has it.

    Attributes:
        window: its planes, rows and columns.
        before: how many of them it begins before its pixel.
        behind: how many of the array's last axes are channels, or of a window of one column, its columns.
    """

    window: tuple[int, int, int]
    before: tuple[int, int, int]
    behind: int

    @property
    def is_column(self) -> bool:
        """Whether what lies behind are columns of its image, and not channels."""
        return self.behind > 0 and self.window[2] == 1


def origins_of(sizes: Sequence[int], origin: object) -> tuple[int, ...]:
    """Return how many places before its middle a window stands along each axis, as in scipy.ndimage.

    Args:
        sizes: of the window, 1 or more each.
        origin: one integer for all axes, or one for each. With o the window of pixel i covers
            i - size // 2 - o … i - size // 2 - o + size - 1. The pixel stays inside: (size - 1) // 2 is the
            most, with which the window ends at its pixel, -(size // 2) the least, with which it begins there.

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


def fold(sizes: Sequence[int], origins: Sequence[int] | None = None) -> Folded:
    """Return the window of a kernel for the sizes along an array's last axes.

    Args:
        sizes: along the last axes, 1 or more each.
        origins: of `origins_of`; None: 0 for each.

    Raises:
        WindowError: sizes above 1 that lie further apart than three neighbouring axes.

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
            f"the sizes above 1 of a window are those of three neighbouring axes at most, got {tuple(sizes)}"
        )
    behind = len(sizes) - last
    # A window along one axis, with values behind it, is a column: these are its neighbours in memory.
    is_column = behind > 0 and last - first == 1
    leading = 3 - is_column - (last - first)

    def placed(numbers: Sequence[int], other: int) -> tuple[int, int, int]:
        planes, rows, columns = [other] * leading + [*numbers[first:last]] + [other] * is_column
        return planes, rows, columns

    return Folded(placed(sizes, 1), placed(before, 0), behind)
