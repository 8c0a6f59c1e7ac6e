"""Scanning: pairs of wires in a text that holds nothing else, and excerpts for messages.

Everything here is linear in the text: where a pattern does not match at once the reading ends, and no
pattern can split a text in two ways.
"""

from __future__ import annotations

import json
import re

import numpy as np

from nsc.compiler.formats.listing import Pairs
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


def pairs_of(text: str, pattern: str, example: str, word: str = "") -> Pairs:
    """Return the comparators that a text consists of.

    Args:
        text: the text, without trailing space.
        pattern: one comparator with the space around it; its two groups are lo and hi.
        example: a comparator, for messages.
        word: a word of the pattern that may have digits.

    Raises:
        NetworkError: anything but comparators.
    """
    # All numbers as strings would take a lot of memory.
    block = re.compile(f"(?:{pattern.replace(WIRE, _DIGITS)}){{1,{_BLOCK}}}")
    blocks, place = [np.empty(0, np.int64)], 0
    while (match := block.match(text, place)) is not None:
        digits = match[0].replace(word, "") if word else match[0]
        blocks.append(
            np.fromstring(digits.encode("ascii", "replace").translate(_DIGITS_ALONE), np.int64, sep=" ")
        )
        place = match.end()
    if place < len(text):
        line = 1 + text.count("\n", 0, len(text) - len(text[place:].lstrip()))
        raise NetworkError(f"line {line}: expected {example}, found {quoted(text[place:].lstrip()[:40])}")
    return np.concatenate(blocks).reshape(-1, 2)


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
