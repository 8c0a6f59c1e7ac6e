"""SorterHunter's JSON: a flat list of comparators under "nw".

Source: https://github.com/bertdobbelaere/SorterHunter
"""

from __future__ import annotations

import json
import re

from nsc.compiler.formats.listing import Format, Listing, comparators_array
from nsc.compiler.formats.scanning import is_pair, json_object, shown, stated_wires
from nsc.compiler.network import Network
from nsc.errors import NetworkError


def _recognises(text: str) -> bool:
    return re.match(r'\s*\{\s*"', text) is not None and '"nw"' in text


def _parse(text: str) -> Listing:
    data = json_object(text)
    n = stated_wires(data, "N")
    flat = data.get("nw")
    if not isinstance(flat, list) or not all(map(is_pair, flat)):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {shown(flat)}')
    return Listing(comparators_array(flat), n=n)


def _write(network: Network) -> str:
    facts = {"N": network.n, "L": network.size, "D": network.depth, "nw": network.comparators.tolist()}
    return json.dumps(facts, separators=(",", ":")) + "\n"


FORMAT = Format(
    example='{"N":4,"L":5,"D":3,"nw":[[0,2],[1,3],[0,1],[2,3],[1,2]]}',
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
