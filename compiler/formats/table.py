"""The 1-based table: ``N M``, then the M lower ends, then the M upper ends.

The lower end is the one that keeps the minimum, whichever wire it is.
"""

from __future__ import annotations

import re
from array import array

import numpy as np

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import WIRE, numbers_of, quoted, repeated, without_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError
from nsc.wording import count

_NUMBERS = repeated(rf"\s*{WIRE}(?!\S)", 1 << 13)


def _recognises(text: str) -> bool:
    return re.match(r"\s*[0-9]+\s+[0-9]+(\s|\Z)", text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    numbers = _numbers(without_comments(text).rstrip(), progress)
    if len(numbers) < 2:
        raise NetworkError("a table begins with the number of wires and the number of comparators")
    n, size = numbers[:2]
    if len(numbers) - 2 != 2 * size:
        raise NetworkError(
            f"a table of {count(size, 'comparator')} has {2 * size} numbers after the first two, this one "
            f"{len(numbers) - 2}; one network a file"
        )
    pairs = np.frombuffer(numbers, np.int64)[2:].reshape(2, size).T
    return Listing(np.ascontiguousarray(pairs), n=n, index_base=1)


def _numbers(text: str, progress: Progress) -> array[int]:
    """Return the whole numbers of a text, some thousands of them at a time."""
    numbers, place = array("q"), 0
    while (match := _NUMBERS.match(text, place)) is not None:
        numbers.frombytes(numbers_of(match[0]).tobytes())
        place = match.end()
        progress.count("comparators", len(numbers) // 2)
    if place < len(text):
        word = text[place:].split(maxsplit=1)[0]
        raise NetworkError(f"number {len(numbers) + 1} of the table is no whole number: {quoted(word[:60])}")
    return numbers


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
