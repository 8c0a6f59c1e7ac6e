"""Code as people paste it: one call a comparator, ``SWAP(0,2); SWAP(1,3);``.

Any one name may be called, with two whole numbers: the minimum goes to the first. Comments (``//``,
``/* */``, and from ``#`` to the end of the line, which takes in a macro's definition) are passed over.
"""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, pairs_of, without_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress

_NAME = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]{0,79})\s*\(")


def _recognises(text: str) -> bool:
    return re.match(r"\s*(//|/\*|#|[A-Za-z_][A-Za-z0-9_]{0,79}\s*\()", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    bare = without_comments(text).rstrip()
    name = _NAME.match(bare)
    if name is None:
        return Listing(pairs_of(bare, _call("SWAP"), "SWAP(0,2);", progress))
    example = f"{name[1][:40]}(0,2); (one name in the whole file)"
    return Listing(pairs_of(bare, _call(name[1]), example, progress, word=name[1]))


def _call(name: str) -> str:
    return rf"\s*{name}\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*[;,]?"


def _write(network: Network) -> str:
    layers = (layer.tolist() for layer in network.layers())
    return "".join(" ".join(f"SWAP({lo},{hi});" for lo, hi in layer) + "\n" for layer in layers)


FORMAT = Format(
    example="SWAP(0,2); SWAP(1,3); SWAP(0,1); SWAP(2,3); SWAP(1,2);",
    suffixes=(".c", ".h", ".cpp", ".hpp"),
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
