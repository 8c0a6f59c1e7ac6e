"""Scanning: pairs of wires in a text that holds nothing else, and excerpts for messages.

Everything here is linear in the text: where a pattern does not match at once the reading ends, and no
pattern can split a text in two ways.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from nsc.compiler.formats.listing import Pairs, joined
from nsc.compiler.progress import SILENT, Progress
from nsc.errors import NetworkError

# A wire's number in a pattern. Nine digits are more than enough and never too many for int().
_DIGITS = "[0-9]{1,9}"
WIRE = f"({_DIGITS})"

# Comparators that are matched at a time.
_BLOCK = 1 << 12
# Maps each byte that is no digit to a space.
_DIGITS_ALONE = bytes(code if chr(code).isdigit() and code < 128 else 32 for code in range(256))

# An unclosed /* runs to the end, so that the text is gone through once; it is refused after that.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def pairs_of(
    text: str, pattern: str, example: str, progress: Progress = SILENT, line: int = 1, word: str = ""
) -> Pairs:
    """Return the comparators that a text consists of.

    Args:
        text: the text, without trailing space.
        pattern: one comparator with the space around it; its two groups are lo and hi.
        example: a comparator, for messages.
        progress: is told of the comparators read.
        line: number of the text's first line.
        word: a word of the pattern that may have digits.

    Raises:
        NetworkError: anything but comparators, or one that joins a wire to itself.
    """
    return joined(_blocks(text, pattern, example, line, word), progress)


def _blocks(text: str, pattern: str, example: str, line: int, word: str) -> Iterator[Pairs]:
    """Yield comparators some thousands at a time: all their numbers as strings would take a lot of memory."""
    block, place = repeated(pattern, _BLOCK), 0
    while (match := block.match(text, place)) is not None:
        pairs = numbers_of(match[0].replace(word, "") if word else match[0]).reshape(-1, 2)
        if (pairs[:, 0] == pairs[:, 1]).any():
            _refuse_same(text, re.compile(pattern), place, line)
        yield pairs
        place = match.end()
    if place < len(text):
        where = _line(text, place, line)
        raise NetworkError(f"line {where}: expected {example}, found {quoted(text[place:].lstrip()[:40])}")


def numbers_of(text: str) -> npt.NDArray[np.int64]:
    """Return the numbers that a text has between all that is no digit.

    >>> numbers_of("(0,12),").tolist()
    [0, 12]
    """
    digits = text.encode("ascii", "replace").translate(_DIGITS_ALONE)
    return np.fromstring(digits, np.int64, sep=" ") if digits.strip() else np.empty(0, np.int64)


@functools.lru_cache
def repeated(pattern: str, most: int) -> re.Pattern[str]:
    """Return a pattern that matches another one to `most` times, without its groups of wires."""
    return re.compile(f"(?:{pattern.replace(WIRE, _DIGITS)}){{1,{most}}}")


def _refuse_same(text: str, one: re.Pattern[str], place: int, line: int) -> None:
    """Raise for the first comparator from a place on that joins a wire to itself."""
    same = next(match for match in one.finditer(text, place) if int(match[1]) == int(match[2]))
    wire = int(same[1])
    raise NetworkError(
        f"line {_line(text, same.start(), line)}: comparator ({wire}, {wire}) joins a wire to itself: lo and "
        "hi must differ"
    )


def lines_of(text: str, place: int = 0) -> Iterator[str]:
    """Yield the lines of a text from a place on, with newlines, without a copy of all of them at a time."""
    while place < len(text):
        end = text.find("\n", place) + 1 or len(text)
        yield text[place:end]
        place = end


def _line(text: str, start: int, first: int) -> int:
    """Return the number of the line where what begins at a place, perhaps with spaces, is."""
    return first + text.count("\n", 0, len(text) - len(text[start:].lstrip()))


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
    return "\n" * comment.count("\n") or " "


def quoted(value: object) -> str:
    """Return a JSON value, or one of Python, as a short text for a message, without control characters."""
    try:
        text = json.dumps(value, default=repr).replace("\x7f", "\\u007f")
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 60 else text[:57] + "…"
