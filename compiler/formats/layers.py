"""One layer per line, as the public lists of best known networks have it.

Source: https://bertdobbelaere.github.io/sorting_networks.html
"""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing, Pair, comparators_array
from nsc.compiler.formats.scanning import WIRE, pairs_of, shown
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import argument

_PAIR = rf"\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*(?:,|\Z)"


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*[(\]]", text) is not None


def _parse(text: str) -> Listing:
    pairs: list[Pair] = []
    sizes = []
    lines = [(k, line.strip()) for k, line in enumerate(text.split("\n"), start=1) if line.strip()]
    for number, line in lines:
        layer = _layer(line, number)
        _refuse_network(layer, number, len(lines))
        pairs += layer
        sizes.append(len(layer))
    return Listing(comparators_array(pairs), sizes)


def _layer(line: str, number: int) -> list[Pair]:
    inside = line.removesuffix(",").rstrip()
    if not (inside.startswith("[") and inside.endswith("]")):
        raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {shown(line[:60])}")
    # Square brackets are JSON's way to write the same line.
    inside = inside[1:-1].strip().replace("[", "(").replace("]", ")")
    return pairs_of(inside, _PAIR, "(lo,hi)", number)


def _refuse_network(layer: list[Pair], number: int, lines: int) -> None:
    seen: set[int] = set()
    for pair in layer:
        for wire in pair:
            if wire in seen:
                alone = "" if lines == 1 else "if each line is a network, put one into a file of its own; "
                raise NetworkError(
                    f"line {number} touches wire {wire} twice, so it is a whole network and no layer: "
                    f"{alone}{argument('format', 'json')} reads a flat list"
                )
            seen.add(wire)


def _write(network: Network) -> str:
    lines = [",".join(f"({lo},{hi})" for lo, hi in layer.tolist()) for layer in network.layers()]
    return "".join(f"[{line}]\n" for line in lines or [""])


FORMAT = Format(
    example="[(0,2),(1,3)]\n[(0,1),(2,3)]\n[(1,2)]",
    suffixes=(".txt", ".layers"),
    holds_layers=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
