"""The 1-based table, and comments, which texts of several formats have."""

from __future__ import annotations

import re

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, begins, quoted
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

# Conditions of a preprocessor are no comments: what they enclose may be left out.
# An unclosed /* runs to the end, so that the text is gone through once; it is refused after that.
_COMMENT = re.compile(
    r'"[^"\n]*"|(?<!:)//[^\n]*|#[ \t]*define\b(?:[^\\\n]|\\.)*'
    r"|#(?![ \t]*(?:ifdef|ifndef|endif)\b|(?:if|else|elif)\b)[^\n]*|/\*.*?(?:\*/|\Z)",
    re.DOTALL,
)


def without_comments(text: str) -> str:
    """Return a text without C's comments and without those from ``#`` on; lines keep their numbers.

    Raises:
        NetworkError: a comment without an end.
    """
    if not any(mark in text for mark in ("#", "//", "/*")):
        return text
    return _COMMENT.sub(_without_comment, text)


def _without_comment(match: re.Match[str]) -> str:
    comment = match[0]
    if comment.startswith('"'):  # a string, in which nothing is a comment
        return comment
    if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
        line = match.string.count("\n", 0, match.start()) + 1
        raise NetworkError(f"line {line}: the comment /* has no end */")
    return re.sub(r"[^\n]", " ", comment)


def _parse(text: str) -> Listing:
    words = without_comments(text).split()
    for place, word in enumerate(words, start=1):
        if re.fullmatch("[0-9]{1,9}", word) is None:
            raise NetworkError(f"number {place} of the table is no whole number: {quoted(word[:60])}")
    if len(words) < 2:
        raise NetworkError("a table begins with the number of wires and the number of comparators")
    n, size, *ends = map(int, words)
    if len(ends) != 2 * size:
        raise NetworkError(
            f"a table of {count(size, 'comparator')} has {2 * size} numbers after the first two, this one "
            f"{len(ends)}; one network a file"
        )
    pairs = np.array(ends, np.int64).reshape(2, size).T
    return Listing(np.ascontiguousarray(pairs), n=n, index_base=1)


def _write(network: Network) -> str:
    ends = (network.comparators + 1).T.tolist()
    lines = [f"{network.n} {network.size}", *(" ".join(map(str, row)) for row in ends)]
    return "\n".join(lines) + "\n"


# The 1-based table: ``N M``, then the M lower ends, then the M upper ends. The lower end is the one that
# keeps the minimum, whichever wire it is.
FORMAT = Format(
    suffixes=(".table",),
    holds_wires=True,
    recognises=begins(r"\s*[0-9]+\s+[0-9]+(\s|\Z)"),
    parse=_parse,
    write=_write,
)
