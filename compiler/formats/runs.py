"""Runs: where a text has comparators, whatever its brackets, its separators and the name that is called.

A text is numbers with gaps between them. However long it is, it has few different gaps: each is parsed once,
and arrays of numbers and of gaps do the rest. A number that a name indexes (``p[1]``, ``x(2)``, ``&d[0]``) is
a wire like a number alone. A group is an even number of wires in a bracket, all of one kind, perhaps with
words beside them: ``(0, 2)``, ``[1:3]``, ``SWAP(v, p[1], p[2], less)``, ``{0, 2, 1, 3}``. A run is groups of
one shape with only separators and brackets between them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nsc.compiler.formats.listing import Pairs

NAME = r"(?<![\w.>:$@])[A-Za-z_$@](?:[\w.$]|->|::){0,99}!?"
PASSED = r"(?:(?:ref|mut|out|inout)\s+|[&*]\s*){0,3}"
# Words that say when or how often something is done.
CONTROL = re.compile(
    r"(?<!#)\b(?:if|else|elif|elsif|elseif|unless|switch|case|select|when|match|for|foreach|forall|while|do|loop|repeat|"
    r"until|goto)\b",
    re.IGNORECASE,
)
NAMES_A_LIST = re.compile(r"list|array|vec|seq|tuple|layer", re.IGNORECASE)
BRACKETS = dict(zip("[({<", "])}>", strict=True))
# Characters of a gap that are looked at, from either end; and of a text that are split at a time.
REACH, _BLOCK = 400, 1 << 16

_NUMBER = re.compile(r"(?<![\w.])([0-9]{1,9})(?![\w.])")
_INDEX = re.compile(rf"{PASSED}{NAME}\s*([\[(])\s*\Z")
_WORD = r"[&*]?[A-Za-z_](?:[\w.*]|->|::){0,99}(?<![0-9])"
_INNER = re.compile(r"\s*([,:])\s*|(\s)\s*")
_OPEN = re.compile(
    rf"(?:&?\[\s*_?\s*\]\s*)?({NAME})?(?:\s*\[\s*\]){{0,2}}(?(1)\s*|)([\[({{<])\s*((?:{_WORD}\s*,\s*){{0,9}})\Z"
)
_CLOSE = re.compile(rf"\s*((?:,\s*{_WORD}\s*){{0,9}}),?\s*([\])}}>])")
_EMPTY = re.compile(r"[\[({]\s*[\])}]\s*,?")
_TYPE = re.compile(rf"(?:&?\[\s*_?\s*\]\s*)?(?:new\s+)?(?:{NAME})?(?:\[\s*\]\s*){{0,2}}(?=[\[({{])")
_DOUBLE = re.compile(r",\s*,")
_BETWEEN = re.compile(r"[\s,;\])}]*[\s,;\[({]*(?:(?i:call)\s+)?")


class Shape(NamedTuple):
    """What comparators have in common: the called name, a bracket, what wires index, what divides them."""

    name: str
    bracket: str
    indexes: str
    divides: str


@dataclass(frozen=True)
class Run:
    """Comparators with only separators and brackets between them.

    Attributes:
        start, end: of the run in the text.
        shape: of its comparators.
        comparators: (size, 2) integers, in the text's order.
        sizes: comparators of each list that brackets divide from the next.
        places: where each list begins in the text.
        flat: whether a list has its wires without brackets around two.
        nested: whether more than one bracket divides some lists.
    """

    start: int
    end: int
    shape: Shape
    comparators: Pairs
    sizes: list[int]
    places: list[int]
    flat: bool
    nested: bool


class _Gap(NamedTuple):
    """What texts between numbers do: what they divide, open, close; the lengths of both; how they link.

    A link of 0 is none, 1 goes on in a list, 2 begins the next list, 3 more than that.
    """

    divides: Any
    opens: Any
    closes: Any
    opened: Any
    closed: Any
    link: Any


class _Counter(dict[Any, int]):
    """Numbers its keys in the order in which they are asked for."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return len(self) - 1


def runs_of(text: str, between: re.Pattern[str] | None = None) -> Iterator[Run]:
    """Yield the runs of a text without comments, in the text's order.

    Args:
        text: the text.
        between: what divides groups that have no brackets.
    """
    texts, gaps, values, edges = _tokens(text)
    if len(values) < 2:
        return
    # A number is an index if the gap before it ends with a name and a bracket, which the gap behind closes.
    indices = [_INDEX.search(gap[-REACH:]) for gap in texts]
    names = _Counter({"": 0})
    form = np.array([0 if match is None else names["".join(match[0].split())] for match in indices])[
        gaps[:-1]
    ]
    needed = np.array([0 if match is None else ord(BRACKETS[match[1]]) for match in indices])[gaps[:-1]]
    first = np.array([ord(gap[:REACH].lstrip()[:1] or "\0") for gap in texts])[gaps[1:]]
    form *= needed == first
    gaps *= 4
    gaps[:-1] += form > 0
    gaps[1:] += 2 * (form > 0)
    del needed, first

    opens, closes = _Counter({("", "", ""): 0, ("", "(", ""): 1}), _Counter({("", ""): 0})
    present = np.zeros(4 * len(texts), bool)
    present[gaps] = True
    table = np.zeros((6, 4 * len(texts)), np.int32)
    for gap in np.flatnonzero(present).tolist():
        index = indices[gap // 4] if gap & 1 else None
        table[:, gap] = _gap(
            texts[gap // 4], gap & 2 > 0, 0 if index is None else len(index[0]), opens, closes, between
        )
    facts = _Gap(*table)

    # Groups: numbers that only separators of one kind divide.
    divides = np.append(facts.divides[gaps[1:-1]], 0)
    starts = np.concatenate([[0], np.flatnonzero(divides[:-1] == 0) + 1])
    ends = np.append(starts[1:], len(values))
    divides[ends - 1] = divides[starts]
    lengths, before, behind = ends - starts, gaps[starts], gaps[ends]
    allowed = np.array([_most_wires(name, bracket) for name, bracket, _ in opens])
    needed = np.array([ord(BRACKETS.get(bracket, "\0")) for _, bracket, _ in opens])
    closers = np.array([ord(bracket or "\1") for _, bracket in closes])
    opening, closing = facts.opens[before], facts.closes[behind]
    good = (lengths % 2 == 0) & (lengths <= allowed[opening]) & (needed[opening] == closers[closing])
    good &= (lengths == 2) | (divides[starts] != ord(":"))
    for column in (divides, form):
        good &= np.minimum.reduceat(column, starts) == np.maximum.reduceat(column, starts)
    # Round and square brackets may stand for each other.
    words = _Counter()
    kinds = np.array(
        [words["(" if bracket == "[" else bracket, name, word] for name, bracket, word in opens]
    )[opening]
    kinds = np.where(divides[starts] == ord(":"), opening + len(words), kinds)
    shapes = np.array([words[word] for word, _ in closes])[closing] + len(words) * (
        kinds * len(names) + form[starts]
    )
    shapes = shapes * 128 + divides[starts]
    links = np.where(good[:-1] & good[1:] & (shapes[:-1] == shapes[1:]), facts.link[before[1:]], 0)
    cuts = np.concatenate([[0], np.flatnonzero(links == 0) + 1, [len(starts)]]).tolist()
    openings, indexed = list(opens), list(names)
    for low, high in itertools.pairwise(cuts):
        if good[low]:
            pairs = lengths[low:high] // 2
            levels = links[low : high - 1] + (pairs.max() > 1)
            lists = np.concatenate([[0], np.flatnonzero(levels > 1) + 1])
            name, bracket, _ = openings[opening[low]]
            yield Run(
                int(edges[starts[low], 0] - facts.opened[before[low]]),
                int(edges[ends[high - 1] - 1, 1] + facts.closed[behind[high - 1]]),
                Shape(name, bracket, indexed[form[starts[low]]], chr(divides[starts[low]])),
                values[starts[low] : ends[high - 1]].reshape(-1, 2),
                np.add.reduceat(pairs, lists).tolist(),
                edges[starts[low + lists], 0].tolist(),
                bool(pairs.max() > 1),
                bool((levels > 2).any()),
            )


def _tokens(
    text: str,
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return a text's different gaps, the gap before each number and at the end, numbers, and their edges."""
    index, gaps, values, lengths = _Counter(), [], [], [np.empty(0, np.int64)]
    place, gap = 0, ""
    while place < len(text):
        cut = re.compile(r"[^\w.]").search(text, place + _BLOCK)
        end = len(text) if cut is None else cut.start()
        pieces = _NUMBER.split(text[place:end])
        pieces[0] = gap + pieces[0]
        gap, place = pieces.pop(), end
        gaps.append(np.fromiter(map(index.__getitem__, pieces[::2]), np.int64))
        values.append(np.fromiter(map(int, pieces[1::2]), np.int64))
        lengths.append(np.fromiter(map(len, pieces), np.int64))
    gaps.append(np.array([index[gap]]))
    edges = np.cumsum(np.concatenate(lengths)).reshape(-1, 2)
    return list(index), np.concatenate(gaps), np.concatenate(values) if values else edges[:, 0], edges


def _most_wires(name: str, bracket: str) -> int:
    """Return how many wires a bracket may hold: two those of a call, none an index or a range of bits."""
    if bracket == "[" and name and not name.endswith("!"):
        return 0
    return 2 if bracket == "(" and name and not NAMES_A_LIST.search(name) else int(bracket != "") << 30


def _gap(
    text: str, ends: bool, indexes: int, opens: _Counter, closes: _Counter, between: re.Pattern[str] | None
) -> _Gap:
    """Parse a gap.

    Args:
        text: of the gap.
        ends: whether it closes the bracket of an index before.
        indexes: length of the name and bracket at its end that index the number behind.
        opens, closes: the different openings and closings, to which more may be added.
    """
    if between is not None and between.fullmatch(text):
        return _Gap(0, opens["", "(", ""], closes["", ")"], 0, 0, 1)
    skipped = (len(text) - len(text.lstrip()) + 1) * ends
    core = text[skipped : len(text) - indexes]
    divides, close, open_ = _INNER.fullmatch(core), _CLOSE.match(core[:REACH]), _OPEN.search(core[-REACH:])
    closed, opened = (0 if match is None else len(match[0]) for match in (close, open_))
    link = 0
    if close and open_ and closed + opened <= len(core) <= REACH:
        middle = core[closed : len(core) - opened]
        bare = _TYPE.sub("", _EMPTY.sub("", middle))
        down, up = (sum(map(bare.count, brackets)) for brackets in (")]}", "([{"))
        mixed = down and (";" in bare or (open_[1] and "{" in bare))
        if (
            _BETWEEN.fullmatch(bare)
            and down == up
            and not (mixed or _DOUBLE.search(bare))
            and not CONTROL.search(middle)
        ):
            link = 1 + min(down, 2)
    return _Gap(
        ord(divides[1] or " ") if divides else 0,
        opens[open_[1] or "", open_[2], "".join(open_[3].split())] if open_ else 0,
        closes["".join(close[1].split()), close[2]] if close else 0,
        opened + indexes,
        closed + skipped,
        link,
    )
