"""SorterHunter's JSON: a flat list of comparators under "nw".

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import json
import re

from nsc.compiler.formats.json_texts import JsonList, json_object
from nsc.compiler.formats.listing import Format, Listing, Pairs, comparators_array, joined
from nsc.compiler.formats.scanning import are_pairs, is_pair, quoted, stated_wires
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError


def _recognises(text: str) -> bool:
    return re.match(r'\s*\{\s*"', text) is not None and '"nw"' in text


def _parse(text: str, progress: Progress) -> Listing:
    data = json_object(text, "nw")
    n = stated_wires(data, "N")
    flat = data.get("nw")
    if not isinstance(flat, JsonList):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(flat)}')
    return Listing(joined(map(_pairs, flat), progress), n=n)


def _pairs(items: list[object]) -> Pairs:
    if not are_pairs(items):
        other = next(item for item in items if not is_pair(item))
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {quoted(other)} in it')
    return comparators_array(items)


def _write(network: Network) -> str:
    layers = (json.dumps(layer.tolist(), separators=(",", ":"))[1:-1] for layer in network.layers())
    return f'{{"N":{network.n},"L":{network.size},"D":{network.depth},"nw":[{",".join(layers)}]}}\n'


FORMAT = Format(
    example='{"N":4,"L":5,"D":3,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
