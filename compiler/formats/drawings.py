"""Diagrams in text, nsc's own and those of Knuth's style: a line a wire, a comparator in a column.

In Knuth's style a wire is ``o--^--v--o``; the minimum leaves at ``^``. nsc marks the minimum by ``○`` or
``o``, the maximum by ``●`` or ``@``, and the end of a layer by ``┆`` or ``:`` below the wires.
"""

from __future__ import annotations

import re
from itertools import zip_longest

import numpy as np

from nsc.compiler.diagram import diagram_text
from nsc.compiler.formats.listing import Format, Listing
from nsc.errors import NetworkError

_WIRE = re.compile(r"[ \t]*(?:\[?\w{1,6}\]?[ \t]+)?(o-.*-o|[─-][─┼○●+o@-]*)[ \t]*")
_OPENING = re.compile(r"\s*(?:(?:\[?\w{1,6}\]?[ \t]+)?(?:o-|─)|[0-9]+ -[-o@+])")
_BETWEEN = re.compile(r"[\s|┆:]*")


def _parse(text: str) -> Listing:
    text = text.expandtabs()
    rows, ends = list[str](), []
    for number, line in enumerate(text.split("\n"), start=1):
        if wire := _WIRE.fullmatch(line):
            own = wire[1].replace("o", "-") if "^" in text else wire[1]
            rows.append(" " * wire.start(1) + own.translate(str.maketrans("○●┼─|o@", "^v+-+^v")))
        elif not _BETWEEN.fullmatch(line):
            raise NetworkError(f"line {number} of the diagram is no wire: o--^--v--o")
        else:
            ends += [place for place, mark in enumerate(line) if mark in "┆:"]
    if not rows:
        raise NetworkError("a diagram has a line for each wire: o--^--v--o")
    found: list[tuple[int, int, int]] = []
    for column, marks in enumerate(zip_longest(*rows, fillvalue=" ")):
        upper = -1
        for place, mark in enumerate(marks):
            if mark in "^v" and upper < 0:
                upper = place
            elif mark in "^v" and mark != marks[upper]:
                low, high = (upper, place) if mark == "v" else (place, upper)
                found.append((sum(end < column for end in ends) if ends else len(found), low, high))
                upper = -1
            elif mark not in ("+" if upper >= 0 else "- "):
                raise NetworkError(f"wire {place} of the diagram has {mark!r} in column {column + 1}")
        if upper >= 0:
            raise NetworkError(f"a comparator of wire {upper} has no other end in column {column + 1}")
    comparators = np.array(found, np.int64).reshape(-1, 3)
    sizes = np.unique(comparators[:, 0], return_counts=True)[1].tolist() if ends else None
    return Listing(comparators[:, 1:], sizes, len(rows), index_base=0)


FORMAT = Format(
    suffixes=(".ascii",),
    holds_layers=True,
    holds_wires=True,
    recognises=lambda text: _OPENING.match(text) is not None,
    parse=_parse,
    write=diagram_text,
)
