"""JSON, and nested lists in it: a flat list of pairs, or a list of layers; as Python prints them too.

SorterHunter's files are JSON with a flat list under "nw". The log that it prints has Python dictionaries, a
line each, among other lines. A line begins with ``{'N':`` and ends with ``}``. The program prints a network
whenever it has found a better one, so the last such line is read; one that was cut off before its ``}`` is
passed over, with a warning. The lines of one file must agree on N.

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted, settle
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.strict_json import read_json

_BEGINNING = "{'N'"
_LOG = re.compile(r"^[ \t]*\{'N'", re.MULTILINE)
_WIRES = re.compile(r"\{\s*'N'\s*:\s*([0-9]{1,9})\s*,")
_LOG_AS_JSON = str.maketrans("()'", '[]"')


def json_value(text: str) -> Any:
    """Return the value of a JSON text; an object that has a key twice is an error."""
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is."""
    value = json_value(text)
    if not isinstance(value, dict):
        raise NetworkError(f"expected a JSON object, found {quoted(value)}")
    return value


def stated_wires(data: dict[str, Any], key: str) -> int:
    """Return the number of wires that a JSON object states."""
    stated = data.get(key)
    if type(stated) is not int:
        fault = f"found {quoted(stated)}" if key in data else "it is missing"
        raise NetworkError(f'"{key}", the number of wires, must be an integer; {fault}')
    return stated


def comparators_of(items: list[Any], what: str) -> Pairs:
    """Return the comparators of a flat list of JSON values, which messages call by `what` and their place."""
    if not are_pairs(items):
        index, item = next((k, item) for k, item in enumerate(items) if not are_pairs([item]))
        nested = isinstance(item, list) and bool(item) and isinstance(item[0], list)
        several = " (lists nested deeper are several networks: one network a file)" if nested else ""
        raise NetworkError(f"{what} {index}: a comparator is [lo, hi], found {quoted(item)}{several}")
    return integers_array(items, 2)


def are_pairs(items: list[Any]) -> bool:
    return set(map(type, items)) <= {list} and set(map(len, items)) <= {2} and are_integers(items)


def are_integers(lists: Iterable[list[Any]]) -> bool:
    """Say whether some lists hold integers alone."""
    return set(map(type, itertools.chain.from_iterable(lists))) <= {int}


def integers_array(rows: Sequence[Sequence[int]], width: int) -> npt.NDArray[np.int64]:
    """Return rows of integers as an array.

    Raises:
        NetworkError: a number that is no wire by far.
    """
    try:
        return np.array(rows, dtype=np.int64).reshape(-1, width)
    except OverflowError:
        raise NetworkError("a comparator has a wire outside every range: a number beyond 64 bits") from None


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
    first = items[0] if items else None
    if isinstance(first, list) and first and not isinstance(first[0], list):
        return Listing(comparators_of(items, "item"))
    return layered(items)


def layered(items: list[Any]) -> Listing:
    """Return the listing of JSON values, a list of comparators for each layer."""
    for index, layer in enumerate(items):
        if not isinstance(layer, list):
            raise NetworkError(f"layer {index} must be a list of [lo, hi], found {quoted(layer)}")
    flat = list(itertools.chain.from_iterable(items))
    if not are_pairs(flat):
        for index, layer in enumerate(items):
            comparators_of(layer, f"layer {index}, item")
    return Listing(integers_array(flat, 2), list(map(len, items)))


def _parse_json(text: str) -> Listing:
    data = json_object(text)
    n, flat = stated_wires(data, "N"), data.get("nw")
    if not isinstance(flat, list):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(flat)}')
    return Listing(comparators_of(flat, '"nw", item'), n=n)


def _write_sorterhunter(network: Network) -> str:
    pairs = json.dumps(network.comparators.tolist(), separators=(",", ":"))
    return f'{{"N":{network.n},"L":{network.size},"D":{network.depth},"nw":{pairs}}}\n'


def _parse_log(text: str) -> Listing:
    lines = [(number, line.strip()) for number, line in enumerate(text.split("\n"), start=1)]
    networks = [(number, line) for number, line in lines if line.startswith(_BEGINNING) and line[-1] == "}"]
    cut = [number for number, line in lines if _is_cut(line)]
    if not networks:
        raise NetworkError("no whole line {'N':4,…,'nw':[(0,2),…]}")
    wires = {}
    for number, line in networks:
        stated = _WIRES.match(line)
        if stated is None:
            raise NetworkError(f"line {number}: 'N', the number of wires, must be an integer")
        wires[int(stated[1])] = number
    if len(wires) > 1:
        numbers = " and ".join(str(n) for n in sorted(wires)[:2])
        raise NetworkError(f"several networks in one file, of {numbers} wires: keep one run's lines")
    number, line = networks[-1]
    try:
        listing = _parse_json(line.translate(_LOG_AS_JSON))
    except NetworkError as error:
        raise NetworkError(f"line {number}: {error}") from None
    if cut:
        warnings.warn(
            f"nsc: line {cut[-1]} of the log is cut off before its network ends: the last whole network, of "
            f"line {number}, is read",
            stacklevel=2,
        )
    return listing


def _is_cut(line: str) -> bool:
    """Say whether a line is the beginning of a network, even only one character of it."""
    begins = line.startswith(_BEGINNING) or (line != "" and _BEGINNING.startswith(line))
    return begins and not line.endswith("}")


def _recognises(text: str) -> bool:
    return _LOG.search(text) is not None or (re.match(r'\s*\{\s*"', text) is not None and '"nw"' in text)


SORTERHUNTER = Format(
    holds_wires=True,
    recognises=_recognises,
    parse=lambda text: _parse_log(text) if _LOG.search(text) else _parse_json(text),
    write=_write_sorterhunter,
)
