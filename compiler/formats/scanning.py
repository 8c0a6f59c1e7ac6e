"""Scanning: pairs of wires in a text that holds nothing else, and excerpts for messages.

Everything here is linear in the text: where a pattern does not match at once the reading ends, and no
pattern can split a text in two ways.
"""

from __future__ import annotations

import itertools
import json
import re

from nsc.compiler.formats.listing import Pair
from nsc.errors import NetworkError
from nsc.strict_json import read_json

# A wire's number in a pattern. Nine digits are more than enough and never too many for int().
WIRE = "([0-9]{1,9})"

# An unclosed /* runs to the end, so that the text is gone through once; it is refused after that.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)


def pairs_of(text: str, pattern: str, example: str, line: int = 1) -> list[Pair]:
    """Return the comparators that a text consists of.

    Args:
        text: the text, without trailing space.
        pattern: one comparator with the space around it; its two groups are lo and hi.
        example: a comparator, for messages.
        line: number of the text's first line.

    Raises:
        NetworkError: anything but comparators, or one that joins a wire to itself.
    """
    # What is no comparator takes all the rest with it, so that the text is gone through once.
    found = re.findall(f"{pattern}|([\\s\\S]+)", text)
    rest = found.pop()[2] if found and found[-1][2] else ""
    pairs = [(int(lo), int(hi)) for lo, hi, _ in found]
    same = next((index for index, (lo, hi) in enumerate(pairs) if lo == hi), None)
    if same is not None:
        start = next(itertools.islice(re.finditer(pattern, text), same, None)).start()
        wire = pairs[same][0]
        raise NetworkError(
            f"line {_line(text, start, line)}: comparator ({wire}, {wire}) joins a wire to itself: lo and hi "
            "must differ"
        )
    if rest:
        where = _line(text, len(text) - len(rest), line)
        raise NetworkError(f"line {where}: expected {example}, found {shown(rest.lstrip()[:40])}")
    return pairs


def _line(text: str, start: int, first: int) -> int:
    """Return the number of the line where what begins at a place, perhaps with spaces, is."""
    return first + text.count("\n", 0, len(text) - len(text[start:].lstrip()))


def without_comments(text: str) -> str:
    """Return a text without C's comments and without those from ``#`` on; lines keep their numbers.

    Raises:
        NetworkError: a comment without an end.
    """
    return _COMMENT.sub(_without_comment, text)


def _without_comment(match: re.Match[str]) -> str:
    comment = match[0]
    if comment.startswith('"'):  # a string, in which nothing is a comment
        return comment
    if comment.startswith("/*") and (len(comment) < 4 or not comment.endswith("*/")):
        line = match.string.count("\n", 0, match.start()) + 1
        raise NetworkError(f"line {line}: the comment /* has no end */")
    return "\n" * comment.count("\n") or " "


def json_value(text: str) -> object:
    """Return the value that a JSON text is.

    Raises:
        NetworkError: no JSON, a key stated twice, or nested or with numbers beyond what Python reads.
    """
    try:
        return read_json(text)
    except (ValueError, RecursionError) as error:
        raise NetworkError(f"not valid JSON: {error}") from None


def json_object(text: str) -> dict[str, object]:
    """Return the JSON object that a text is."""
    data = json_value(text)
    if not isinstance(data, dict):
        raise NetworkError(f"expected a JSON object, found {shown(data)}")
    return data


def stated_wires(data: dict[str, object], key: str) -> int:
    """Return the number of wires that a JSON object states."""
    stated = data.get(key)
    if not isinstance(stated, int) or isinstance(stated, bool):
        found = f"found {shown(stated)}" if key in data else "it is missing"
        raise NetworkError(f'"{key}", the number of wires, must be an integer; {found}')
    return stated


def is_pair(value: object) -> bool:
    """Say whether a JSON value is a list of two integers."""
    return isinstance(value, list) and len(value) == 2 and all(type(item) is int for item in value)


def shown(value: object) -> str:
    """Return a JSON value, or one of Python, as a short text for a message, without control characters."""
    try:
        text = json.dumps(value, default=repr).replace("\x7f", "\\u007f")
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= 60 else text[:57] + "…"
