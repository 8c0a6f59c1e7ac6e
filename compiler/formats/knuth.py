"""Knuth's text: ``[1:2][3:4]…``, wires counted from 1.

Source: Knuth, The Art of Computer Programming 3, section 5.3.4.
"""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, pairs_of, without_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress

_PAIR = rf"\s*\[\s*{WIRE}\s*:\s*{WIRE}\s*\]"


def _recognises(text: str) -> bool:
    return re.match(r"\s*\[\s*[0-9]+\s*:", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    return Listing(pairs_of(without_comments(text).rstrip(), _PAIR, "[1:2]", progress), index_base=1)


def _write(network: Network) -> str:
    layers = (layer.tolist() for layer in network.layers())
    return "".join("".join(f"[{lo + 1}:{hi + 1}]" for lo, hi in layer) + "\n" for layer in layers)


FORMAT = Format(
    example="[1:3][2:4][1:2][3:4][2:3]",
    suffixes=(".knuth",),
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
