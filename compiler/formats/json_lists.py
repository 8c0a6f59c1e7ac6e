"""JSON with comparators as pairs: SorterHunter's files, and Python's lists of the same shapes.

SorterHunter's files are JSON with a flat list under "nw". The log that it prints has Python dictionaries, a
line each, among other lines. A line begins with ``{'N':`` and ends with ``}``. The program prints a network
whenever it has found a better one, so the last such line is read, for each number of wires. One that was cut
off before its ``}`` is passed over, with a warning.

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import itertools
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from nsc.arguments import whole
from nsc.compiler.formats.listing import Format, Listing, quoted, settle
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.strict_json import read_json

_BEGINNING = "{'N'"
_LOG = re.compile(r"^[ \t]*\{'N'", re.MULTILINE)
_LOG_AS_JSON = str.maketrans("()'", '[]"')


def json_object(text: str) -> dict[str, Any]:
    """Return the JSON object that a text is; one that has a key twice is an error."""
    try:
        value = read_json(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise NetworkError(f"expected a JSON object, found {quoted(value)}")
    return value


def stated_wires(data: dict[str, Any], key: str) -> int:
    """Return the number of wires that a JSON object states."""
    if type(data.get(key)) is not int:
        found = f"found {quoted(data[key])}" if key in data else "it is missing"
        raise NetworkError(f'"{key}", the number of wires, must be an integer; {found}')
    return int(data[key])


def rows_of(items: list[Any], widths: tuple[int, ...] = (2,)) -> npt.NDArray[np.int64]:
    """Return JSON's lists of integers as rows of an array, filled up with ones if their widths differ.

    Raises:
        NetworkError: an item that is no list of integers of such a width, or a number beyond 64 bits.
    """
    for number, item in enumerate(items, start=1):
        if type(item) is not list or len(item) not in widths or {*map(type, item)} != {int}:
            raise NetworkError(f"comparator {number} must be [lo, hi], found {quoted(item)}")
    width = max(map(len, items), default=2)
    rows = items if width == 2 else [[*item, 1, 1][:width] for item in items]
    try:
        return np.array(rows, dtype=np.int64).reshape(-1, width)
    except OverflowError:
        raise NetworkError("a comparator has a wire outside every range: a number beyond 64 bits") from None


def joined(layers: Any) -> tuple[list[Any], list[int]]:
    """Return what a JSON list of layers has in all layers, and how much in each."""
    for layer in layers if isinstance(layers, list) else [layers]:
        if not isinstance(layer, list):
            raise NetworkError(f"layers are lists of [lo, hi], found {quoted(layer)}")
    return list(itertools.chain.from_iterable(layers)), list(map(len, layers))


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
    try:
        items = _plain(comparators)
    except RecursionError:
        raise NetworkError("comparators are pairs (lo, hi), found lists nested too deeply") from None
    if items and isinstance(items[0], list) and items[0] and not isinstance(items[0][0], list):
        return settle(Listing(rows_of(items)), n, index_base)
    items, sizes = joined(items)
    return settle(Listing(rows_of(items), sizes), n, index_base)


def _plain(value: Any) -> Any:
    """Return lists, tuples and arrays as lists, and whole numbers of any kind as int."""
    if isinstance(value, list | tuple | np.ndarray):
        items: Any = value.tolist() if isinstance(value, np.ndarray) else value
        return [_plain(item) for item in items]
    number = whole(value)
    return value if number is None else number


def _parse_json(text: str) -> Listing:
    data = json_object(text)
    n, flat = stated_wires(data, "N"), data.get("nw")
    if not isinstance(flat, list):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(flat)}')
    return Listing(rows_of(flat), n=n)


def _parse_log(text: str) -> list[Listing]:
    last, cut = dict[str, tuple[int, str]](), 0
    for number, line in enumerate(map(str.strip, text.split("\n")), start=1):
        if line and line.startswith(_BEGINNING[: len(line)]):  # a network, even only one character of it
            if line[-1] == "}":
                last[line.partition(",")[0]] = number, line
            else:
                cut = number
    if not last:
        raise NetworkError("no whole line {'N':4,…,'nw':[(0,2),…]}")
    listings = []
    for number, line in last.values():
        try:
            listings.append(replace(_parse_json(line.translate(_LOG_AS_JSON)), name=f"line {number}"))
        except NetworkError as error:
            raise NetworkError(f"line {number}: {error}") from None
    if cut:
        warnings.warn(
            f"nsc: line {cut} of the log is cut off before its network ends: the last whole network, of "
            f"{listings[-1].name}, is read",
            stacklevel=2,
        )
    return listings


def _write(network: Network) -> str:
    pairs = json.dumps(network.comparators.tolist(), separators=(",", ":"))
    return f'{{"N":{network.n},"L":{network.size},"D":{network.depth},"nw":{pairs}}}\n'


SORTERHUNTER = Format(
    holds_wires=True,
    recognises=lambda text: bool(_LOG.search(text) or (re.match(r'\s*\{\s*"', text) and '"nw"' in text)),
    parse=lambda text: _parse_log(text) if _LOG.search(text) else _parse_json(text),
    write=_write,
)
