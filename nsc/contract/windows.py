"""Filters: what the compiler tells the runtime of one, and what stands outside of an image."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Mode(IntEnum):
    """What stands outside of an image, by scipy.ndimage's names: of a row a b c d,

    reflect d c b a | a b c d | d c b a, mirror d c b | a b c d | c b a, nearest a a a | a b c d | d d d,
    wrap a b c d | a b c d | a b c d, constant one value everywhere.
    """

    REFLECT = 0
    NEAREST = 1
    MIRROR = 2
    CONSTANT = 3
    WRAP = 4


MODES = {mode.name.lower(): mode for mode in Mode}


@dataclass(frozen=True)
class FilterSource:
    """The C++ source of a filter.

    Attributes:
        name: of the kernel, an identifier.
        version: of nsc.
        shape: planes, rows and columns of the window.
        rank: which of its values is selected, 0 the smallest.
        facts: what the kernel states of itself, JSON.
        text: its source. A first line that defines NSC_ELEMENT chooses the type, another the channels.
    """

    name: str
    version: str
    shape: tuple[int, int, int]
    rank: int
    facts: str
    text: str


def for_channels(text: str, channels: int) -> str:
    """Return the source of a filter for pixels of so many channels, values that lie side by side."""
    return text if channels == 1 else f"#define NSC_CHANNELS {channels}\n{text}"


def window_name(shape: tuple[int, int, int], rank: int) -> str:
    """Return the name of a window in compiled and exported programs, such as 1x3x3:4."""
    return f"{'x'.join(map(str, shape))}:{rank}"
