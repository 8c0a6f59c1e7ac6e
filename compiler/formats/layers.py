"""One layer per line, as the public lists of best known networks have it."""

from __future__ import annotations

import re

from nsc.compiler.formats.json_text import shown, wires_array
from nsc.compiler.network import Network, check_wires
from nsc.errors import NetworkError

_PAIR = r"\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*\)"
_LINE = re.compile(rf"\[\s*(?:{_PAIR}\s*(?:,\s*{_PAIR}\s*)*)?\],?")


def parse_layers(text: str, n: int | None) -> Network:
    """Return the network of a text with one layer per line."""
    layers = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        if not _LINE.fullmatch(line.strip()):
            raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {shown(line)}")
        layers.append([(int(i), int(j)) for i, j in re.findall(_PAIR, line)])
    used = [wire for layer in layers for pair in layer for wire in pair]
    if n is None and not used:
        raise NetworkError("no comparator and no number of wires: state it with --n")
    wires = max(used) + 1 if n is None else n
    check_wires(wires)
    return Network.from_layers(wires, [wires_array(wires, layer) for layer in layers])
