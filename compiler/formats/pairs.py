"""Plain pairs of wires: ``(0,2),(1,3)``, ``(0,2) (1,3)``, ``0,2 1,3``, or ``0 2``, a pair a line or several.

All pairs of a text are of one kind. A newline is a space: pairs on a line are no layer. A pair without
parentheses stands on one line.
"""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, pairs_of, without_comments
from nsc.compiler.progress import Progress

# What a text begins with, one of its pairs with the space around it, and an example.
_KINDS = tuple(
    (re.compile(beginning), pair, example)
    for beginning, pair, example in (
        (r"\s*\(", rf"\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*[,;]?", "(0,2)"),
        (r"\s*[0-9]+[ \t]*,", rf"\s*{WIRE}[ \t]*,[ \t]*{WIRE}(?![^\s;])[ \t]*;?", "0,2"),
        (r"\s*[0-9]+[ \t]+[0-9]", rf"\s*{WIRE}[ \t]+{WIRE}(?![^\s,;])[ \t]*[,;]?", "0 2"),
    )
)


def _recognises(text: str) -> bool:
    return re.match(r"\s*(\(\s*[0-9]+\s*,|[0-9]+[ \t]*,[ \t]*[0-9]|[0-9]+[ \t]+[0-9])", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    bare = without_comments(text).rstrip()
    for beginning, pair, example in _KINDS:
        if beginning.match(bare):
            return Listing(pairs_of(bare, pair, example, progress))
    return Listing(pairs_of(bare, _KINDS[0][1], _KINDS[0][2], progress))


FORMAT = Format(
    example="(0,2),(1,3)\n(0,1),(2,3)\n(1,2)",
    recognises=_recognises,
    parse=_parse,
)
