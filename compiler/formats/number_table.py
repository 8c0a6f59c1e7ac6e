"""The 1-based table: ``N M``, then the M lower ends, then the M upper ends.

The lower end is the one that keeps the minimum, whichever wire it is.
"""

from __future__ import annotations

import re

from nsc.compiler.formats.listing import Format, Listing, comparators_array
from nsc.compiler.formats.scanning import WIRE, shown
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

_NUMBER = re.compile(WIRE)


def _recognises(text: str) -> bool:
    return re.match(r"\s*[0-9]+\s+[0-9]+(\s|\Z)", text) is not None


def _parse(text: str) -> Listing:
    words = text.split()
    for index, word in enumerate(words):
        if not _NUMBER.fullmatch(word):
            raise NetworkError(f"number {index + 1} of the table is no whole number: {shown(word[:60])}")
    if len(words) < 2:
        raise NetworkError("a table begins with the number of wires and the number of comparators")
    n, size, *ends = map(int, words)
    if len(ends) != 2 * size:
        raise NetworkError(
            f"a table of {count(size, 'comparator')} has {2 * size} numbers after the first two, this one "
            f"{len(ends)}; one network a file"
        )
    pairs = list(zip(ends[:size], ends[size:], strict=True))
    return Listing(comparators_array(pairs), n=n, index_base=1)


def _write(network: Network) -> str:
    ends = (network.comparators + 1).T.tolist()
    lines = [f"{network.n} {network.size}", *(" ".join(map(str, row)) for row in ends)]
    return "\n".join(lines) + "\n"


FORMAT = Format(
    example="4 5\n1 2 1 3 2\n3 4 2 4 3",
    suffixes=(".table",),
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
