"""Recognising: which formats a text may be in, and which it resembles if it is in none."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from nsc.compiler.formats.listing import Format
from nsc.errors import NetworkError
from nsc.wording import argument

# A comment before a network.
_COMMENT = re.compile(r"\s*(?:#[^\n]*|//[^\n]*|/\*.*?\*/)", re.DOTALL)
# Characters of a text that are compared with the examples, and that a message shows of each.
_COMPARED = 120
_BEGINNING, _EXAMPLE = 40, 24


def without_leading_comments(text: str) -> str:
    """Return a text without the comments before its network; lines keep their numbers.

    >>> without_leading_comments("# mine\\n0:1")
    '\\n0:1'
    """
    place = 0
    while (comment := _COMMENT.match(text, place)) is not None:
        place = comment.end()
    return "\n" * text.count("\n", 0, place) + text[place:] if place else text


def recognised(text: str, formats: Mapping[str, Format]) -> list[str]:
    """Return the names of the formats that a text looks like, in the table's order, at least one.

    Raises:
        NetworkError: it looks like none; the message names the two formats whose examples are most like it.
    """
    names = [name for name, format_ in formats.items() if format_.recognises(text)]
    if names:
        return names
    message = f"not a network in a known format, it begins {text[:_BEGINNING]!r}"
    if text.strip():
        first, second = _likeliest(text, formats)
        message += (
            f": most like {first}, as {_excerpt(formats[first])}, or {second}, as "
            f"{_excerpt(formats[second])}; {argument('format', first)} says where it differs"
        )
    raise NetworkError(message)


def _likeliest(text: str, formats: Mapping[str, Format]) -> list[str]:
    """Return the two formats that are read whose examples are most like a text.

    Bare numbers with other signs between them, such as 0<2 1<3, are most like pairs.
    """
    is_bare = re.search(r"[^\W\d]|[\[\]{}:]", text[:_COMPARED]) is None
    matcher = difflib.SequenceMatcher(b=_shape(text), autojunk=False)

    def likeness(name: str) -> float:
        matcher.set_seq1(_shape(formats[name].example))
        return matcher.ratio()

    readable = (name for name, format_ in formats.items() if format_.parse is not None)
    return sorted(readable, key=lambda name: (is_bare and name == "pairs", likeness(name)), reverse=True)[:2]


def _shape(text: str) -> str:
    """Return the beginning of a text with every number as 0, every word as a and all space as one."""
    shape = re.sub(r"[^\W\d]+", "a", text.strip()[:_COMPARED])
    return re.sub(r"\s+", " ", re.sub(r"\d+", "0", shape))


def _excerpt(format_: Format) -> str:
    line, _, more = format_.example.partition("\n")
    return line if len(line) <= _EXAMPLE and not more else f"{line[:_EXAMPLE]}…"
