"""Nested lists: a flat list of pairs, or a list of layers, as JSON or as Python prints it."""

from __future__ import annotations

import json
import re

from nsc.compiler.formats.listing import Format, Listing, comparators_array
from nsc.compiler.formats.scanning import is_pair, json_value, shown
from nsc.compiler.network import Network
from nsc.errors import NetworkError

_AS_JSON = str.maketrans("()", "[]")


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*\[", text) is not None


def _parse(text: str) -> Listing:
    try:
        items = json_value(text.translate(_AS_JSON))
    except NetworkError as error:
        if "Extra data" not in str(error):
            raise
        raise NetworkError(f"{error}: one list a file; a layer per line is --format layers") from None
    if not isinstance(items, list):
        raise NetworkError(f"expected a list, found {shown(items)}")
    if items and isinstance(items[0], list) and items[0] and not isinstance(items[0][0], list):
        _refuse_others(items, "item")
        return Listing(comparators_array(items))
    pairs: list[list[int]] = []
    for index, layer in enumerate(items):
        if not isinstance(layer, list):
            raise NetworkError(f"layer {index} must be a list of [lo, hi], found {shown(layer)}")
        _refuse_others(layer, f"layer {index}, item")
        pairs += layer
    return Listing(comparators_array(pairs), [len(layer) for layer in items])


def _refuse_others(items: list[object], what: str) -> None:
    for index, item in enumerate(items):
        if not is_pair(item):
            nested = isinstance(item, list) and bool(item) and isinstance(item[0], list)
            several = " (lists nested deeper are several networks: one network a file)" if nested else ""
            raise NetworkError(f"{what} {index}: a comparator is [lo, hi], found {shown(item)}{several}")


def _write(network: Network) -> str:
    lines = [json.dumps(layer.tolist(), separators=(",", ":")) for layer in network.layers()]
    return "[" + ",\n ".join(lines) + "]\n"


FORMAT = Format(
    example="[[0,2],[1,3],[0,1],[2,3],[1,2]]",
    holds_layers=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
