"""One layer per line, as the public lists of best known networks have it.

Source: https://bertdobbelaere.github.io/sorting_networks.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, Pairs, joined
from nsc.compiler.formats.scanning import (
    WIRE,
    lines_of,
    numbers_of,
    pairs_of,
    quoted,
    repeated,
    without_comments,
)
from nsc.compiler.network import Network
from nsc.compiler.progress import SILENT, Progress
from nsc.errors import NetworkError
from nsc.wording import argument

_PAIR = rf"\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*(?:,|\Z)"
# A plain line with its newline; square brackets may stand for round ones, as JSON writes it. A match keeps
# some 600 bytes a comparator until it ends: few lines are matched at a time, and longer
# ones are left to `_layer`.
_ENDS = rf"[(\[][ \t]*{WIRE}[ \t]*,[ \t]*{WIRE}[ \t]*[)\]][ \t]*"
_LINE = rf"\[[ \t]*(?:{_ENDS}(?:,[ \t]*{_ENDS}){{0,31}}(?:,[ \t]*)?)?\][ \t]*(?:,[ \t]*)?(?:\n\s*|\Z)"
_LINES = repeated(_LINE, 1 << 8)


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*[(\]]", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    sizes: list[int] = []
    return Listing(joined(_layers(without_comments(text).rstrip(), sizes), progress), sizes)


def _layers(text: str, sizes: list[int]) -> Iterator[Pairs]:
    """Yield the comparators, some layers at a time, and append each layer's number to the sizes."""
    place, number = 0, 1
    while place < len(text):
        plain = _LINES.match(text, place)
        block = next(lines_of(text, place)) if plain is None else plain[0]
        pairs, counts = (None, []) if plain is None else _plain_layers(block)
        if pairs is None:  # line by line, which says what is wrong
            layers = [_layer(line, k, text) for k, line in enumerate(lines_of(block), number) if line.strip()]
            pairs, counts = joined(layers, SILENT), list(map(len, layers))
        sizes.extend(counts)
        yield pairs
        place += len(block)
        number += block.count("\n")


def _plain_layers(lines: str) -> tuple[Pairs | None, list[int]]:
    """Return the comparators of plain lines, and how many each has; None if a line has a wire twice."""
    counts = [line.count("(") + line.count("[") - 1 for line in lines.split("\n") if line.strip()]
    pairs = numbers_of(lines).reshape(-1, 2)
    layer = np.repeat(np.arange(len(counts)), counts)
    places = (layer[:, None] << 30) + pairs  # a number has nine digits
    return (pairs, counts) if len(np.unique(places)) == places.size else (None, [])


def _layer(line: str, number: int, text: str) -> Pairs:
    """Return the layer of a line, which need not be plain."""
    inside = line.strip().removesuffix(",").rstrip()
    if not (inside.startswith("[") and inside.endswith("]")):
        raise NetworkError(f"line {number} is no layer [(lo,hi),…]: {quoted(line.strip()[:60])}")
    inside = inside[1:-1].strip().replace("[", "(").replace("]", ")")
    layer = pairs_of(inside, _PAIR, "(lo,hi)", line=number)
    _refuse_network(layer, number, text)
    return layer


def _refuse_network(layer: Pairs, number: int, text: str) -> None:
    seen: set[int] = set()
    for wire in layer.ravel().tolist():
        if wire in seen:
            alone = "if each line is a network, put one into a file of its own; " if "\n" in text else ""
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
