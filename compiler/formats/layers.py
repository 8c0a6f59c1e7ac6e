"""One layer per line, as the public lists of best known networks have it.

Source: https://bertdobbelaere.github.io/sorting_networks.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nsc.compiler.formats.listing import Format, Listing, Pairs, joined
from nsc.compiler.formats.scanning import WIRE, lines_of, pairs_of, shown
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError
from nsc.wording import argument

_PAIR = rf"\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*(?:,|\Z)"


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*[(\]]", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    sizes: list[int] = []
    return Listing(joined(_layers(text, sizes), progress), sizes)


def _layers(text: str, sizes: list[int]) -> Iterator[Pairs]:
    """Yield each layer's comparators and append their number to the sizes."""
    for number, line in enumerate(lines_of(text), start=1):
        if not (line := line.strip()):
            continue
        layer = _layer(line, number)
        _refuse_network(layer, number, text)
        sizes.append(len(layer))
        yield layer


def _layer(line: str, number: int) -> Pairs:
    inside = line.removesuffix(",").rstrip()
    if not (inside.startswith("[") and inside.endswith("]")):
        raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {shown(line[:60])}")
    # Square brackets are JSON's way to write the same line.
    inside = inside[1:-1].strip().replace("[", "(").replace("]", ")")
    return pairs_of(inside, _PAIR, "(lo,hi)", line=number)


def _refuse_network(layer: Pairs, number: int, text: str) -> None:
    wires = layer.ravel().tolist()
    if len(set(wires)) == len(wires):
        return
    twice = next(wire for place, wire in enumerate(wires) if wire in wires[:place])
    alone = "if each line is a network, put one into a file of its own; " if "\n" in text.strip() else ""
    raise NetworkError(
        f"line {number} touches wire {twice} twice, so it is a whole network and no layer: "
        f"{alone}{argument('format', 'json')} reads a flat list"
    )


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
