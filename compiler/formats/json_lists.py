"""Nested lists: a flat list of pairs, or a list of layers, as JSON or as Python prints it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.formats.listing import Format, Listing, comparators_array, settle
from nsc.compiler.formats.scanning import is_pair, json_value, shown
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import argument

_AS_JSON = str.maketrans("()", "[]")


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*\[", text) is not None


def _parse(text: str) -> Listing:
    try:
        items = json_value(text.translate(_AS_JSON))
    except NetworkError as error:
        if "Extra data" not in str(error):
            raise
        raise NetworkError(
            f"{error}: one list a file; a layer per line is read with {argument('format', 'layers')}"
        ) from None
    if not isinstance(items, list):
        raise NetworkError(f"expected a list, found {shown(items)}")
    return _listing(items)


def network_of_lists(
    comparators: Sequence[Any] | npt.NDArray[Any], n: int | None = None, index_base: int | None = None
) -> Network:
    """Return the network of comparators (lo, hi) in Python's lists, tuples and arrays.

    Args:
        comparators: flat, each then as early as it can be, or a list for each layer.
        n: number of wires; None: the highest wire plus one, if all wires up to that one are used.
        index_base: what wires are counted from, 0 or 1; None: 0, if wire 0 is used.

    Raises:
        NetworkError: lists of no network, or of possibly several.
    """
    return settle(_listing(_plain(comparators)), n, index_base)


def _plain(value: Any) -> Any:
    """Return lists, tuples and arrays as lists, and whole numbers of any kind as int."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    number = whole(value)
    return value if number is None else number


def _listing(items: list[Any]) -> Listing:
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
