"""SorterHunter's files: JSON with a flat list of comparators under "nw", and the log that it prints.

The log has Python dictionaries, a line each, among other lines. A line begins with ``{'N':`` and ends with
``}``. The program prints a network whenever it has found a better one, so the last such line is read; one
that was cut off before its ``}`` is passed over, with a warning. The lines of one file must agree on N.

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import json
import re
import warnings

from nsc.compiler.formats.json_lists import AS_JSON, comparators_of, json_object, stated_wires
from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import quoted
from nsc.compiler.network import Network
from nsc.errors import NetworkError

_BEGINNING = "{'N'"
_WIRES = re.compile(r"\{\s*'N'\s*:\s*([0-9]{1,9})\s*,")
_AS_JSON = AS_JSON | str.maketrans("'", '"')


def _recognises(text: str) -> bool:
    return re.match(r'\s*\{\s*"', text) is not None and '"nw"' in text


def _parse(text: str) -> Listing:
    data = json_object(text)
    n, flat = stated_wires(data, "N"), data.get("nw")
    if not isinstance(flat, list):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(flat)}')
    return Listing(comparators_of(flat, '"nw", item'), n=n)


def _write(network: Network) -> str:
    pairs = json.dumps(network.comparators.tolist(), separators=(",", ":"))
    return f'{{"N":{network.n},"L":{network.size},"D":{network.depth},"nw":{pairs}}}\n'


def _recognises_log(text: str) -> bool:
    return re.search(r"^[ \t]*\{'N'", text, re.MULTILINE) is not None


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
        listing = _parse(line.translate(_AS_JSON))
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


JSON = Format(
    example='{"N":4,"L":5,"D":3,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)

LOG = Format(
    example="{'N':4,'L':5,'D':3,'sw':'','nw':[(0,2),(1,3),(0,1),(2,3),(1,2)]}",
    holds_wires=True,
    recognises=_recognises_log,
    parse=_parse_log,
)
