"""SorterHunter's JSON: a flat list of comparators under "nw"."""

from __future__ import annotations

from nsc.compiler.formats.json_text import is_integer, json_object, shown, stated_wires, wires_array
from nsc.compiler.network import Network
from nsc.errors import NetworkError


def parse_sorterhunter(text: str, n: int | None) -> Network:
    """Return the network of a text in SorterHunter's JSON, relayered."""
    data = json_object(text)
    wires = stated_wires(data, "N", n)
    flat = data.get("nw")
    if not isinstance(flat, list) or not all(
        isinstance(p, list) and len(p) == 2 and all(map(is_integer, p)) for p in flat
    ):
        raise NetworkError(f'"nw" must be a flat list of [lo, hi], found {shown(flat)}')
    return Network.from_comparators(wires, wires_array(wires, flat))
