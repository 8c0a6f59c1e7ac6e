"""Lists of comparators, and program text that has them: one reader for all brackets, separators and names.

A network is what a bracket with a name holds, or a function's body, or the whole text. In a list nothing may
stand beside the comparators; in a body nothing that could exchange values, such as a loop, a condition, a
call or an assignment.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted
from nsc.compiler.formats.runs import BRACKETS, CONTROL, NAME, NAMES_A_LIST, PASSED, REACH, Run, runs_of
from nsc.compiler.formats.table import without_comments
from nsc.compiler.network import Network
from nsc.errors import NetworkError

_STRING = re.compile(r'"(?![A-Za-z_][\w.-]*")[^"\n]*"')
# The heads of functions in languages whose functions have no brackets.
_HEAD = re.compile(
    rf"(?<!end )\b(?:def|subroutine|function|procedure|sub|fun|func|fn|proc|task)\s+({NAME})", re.IGNORECASE
)
_CALLED = re.compile(rf"({NAME})\s*(?:<[^<>;{{}}]{{0,99}}>\s*)?\(")
_TYPE = r"(?:(?![0-9])(?:[\w.<>&* \t]|::|\[\s*\w*\s*\]){1,99})?"
_LABEL = re.compile(
    r"(?:(?<![\w.$@%])|(?<=[$@%]))([\w.$-]{1,99}(?:\[\s*\w+\s*\]|<\w+>){0,2})[\"']?(?:\[\s*\w*\s*\]){0,3}\s*"
    rf"(?::[^=;{{}}:]{{0,99}}=|:=|=>|=|:)(?![=>:])\s*{_TYPE}\s*\Z"
)
_GUARD = re.compile(
    r"\bif\b[^;{}]{0,200}[;{}]?[^;{}]{0,80}\b(?:return|abort|panic|throw|raise|exit|unreachable)\b!?[^;{}\n]{0,200}",
    re.IGNORECASE,
)
# What may exchange values: control, calls, and assignments to what is there already.
_ACT = re.compile(
    rf"{CONTROL.pattern}|\+\+|--|\breturn\b(?!\s*(?:[\w.*&]{{1,80}}(?:\[\s*\w+\s*\])?)?\s*(?:[;}}\n]|\Z))"
    rf"|(?:\A|[;{{}}\n])[ \t]*((?:call\s+)?(?!return\b|\w*assert)(?:{NAME}(?:<[^<>;{{}}]{{0,99}}>)?\s*\("
    r"(?![^\n;]*[\s)]::)|(?:[\w.\[\]()>*-]{1,80}\s*,\s*){0,9}[\w.\[\]()>*-]{1,80}\s*[-+*/|&^]?=(?!=)))",
    re.IGNORECASE,
)
# An exchange written out, of the values that a call found in the wrong order.
_EXCHANGE = re.compile(
    r"\bif\s*\(\s*(\w{0,40}greater\w{0,40}\((?:\s*(?:ref|&|\*)\s*)?(\w{1,40})\s*,\s*(?:(?:ref|&|\*)\s*)?(\w{1,40})\s*\))\s*\)"
    r"\s*\{\s*(\w{1,40})\s*=\s*\2\s*;\s*\2\s*=\s*\3\s*;\s*\3\s*=\s*\4\s*;\s*\}",
    re.IGNORECASE,
)
# Wires that names end with: p0, p1.
_ENDING = re.compile(
    rf"(?<=[(,])(\s*{PASSED}(?<!\w)([A-Za-z_]{{1,40}}))([0-9]{{1,9}})(\s*,\s*{PASSED}\2)([0-9]{{1,9}})(?=\s*[,)])"
)
# A comparator without brackets; and what may stand between those whose wires a colon or a comma divides.
_PAIR = re.compile(r"([0-9]{1,9})[ \t]+([0-9]{1,9})")
_BETWEEN = {":": re.compile(r"\s*(?:,\s*)?"), ",": re.compile(r"\s*;?\s*")}
# A line's beginning that numbers the layer that it has.
_NUMBERED = re.compile(r"^[^\[({\n0-9]*([0-9]{1,9})[^\[({\n0-9=]*:[ \t]*(?=\[)", re.MULTILINE)
# Texts that have networks and are not read.
_CIRCUITS = {
    r"\A\s*<": "XML, such as SVG",
    r"\barchitecture\s+\w+\s+of\b|\bport\s+map\b": "VHDL",
    r"^\s*module\s+\w+\s*[#(]": "Verilog",
    r"\A\s*\{[0-9]+(,[0-9]+){6}\}\(\[": "a netlist of Cartesian genetic programming",
}
# Characters of a text in which it shows what it is.
_BEGINNING = 1 << 16
_BRACKET = re.compile(r"[\[({\])}]")
_SEGMENT = re.compile(r"[;{}]")
_LAST = re.compile(r"([\w:]{1,99}(?:<\s*\w+\s*>)?)\s*\Z")
_BLANK = re.compile(r"[\s,;]*")
_ENDS = re.compile(r"[ \t]*(?:[;,\])}\n]|\Z)")
# Where a statement begins; and names of what makes a list, but not of functions, before a bracket.
_BEGINS = re.compile(r"(?:\A|[;{}\[(,:\n])\s*(?:call\s+)?\Z", re.IGNORECASE)
_BEFORE = re.compile(r"(\w*)!?\s*\Z")
_WORD_ALONE = re.compile(r"\s*(?:[\w.:<>&*]|\[\s*\w*\s*\]){0,99}\s*")


@dataclass
class _Bracket:
    """A bracket that no run has inside: where it opens and closes, and the bracket around it."""

    start: int
    around: _Bracket | None
    end: int = -1


@dataclass(frozen=True)
class _Place:
    """A run in its text.

    Attributes:
        run: the run.
        inside: the bracket around it.
        after, until: where the run before it ends, and the run behind it starts.
        path: names of what is around the network, and its own name; none: it is the whole text.
        label: the line before a list, with the list's name.
        fault: why the run is no network; "": it is one.
    """

    run: Run
    inside: _Bracket | None
    after: int
    until: int
    path: tuple[str, ...] = ()
    label: str = ""
    fault: str = ""


def _parse(text: str) -> list[Listing]:
    bare = _STRING.sub(lambda match: " " * len(match[0]), without_comments(text))
    for pattern, kind in _CIRCUITS.items():
        if re.search(pattern, bare[:_BEGINNING], re.IGNORECASE | re.MULTILINE):
            raise NetworkError(f"it looks like {kind}, which is not read")
    # Each of these becomes plain lists or calls; lines keep their numbers.
    if "reater" in bare:
        bare = _EXCHANGE.sub(r"\1;", bare)
    if re.search("[A-Za-z_][0-9]{1,9}\\s*,", bare):
        bare = _ENDING.sub(r"\1[\3]\4[\5]", bare)
    begins = re.match(r"\s*[0-9]+[ \t]*([:,]?)", bare)
    if begins and not begins[1]:
        bare = _PAIR.sub(r"(\1,\2)", bare)
    if re.fullmatch(r"[\s\[\](){},]*\[[\s\[\](){},]*", bare):
        return [Listing(np.empty((0, 2), np.int64))]
    numbers = [int(match[1]) for match in _NUMBERED.finditer(bare)]
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 2:
        bare = _NUMBERED.sub("", bare)
    bare = _Text(bare)
    places, heads = _places(bare, _BETWEEN.get(begins[1]) if begins else None)
    places = [_named(bare, place, heads) for place in places]
    if not places:
        looks = ", it looks like program text" if re.search(r"[;{}]\s*$", bare, re.MULTILINE) else ""
        start = len(text) - len(text.lstrip())
        raise NetworkError(
            f"{_found(_Text(text), start)}{looks}: comparators are (0,2), [0,2], 0:2 or SWAP(p[0], p[2])"
        )
    paths = [place.path or (_line(bare, place.run.start),) for place in places]
    while len(paths) > 1 and min(map(len, paths)) > 1 and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    lines = [_line(bare, place.run.start) for place in places]
    uses = Counter(path[-1] for path in paths)
    names = [
        f"{path[-1]}, {line}" if uses[path[-1]] > 1 and place.path else path[-1]
        for path, line, place in zip(paths, lines, places, strict=True)
    ]
    uses = Counter()
    for index, name in enumerate(names):
        uses[name] += 1
        names[index] = f"{name}, {uses[name]}" if uses[name] > 1 else name
    return [_listing(bare, place, name) for place, name in zip(places, names, strict=True)]


class _Text(str):
    """A text that finds its lines once."""

    @cached_property
    def ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self)]


class _FaultError(Exception):
    """A place of the text has something that no network has there."""


def _places(text: str, between: re.Pattern[str] | None) -> tuple[list[_Place], list[re.Match[str]]]:
    """Return the runs of a text with the brackets around them, and the heads of functions."""
    places, heads = list[_Place](), list[re.Match[str]]()
    inside, place = None, 0
    for run in [*runs_of(text, between), None]:
        if run is not None and run.start < place:
            continue
        end = len(text) if run is None else run.start
        heads += _HEAD.finditer(text, place, end)
        for match in _BRACKET.finditer(text, place, end):
            if match[0] in BRACKETS:
                inside = _Bracket(match.start(), inside)
            elif inside is not None:
                if BRACKETS[text[inside.start]] == match[0]:
                    inside.end = match.start()
                inside = inside.around
        if run is not None:
            places.append(_Place(run, inside, place, len(text)))
            place = run.end
    for earlier, later in enumerate(places[1:]):
        places[earlier] = replace(places[earlier], until=later.run.start)
    return places, heads


def _named(text: _Text, place: _Place, heads: list[re.Match[str]]) -> _Place:
    """Return a run with the names of what is around it, or with the fault that makes it no network."""
    try:
        path, label, inside = _name(text, place, heads)
    except _FaultError as fault:
        ((wrong,),) = (fault.args,)
        wrong = _BLANK.match(text, wrong).end()  # type: ignore[union-attr]
        example = _example(place.run.shape)
        return replace(
            place, fault=f"{_found(text, wrong)}: expected nothing but comparators such as {example}"
        )
    return replace(place, path=path, label=label, inside=inside)


def _name(
    text: str, place: _Place, heads: list[re.Match[str]]
) -> tuple[tuple[str, ...], str, _Bracket | None]:
    run, bracket = place.run, place.inside
    start, end, passed = run.start, run.end, ""
    calls = run.shape[1] == "(" and run.shape[0] != "" and not NAMES_A_LIST.search(run.shape[0])
    if calls and not _BEGINS.search(text[max(place.after, start - REACH) : start]):
        raise _FaultError(max(place.after, text.rfind("\n", 0, start) + 1))
    while True:
        low, high = (0, len(text)) if bracket is None else (bracket.start + 1, bracket.end)
        near = _SEGMENT.split(text[max(low, start - REACH) : start])[-1]
        own = _SEGMENT.split(text[max(low, start - 2 * REACH) : start])[-1] if passed == "{" else ""
        called = _CALLED.search(own)
        if calls and called is not None:
            if CONTROL.search(own):
                raise _FaultError(start - len(own.lstrip()))
            return (*_around(text, bracket), called[1]), "", bracket
        label = None if calls and not passed else _LABEL.search(near)
        if label is not None:
            word = _BEFORE.search(near)
            if (
                passed == "("
                and word
                and word[1]
                and not (word[1][0].isupper() or NAMES_A_LIST.search(word[1]))
            ):
                raise _FaultError(start - len(near) + word.start())
            if not _ENDS.match(text, end) and not (passed == "(" and text[end] == "."):
                raise _FaultError(end)
            line = near.rstrip().rpartition("\n")[2]
            return (*_around(text, bracket), label[1]), line, bracket
        head = bisect_left(heads, start, key=lambda match: match.start()) - 1
        if calls and passed != "{" and head >= 0 and heads[head].start() >= low:
            following = heads[head + 1].start() if head + 1 < len(heads) else high
            _see_idle(text, heads[head].end(), start, place.after, place.after)
            _see_idle(text, end, min(high, following), place.until, end)
            return (*_around(text, bracket), heads[head][1]), "", bracket
        if bracket is not None and high < 0:
            raise _FaultError(low - 1)
        if calls:
            _see_idle(text, low, start, place.after, place.after)
            _see_idle(text, end, high, place.until, end)
        elif not (_WORD_ALONE if passed else _BLANK).fullmatch(text, low, start):
            raise _FaultError(low)
        elif (rest := _BLANK.match(text, end, high)) is not None and rest.end() < high:
            raise _FaultError(rest.end())
        if bracket is None:
            return (), "", None
        start, end, passed, bracket = bracket.start, high + 1, text[bracket.start], bracket.around


def _around(text: str, bracket: _Bracket | None) -> tuple[str, ...]:
    """Return the names of what is around a bracket, and of the bracket."""
    names: list[str] = []
    while bracket is not None:
        own = _SEGMENT.split(text[max(0, bracket.start - REACH) : bracket.start])[-1]
        match = _CALLED.search(own) or _LABEL.search(own) or _LAST.search(own)
        names += [] if match is None else [match[1]]
        bracket = bracket.around
    return tuple(reversed(names))


def _see_idle(text: str, start: int, end: int, other: int, between: int) -> None:
    """Raise _FaultError if a part of a function may exchange values, or if another run is in it."""
    if start < other < end:
        raise _FaultError(between)
    act = _ACT.search(_GUARD.sub(lambda match: " " * len(match[0]), text[start:end]))
    if act is not None:
        raise _FaultError(start + act.start())


def _listing(text: _Text, place: _Place, name: str) -> Listing:
    """Return the network of a run: one list, or a list for each layer."""
    run, fault, layered = place.run, place.fault, len(place.run.sizes) > 1
    twice = _with_a_wire_twice(run.comparators, run.sizes) if layered or run.flat else None
    if run.nested:
        fault = (
            fault
            or f"{_line(text, run.start)}: lists nested deeper than layers are several networks: one a file"
        )
    elif layered and twice is not None:
        fault = fault or (
            f"{_line(text, run.places[twice[0]])} touches wire {twice[1]} twice, so it is a whole network "
            "and no layer: if each list is a network, put one into a file of its own"
        )
    elif run.flat and not layered and twice is None:
        fault = (
            fault or f"{_line(text, run.start)} has every number once: if it is a layer, write (0,1),(2,3)"
        )
        run = replace(run, comparators=run.comparators[:0])
    base = 1 if run.shape[1:] == ("[", "", ":") else None
    shape, label = run.shape.name or " ".join(run.shape), re.sub("[0-9]+", "#", place.label)
    return Listing(run.comparators, run.sizes if layered else None, None, base, name, shape, label, fault)


def _with_a_wire_twice(pairs: Pairs, sizes: list[int]) -> tuple[int, int] | None:
    """Return the first list, and its wire, that has a wire in two places."""
    keys = np.sort(np.repeat(np.arange(len(sizes)), np.multiply(sizes, 2)) * 10**9 + pairs.ravel())
    again = np.flatnonzero(keys[1:] == keys[:-1])
    return divmod(int(keys[again[0]]), 10**9) if len(again) else None


def _line(text: _Text, place: int) -> str:
    return f"line {bisect_left(text.ends, place) + 1}"


def _found(text: _Text, place: int) -> str:
    return f"{_line(text, place)}: found {quoted(text[place : place + 40].partition(chr(10))[0])}"


def _example(shape: tuple[str, str, str, str]) -> str:
    """Return a comparator of a shape."""
    name, bracket, wire, divides = shape
    closer = BRACKETS.get(wire[-1:], "")
    first, second = ("1", "2") if divides == ":" else ("0", "2")
    return f"{name}{bracket}{wire}{first}{closer}{divides}{wire}{second}{closer}{BRACKETS[bracket]}"


def _writer(pair: str, between: str, index_base: int = 0, line: str = "{}\n") -> Callable[[Network], str]:
    """Return a function that writes a line a layer, with something between pairs."""

    def write(network: Network) -> str:
        layers = [(layer + index_base).tolist() for layer in network.layers()] or (
            [[]] if line[0] == "[" else []
        )
        return "".join(line.format(between.join(pair.format(*ends) for ends in layer)) for layer in layers)

    return write


# One layer per line, as the public lists of best known networks have it.
# Source: https://bertdobbelaere.github.io/sorting_networks.html
FORMAT = Format(
    suffixes=(".txt", ".layers"),
    holds_layers=True,
    parse=_parse,
    write=_writer("({},{})", ",", line="[{}]\n"),
)
# Forms of a list. Knuth's text counts from 1: The Art of Computer Programming 3, section 5.3.4.
COLONS = Format(suffixes=(".cn",), parse=_parse, write=_writer("{}:{}", ","))
KNUTH = Format(suffixes=(".knuth",), parse=_parse, write=_writer("[{}:{}]", "", index_base=1))
CODE = Format(suffixes=(".c", ".h", ".cpp", ".hpp"), parse=_parse, write=_writer("SWAP({},{});", " "))
