"""The colon list of .cn files: ``0:2,1:3``, where a newline is a comma."""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, pairs_of, without_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress

_PAIR = rf"\s*{WIRE}[ \t]*:[ \t]*{WIRE}[ \t]*(?:,|\n|\Z)"


def _recognises(text: str) -> bool:
    return re.match(r"\s*[0-9]+\s*:", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    return Listing(pairs_of(without_comments(text).rstrip(), _PAIR, "0:2", progress))


def _write(network: Network) -> str:
    layers = (layer.tolist() for layer in network.layers())
    return "".join(",".join(f"{lo}:{hi}" for lo, hi in layer) + "\n" for layer in layers)


FORMAT = Format(
    example="0:2,1:3\n0:1,2:3\n1:2",
    suffixes=(".cn",),
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
