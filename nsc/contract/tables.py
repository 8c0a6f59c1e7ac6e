"""Tables: a network as kernels run it, in numbers; see nsc/relaxed/network.h."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import IntEnum
from typing import Any

from nsc.errors import PackageError
from nsc.strict_json import read_json

Rows = tuple[tuple[int, ...], ...]


class PatternCode(IntEnum):
    """The number of a butterfly's pattern."""

    SINGLE = 0
    FUNNEL = 1
    FAN = 2
    CROSS = 3


@dataclass(frozen=True)
class NetworkTables:
    """A network's counts and tables.

    Attributes:
        wires, comparators, levels: of the network.
        merge_levels: of the merge that it ends in; see `nsc.compiler.relaxed.final_merge`.
        slots: places for weights.
        longest_codelet: most slots of a codelet.
        butterflies: how many the codelets have.
        codelets: shape, spread, first wire, first slot and pattern of flips of each.
        spreads: the wires of codelets, from the first wire on.
        shapes: wires, first pair, comparators and first butterfly of each.
        pairs: the places of each comparator of the shapes.
        flips: the two words of each pattern of flipped comparators.
        shape_butterflies: pattern and four places of each.
        narrow_butterflies: pattern, four wires and four slots of each; none where the network is wide.
    """

    wires: int
    comparators: int
    levels: int
    merge_levels: int
    slots: int
    longest_codelet: int
    butterflies: int
    codelets: Rows
    spreads: tuple[int, ...]
    shapes: Rows
    pairs: Rows
    flips: Rows
    shape_butterflies: Rows
    narrow_butterflies: Rows

    def to_text(self) -> str:
        """Return the tables as JSON, a table a line."""
        lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in asdict(self).items()]
        return "{\n" + ",\n".join(lines) + "\n}\n"

    @classmethod
    def from_text(cls, text: str) -> NetworkTables:
        """Return the tables that a text holds, which nsc wrote.

        Raises:
            PackageError: it holds none.
        """
        try:
            found = read_json(text)
            values: dict[str, Any] = {each.name: _as_tuples(found[each.name]) for each in fields(cls)}
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise PackageError(f"no readable tables ({error}): compile the package again") from None
        return cls(**values)


def _as_tuples(value: object) -> object:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value
