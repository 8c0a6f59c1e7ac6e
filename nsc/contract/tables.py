"""Tables: a network as kernels run it, in numbers; nsc/relaxed/network.h explains them.

The fields of `NetworkTables` are the members of nsc::AnyNetwork, in their order.
"""

from __future__ import annotations

import json
from dataclasses import Field, dataclass, field, fields
from enum import IntEnum
from typing import Any

from nsc import library
from nsc.errors import PackageError
from nsc.strict_json import read_json

# A network of so many wires or more has a library of its own, with a pass that the engine lacks.
FEWEST_LONG_WIRES = int(library.constant("fewest_long_wires", "relaxed/network.h"))
Rows = tuple[tuple[Any, ...], ...]


class PatternCode(IntEnum):
    """The number of a butterfly's pattern."""

    SINGLE = 0
    FUNNEL = 1
    FAN = 2
    CROSS = 3


@dataclass(frozen=True)
class Layout:
    """How an entry of a table lies in memory.

    Attributes:
        type: its type in C++.
        numbers: the types of its numbers, as numpy.dtype reads them, aligned as in C++.
    """

    type: str
    numbers: str


@dataclass(frozen=True)
class NetworkTables:
    """A network's counts and tables."""

    wires: int
    comparators: int
    layers: int
    merge_layers: int
    slots: int
    longest_codelet: int
    codelet_count: int
    butterfly_count: int
    codelets: Rows = field(metadata={"layout": Layout("nsc::Codelet", "5i4")})
    spreads: tuple[int, ...] = field(metadata={"layout": Layout("uint16_t", "u2")})
    shapes: Rows = field(metadata={"layout": Layout("nsc::Shape", "4i4")})
    pairs: Rows = field(metadata={"layout": Layout("nsc::Pair", "2u1")})
    flips: Rows = field(metadata={"layout": Layout("nsc::Flips", "2u8")})
    shape_butterflies: Rows = field(metadata={"layout": Layout("nsc::ShapeButterfly", "u1, 4u1")})

    def to_text(self) -> str:
        """Return the tables as JSON, a table a line."""
        lines = [f"{json.dumps(each.name)}: {json.dumps(getattr(self, each.name))}" for each in fields(self)]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_text(cls, text: str) -> NetworkTables:
        """Return the tables that a text holds, which nsc wrote.

        Raises:
            PackageError: the text holds no tables.
        """
        try:
            found = read_json(text)
            values: dict[str, Any] = {each.name: _as_tuples(found[each.name]) for each in fields(cls)}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PackageError(f"no readable tables ({error}): compile the package again") from None
        return cls(**values)


def layout_of(each: Field[Any]) -> Layout | None:
    """Return the layout of a field's table; None: the field is a count."""
    return each.metadata.get("layout")


def _as_tuples(value: object) -> object:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
