"""Plain texts: comparators and nothing else, in one pattern a format.

Comments (``//``, ``/* */``, and from ``#`` to the end of the line) are passed over. Everything here is linear
in the text: where a pattern does not match at once the reading ends, and no pattern can split a text in two
ways.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, Pairs, begins, quoted
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

# A wire's number in a pattern. Nine digits are more than enough and never too many for int().
_DIGITS = "[0-9]{1,9}"
WIRE = f"({_DIGITS})"

# Comparators that are matched at a time.
_BLOCK = 1 << 12
# Maps each byte that is no digit to a space.
_DIGITS_ALONE = bytes(code if chr(code).isdigit() and code < 128 else 32 for code in range(256))

# An unclosed /* runs to the end, so that the text is gone through once; it is refused after that.
_COMMENT = re.compile(r'"[^"\n]*"|//[^\n]*|#[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)

_ROUND_PAIR = rf"\s*\(\s*{WIRE}\s*,\s*{WIRE}\s*\)\s*"
_CALL = r"\s*([A-Za-z_][A-Za-z0-9_]{0,79})\s*\("
# The kinds of `pairs`: what a text begins with, one of its pairs with the space around it, and an example.
_KINDS = (
    (re.compile(r"\s*\("), rf"{_ROUND_PAIR}[,;]?", "(0,2)"),
    (re.compile(r"\s*[0-9]+[ \t]*,"), rf"\s*{WIRE}[ \t]*,[ \t]*{WIRE}(?![^\s;])[ \t]*;?", "0,2"),
    (re.compile(r"\s*[0-9]+[ \t]+[0-9]"), rf"\s*{WIRE}[ \t]+{WIRE}(?![^\s,;])[ \t]*[,;]?", "0 2"),
)
_NUMBER = re.compile(WIRE)


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


def _reader(pair: str, example: str, index_base: int | None = None) -> Callable[[str], Listing]:
    """Return a function that reads texts of pairs of this pattern."""

    def parse(text: str) -> Listing:
        bare = without_comments(text).rstrip()
        return Listing(pairs_of(bare, pair, example), index_base=index_base)

    return parse


def _writer(pair: str, between: str, index_base: int = 0) -> Callable[[Network], str]:
    """Return a function that writes a line a layer, with something between pairs."""

    def write(network: Network) -> str:
        layers = ((layer + index_base).tolist() for layer in network.layers())
        return "".join(between.join(pair.format(*ends) for ends in layer) + "\n" for layer in layers)

    return write


def _parse_pairs(text: str) -> Listing:
    bare = without_comments(text).rstrip()
    kinds = [kind for kind in _KINDS if kind[0].match(bare)] or _KINDS
    return Listing(pairs_of(bare, *kinds[0][1:]))


def _parse_code(text: str) -> Listing:
    bare = without_comments(text).rstrip()
    called = re.match(_CALL, bare)
    name = "SWAP" if called is None else called[1]
    example = "SWAP(0,2);" if called is None else f"{name[:40]}(0,2); (one name in the whole file)"
    return Listing(pairs_of(bare, rf"\s*{name}{_ROUND_PAIR}[;,]?", example, word=name))


def _parse_table(text: str) -> Listing:
    words = without_comments(text).split()
    for place, word in enumerate(words, start=1):
        if _NUMBER.fullmatch(word) is None:
            raise NetworkError(f"number {place} of the table is no whole number: {quoted(word[:60])}")
    if len(words) < 2:
        raise NetworkError("a table begins with the number of wires and the number of comparators")
    n, size = map(int, words[:2])
    if len(words) - 2 != 2 * size:
        raise NetworkError(
            f"a table of {count(size, 'comparator')} has {2 * size} numbers after the first two, this one "
            f"{len(words) - 2}; one network a file"
        )
    pairs = np.fromiter(map(int, words[2:]), np.int64).reshape(2, size).T
    return Listing(np.ascontiguousarray(pairs), n=n, index_base=1)


def _write_table(network: Network) -> str:
    ends = (network.comparators + 1).T.tolist()
    lines = [f"{network.n} {network.size}", *(" ".join(map(str, row)) for row in ends)]
    return "\n".join(lines) + "\n"


# The colon list of .cn files; a newline is a comma.
COLONS = Format(
    suffixes=(".cn",),
    recognises=begins(r"\s*[0-9]+\s*:"),
    parse=_reader(rf"\s*{WIRE}[ \t]*:[ \t]*{WIRE}[ \t]*(?:,|\n|\Z)", "0:2"),
    write=_writer("{}:{}", ","),
)

# Knuth's text, wires counted from 1. Source: Knuth, The Art of Computer Programming 3, section 5.3.4.
KNUTH = Format(
    suffixes=(".knuth",),
    recognises=begins(r"\s*\[\s*[0-9]+\s*:"),
    parse=_reader(rf"\s*\[\s*{WIRE}\s*:\s*{WIRE}\s*\]", "[1:2]", index_base=1),
    write=_writer("[{}:{}]", "", index_base=1),
)

# The 1-based table: ``N M``, then the M lower ends, then the M upper ends. The lower end is the one that
# keeps the minimum, whichever wire it is.
TABLE = Format(
    suffixes=(".table",),
    holds_wires=True,
    recognises=begins(r"\s*[0-9]+\s+[0-9]+(\s|\Z)"),
    parse=_parse_table,
    write=_write_table,
)

# All pairs of a text are of one kind. A newline is a space: pairs on a line are no layer. A pair without
# parentheses stands on one line.
PAIRS = Format(
    recognises=begins(r"\s*(\(\s*[0-9]+\s*,|[0-9]+[ \t]*,[ \t]*[0-9]|[0-9]+[ \t]+[0-9])"),
    parse=_parse_pairs,
)

# Code as people paste it: any one name is called, with two whole numbers; the minimum goes to the first. A
# macro's definition is passed over as a comment.
CODE = Format(
    suffixes=(".c", ".h", ".cpp", ".hpp"),
    recognises=begins(rf"\s*(//|/\*|#)|{_CALL}"),
    parse=_parse_code,
    write=_writer("SWAP({},{});", " "),
)
