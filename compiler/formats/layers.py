"""One layer per line, as the public lists of best known networks have it.

Source: https://bertdobbelaere.github.io/sorting_networks.html
"""

from __future__ import annotations

import re
from itertools import chain

from nsc.compiler.formats.json_lists import AS_JSON, are_pairs, integers_array, json_value
from nsc.compiler.formats.listing import Format, Listing, begins, quoted
from nsc.compiler.formats.plain import without_comments
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import argument

# A comma behind the last comparator of a line, or behind the line: JSON has none there.
_LAST_COMMA = re.compile(r"\][ \t]*,[ \t]*(?=\]|\n|\Z)")


def _parse(text: str) -> Listing:
    bare = _LAST_COMMA.sub("]", without_comments(text).translate(AS_JSON))
    lines = [line for line in bare.split("\n") if line.strip()]
    count, text_of_all = len(lines), f"[{','.join(lines)}]"
    del lines
    try:
        layers = json_value(text_of_all)
    except NetworkError:
        layers = []
    if len(layers) == count and set(map(type, layers)) <= {list}:
        flat = [*chain.from_iterable(layers)]
        if are_pairs(flat):
            pairs = integers_array(flat, 2)
            # A comparator of one wire is refused as in every format.
            if (pairs[:, 0] == pairs[:, 1]).any() or not any(map(_has_wire_twice, layers)):
                return Listing(pairs, [*map(len, layers)])
    for number, line in enumerate(bare.split("\n"), start=1):
        if line.strip():
            _refuse_other(line, number, is_alone=count == 1)
    raise AssertionError("some line is no layer")


def _has_wire_twice(layer: list[list[int]]) -> bool:
    return len({*chain.from_iterable(layer)}) < 2 * len(layer)


def _refuse_other(line: str, number: int, is_alone: bool) -> None:
    """Raise NetworkError for a line that is no layer."""
    try:
        layer = json_value(line)
    except NetworkError:
        layer = None
    if not isinstance(layer, list) or not are_pairs(layer):
        raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {quoted(line.strip()[:60])}")
    if _has_wire_twice(layer):
        wires = [*chain.from_iterable(layer)]
        wire = next(wire for place, wire in enumerate(wires) if wire in wires[:place])
        alone = "" if is_alone else "if each line is a network, put one into a file of its own; "
        raise NetworkError(
            f"line {number} touches wire {wire} twice, so it is a whole network and no layer: "
            f"{alone}{argument('format', 'json')} reads a flat list"
        )


def _write(network: Network) -> str:
    lines = [",".join(f"({lo},{hi})" for lo, hi in layer.tolist()) for layer in network.layers()]
    return "".join(f"[{line}]\n" for line in lines or [""])


FORMAT = Format(
    suffixes=(".txt", ".layers"),
    holds_layers=True,
    recognises=begins(r"\s*\[\s*[(\]]"),
    parse=_parse,
    write=_write,
)
