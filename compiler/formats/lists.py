"""Lists of comparators, and program text that has them: one reader for all brackets, separators and names.

A comparator is a bracket with two wires, perhaps with a name before it and words beside the wires: ``(0, 2)``,
``[1:3]``, ``SWAP(p[1], p[2]);``, ``cas(v, 0, 2, less)``, ``greater(ref p0, ref p2)``. A bracket with an even
number of wires is a list without brackets around comparators. A run is comparators of one shape with only
separators and brackets between them. A network is a run that is alone in its region: in what a label names,
in a function's body, or in the whole text. In a list nothing may stand beside the run; in a body nothing that
could exchange values, such as a loop, a condition, a call or an assignment.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import NamedTuple

import numpy as np

from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted
from nsc.compiler.formats.table import without_comments
from nsc.compiler.network import Network
from nsc.errors import NetworkError

_BRACKETS = dict(zip("[({<", "])}>", strict=True))
_NAME = r"(?<![\w.>:$@])[A-Za-z_$@](?:[\w.$]|->|::){0,99}!?"
_WORD = r"[&*]?[A-Za-z_](?:[\w.*]|->|::){0,99}(?<![0-9])"
_WIRE = r"([0-9]{1,9})(?(index)\s*[\])])"
_COMPARATOR = re.compile(
    rf"(?:&?\[\s*_?\s*\]\s*)?(?:(?P<name>{_NAME})[ \t]*(?:\[\s*\]\s*){{0,2}})?(?P<bracket>(?(name)[\[({{<]|[\[({{]))\s*"
    rf"(?P<before>(?:{_WORD}\s*,\s*){{0,9}})"
    rf"(?P<wire>(?:(?:ref|mut|out|inout)\s+|[&*]\s*){{0,3}}(?:{_NAME}\s*(?P<index>[\[(])|[A-Za-z_]{{1,40}})?)\s*"
    rf"{_WIRE}(\s*,|\s*:|\s)\s*(?P=wire)\s*{_WIRE}"
    rf"((?:\s*,\s*[0-9]{{1,9}}\s*,\s*[0-9]{{1,9}})*)"
    rf"((?:\s*,\s*{_WORD}){{0,9}})\s*,?\s*([\])}}>])"
)
# Words that say when or how often something is done.
_CONTROL = re.compile(
    r"(?<!#)\b(?:if|else|elif|elsif|elseif|unless|switch|case|select|when|match|for|foreach|forall|while|do|loop|repeat|"
    r"until|goto)\b",
    re.IGNORECASE,
)
# Names of what makes a list, not of functions.
_LIST = re.compile(r"list|array|vec|seq|tuple|layer", re.IGNORECASE)
# What may stand between comparators, each space as one.
_LINK = re.compile(
    r" ?(?:[,;]? ?[\])}] ?)*[,;]? ?(?:\[ ?\] ?,? ?)*"
    r"(?:(?:&?(?:\w+!)?\[|(?:new )?[\w.:]{0,60}(?:[A-Z]|(?i:list|array|vec|seq|tuple|layer))[\w.:]{0,60}(?:<[\w:<>, ]{0,60}>)? ?\("
    r"|\(|&?(?:\[ ?\w* ?\] ?)?(?:new )?[\w.:]{0,60}(?:<[\w:<>, ]{0,60}>)? ?(?:\[ ?\w* ?\] ?)*\{) ?)*(?i:call)?"
)
# The heads of functions in languages whose functions have no brackets.
_HEAD = re.compile(
    rf"(?<!end )\b(?:def|subroutine|function|procedure|sub|fun|func|fn|proc|task)\s+({_NAME})", re.IGNORECASE
)
_CALLED = re.compile(rf"({_NAME})\s*(?:<[^<>;{{}}]{{0,99}}>\s*)?\(")
_LABEL = re.compile(
    r"(?:(?<![\w.$@%])|(?<=[$@%]))([\w.$-]{1,99}(?:\[\s*\w+\s*\]|<\w+>){0,2})[\"']?(?:\[\s*\w*\s*\]){0,3}\s*"
    r"(?::[^=;{}:]{0,99}=|:=|=>|=|:)(?![=>:])\s*((?:(?=[^\s0-9])(?:[\w.<>&*: \t]|\[\s*\w*\s*\]){1,99})?)\s*\Z"
)
_SEGMENT = re.compile(r"[;{}]")
_BLANK = re.compile(r"[\s,;\])}]*")
_ENDS = re.compile(r"[ \t]*(?:[;,\])}\n]|\Z)")
_BEGINS = re.compile(r"(?:\A|[;{}\[(,:\n])\s*(?:call\s+)?\Z", re.IGNORECASE)
_LAST = re.compile(r"([\w:]{1,99}(?:<\s*\w+\s*>)?)\s*\Z")
_GUARD = re.compile(
    r"\bif\b[^;{}]{0,200}?(?:[;{}][^;{}]{0,80}?)?\b(?:return|abort|panic|throw|raise|exit|unreachable)\b!?[^;{}\n]{0,200}",
    re.IGNORECASE,
)
# What may exchange values: control, calls, and assignments to what is there already.
_ACT = re.compile(
    rf"{_CONTROL.pattern}|\+\+|--|\breturn\b(?!\s*(?:[\w.*&]{{1,80}}(?:\[\s*\w+\s*\])?)?\s*(?:[;}}\n]|\Z))"
    rf"|(?:\A|[;{{}}\n])[ \t]*((?:call\s+)?(?!return\b|\w*assert)(?:{_NAME}(?:<[^<>;{{}}]{{0,99}}>)?\s*\("
    r"(?![^\n;]*[\s)]::)|(?:[\w.\[\]()>*-]{1,80}\s*,\s*){0,9}[\w.\[\]()>*-]{1,80}\s*[-+*/|&^]?=(?!=)))",
    re.IGNORECASE,
)
# An exchange written out, of the values that a call found in the wrong order.
_EXCHANGE = re.compile(
    r"\bif\s*\(\s*(\w{0,40}greater\w{0,40}\((?:\s*(?:ref|&|\*)\s*)?(\w{1,40})\s*,\s*(?:(?:ref|&|\*)\s*)?(\w{1,40})\s*\))\s*\)"
    r"\s*\{\s*(\w{1,40})\s*=\s*\2\s*;\s*\2\s*=\s*\3\s*;\s*\3\s*=\s*\4\s*;\s*\}",
    re.IGNORECASE,
)
# Comparators without brackets, by what divides their wires.
_BARE = {
    ":": r"([0-9]{1,9})[ \t]*:[ \t]*([0-9]{1,9})",
    ",": r"([0-9]{1,9})[ \t]*,[ \t]*([0-9]{1,9})(?![^\s;])",
    "": r"([0-9]{1,9})[ \t]+([0-9]{1,9})",
}
# A line's beginning that numbers the layer that it has.
_NUMBERED = re.compile(r"^[^\[({\n0-9]*([0-9]{1,9})[^\[({\n0-9=]*:[ \t]*(?=\[)", re.MULTILINE)
# Strings but those of one word, which may be a label.
_STRING = re.compile(r'"(?![A-Za-z_][\w.-]*")[^"\n]*"')
# Texts that have networks and are not read, by their beginnings.
_CIRCUITS = {
    r"\A\s*<": "XML, such as SVG",
    r"\barchitecture\s+\w+\s+of\b|\bport\s+map\b": "VHDL",
    r"^\s*module\s+\w+\s*[#(]": "Verilog",
    r"\A\s*\{[0-9]+(,[0-9]+){6}\}\(\[": "a netlist of Cartesian genetic programming",
}
_BEGINNING = 1 << 16
# How far before a bracket its label or its function's head may begin.
_REACH = 800


class _Shape(NamedTuple):
    """What comparators have in common: the called name, a bracket, words and names beside wires."""

    name: str
    bracket: str
    before: str
    wire: str
    divides: str
    after: str

    @property
    def calls(self) -> bool:
        return self.name != "" and self.bracket == "(" and not _LIST.search(self.name)

    def example(self) -> str:
        """Return a comparator."""
        first, second = ("1", "2") if self.divides == ":" else ("0", "2")
        closer = _BRACKETS.get(self.wire[-1:], "")
        wires = f"{self.wire}{first}{closer}{self.divides}{self.wire}{second}{closer}"
        return f"{self.name}{self.bracket}{self.before}{wires}{self.after}{_BRACKETS[self.bracket]}"


@dataclass(eq=False)
class _Bracket:
    """A bracket that is no comparator: where it opens and closes (-1: nowhere), and the bracket around it.

    The whole text is one too.
    """

    start: int
    end: int
    around: _Bracket | None


class _List(NamedTuple):
    """A list of comparators: its first wire, its place, the bracket around it, whether it has more than two wires."""

    first: int
    place: int
    inside: _Bracket
    is_flat: bool


@dataclass
class _Run:
    """Comparators of one shape with only separators and brackets between them: where, and in which lists."""

    start: int
    end: int
    shape: _Shape
    lists: list[_List]


class _Region(NamedTuple):
    """A part of a text that has one network.

    Attributes:
        start, end: of the region.
        path: names of what is around the network, and its own name; none: it is the whole text.
        label: the line before a list, with the list's name.
        is_list: whether it may have nothing but comparators.
    """

    start: int
    end: int
    path: tuple[str, ...]
    label: str
    is_list: bool


class _FaultError(Exception):
    """A place of the text has something that no network has there."""


def _parse(text: str) -> list[Listing]:
    bare = _STRING.sub(lambda match: " " * len(match[0]), without_comments(text))
    for pattern, kind in _CIRCUITS.items():
        if re.search(pattern, bare[:_BEGINNING], re.IGNORECASE | re.MULTILINE):
            raise NetworkError(f"it looks like {kind}, which is not read")
    # Each of these becomes plain lists or calls; lines keep their numbers.
    bare = _EXCHANGE.sub(r"\1;", bare)
    if begins := re.match(r"\s*[0-9]+[ \t]*([:,]?)", bare):
        bare = re.sub(_BARE[begins[1]], rf"(\1{begins[1] or ','}\2)", bare)
    if re.fullmatch(r"[\s\[\](){},]*\[[\s\[\](){},]*", bare):
        return [Listing(np.empty((0, 2), np.int64))]
    numbers = [int(match[1]) for match in _NUMBERED.finditer(bare)]
    if numbers and numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 2:
        bare = _NUMBERED.sub("", bare)
    ends = [match.start() for match in re.finditer("\n", bare)]

    def line(place: int) -> str:
        return f"line {bisect_left(ends, place) + 1}"

    def found(place: int) -> str:
        return f"{line(place)}: found {quoted(bare[place : place + 40].partition(chr(10))[0])}"

    runs, wires = _runs(bare)
    if not runs:
        looks = ", it looks like program text" if re.search(r"[;{}]\s*$", bare, re.MULTILINE) else ""
        start = len(bare) - len(bare.lstrip())
        raise NetworkError(f"{found(start)}{looks}: comparators are (0,2), [0,2], 0:2 or SWAP(p[0], p[2])")
    heads = [*_HEAD.finditer(bare)]
    paths, labels, faults = list[tuple[str, ...]](), list[str](), list[str]()
    for before, run, behind in zip([None, *runs], runs, [*runs[1:], None], strict=False):
        path, label, fault = (), "", ""
        try:
            region = _region(bare, run, heads)
            path, label = region.path, region.label
            _see_alone(bare, region, run, before.end if before else 0, behind.start if behind else len(bare))
        except _FaultError as error:
            place = _BLANK.match(bare, *error.args).end()
            fault = f"{found(place)}: expected nothing but comparators such as {run.shape.example()}"
        paths.append(path)
        labels.append(label)
        faults.append(fault)
    lines = [line(run.start) for run in runs]
    firsts = [run.lists[0].first for run in runs] + [len(wires)]
    return [
        _listing(run, np.array(wires[first:last], np.int64).reshape(-1, 2), name, label, fault, line)
        for run, first, last, name, label, fault in zip(
            runs, firsts, firsts[1:], _names(paths, lines), labels, faults, strict=False
        )
    ]


def _names(paths: list[tuple[str, ...]], lines: list[str]) -> list[str]:
    """Return names of networks, all different, from the names around them and the lines where they begin."""
    named = [path != () for path in paths]
    paths = [path or (line,) for path, line in zip(paths, lines, strict=True)]
    while len(paths) > 1 and min(map(len, paths)) > 1 and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    uses = Counter(path[-1] for path in paths)
    names = [
        f"{path[-1]}, {line}" if uses[path[-1]] > 1 and is_named else path[-1]
        for path, line, is_named in zip(paths, lines, named, strict=True)
    ]
    uses = Counter()
    for index, name in enumerate(names):
        uses[name] += 1
        names[index] = f"{name}, {uses[name]}" if uses[name] > 1 else name
    return names


def _runs(text: str) -> tuple[list[_Run], array[int]]:
    """Return the runs of a text, and the wires of all."""
    runs, wires, place = list[_Run](), array("q"), 0
    inside = whole = _Bracket(-1, len(text), None)
    shape_of, gap_of = cache(_shape), cache(_gap)
    for match in chain(_COMPARATOR.finditer(text), [re.compile(r"\Z").search(text)]):
        start, end = match.span()
        shape = more = None
        if start < end:
            *parts, lo, divides, hi, more, after, closer = match.groups()
            shape = shape_of(*parts, divides, after, closer)
            if shape is None or (more and (shape.wire or shape.divides != "," or shape.calls)):
                continue
        gap = text[place:start]
        brackets, links = gap_of(gap)
        for at, bracket in brackets:
            if bracket in _BRACKETS:
                inside = _Bracket(place + at, -1, inside)
            elif inside is not whole:
                if bracket == _BRACKETS[text[inside.start]]:
                    inside.end = place + at
                inside = inside.around
        if shape is None:
            break
        place = end
        if not runs or not links or shape != run.shape or (brackets and shape.calls and "}" in gap):
            run = _Run(start, end, shape, [])
            runs.append(run)
        if brackets or more or not run.lists or run.lists[-1].is_flat:
            run.lists.append(_List(len(wires), start, inside, more != ""))
        wires.append(int(lo))
        wires.append(int(hi))
        if more:
            wires.extend(map(int, more.replace(",", " ").split()))
        run.end = end
    return runs, wires


def _shape(
    name: str | None,
    bracket: str,
    before: str,
    wire: str,
    _index: str | None,
    divides: str,
    after: str,
    closer: str,
) -> _Shape | None:
    """Return the shape of a bracket with wires; None: it has no comparators."""
    name = name or ""
    is_index = bracket == "[" and name != "" and not name.endswith("!")
    if _BRACKETS[bracket] != closer or is_index or _CONTROL.fullmatch(name):
        return None
    divides = divides.strip() or " "
    return _Shape(
        name, bracket, "".join(before.split()), " ".join(wire.split()), divides, "".join(after.split())
    )


def _gap(text: str) -> tuple[list[tuple[int, str]], bool]:
    """Return the brackets of a gap between comparators, and whether it links them."""
    brackets = [(match.start(), match[0]) for match in re.finditer(r"[\[({\])}]", text)]
    opened = sum(bracket in _BRACKETS for _, bracket in brackets)
    return brackets, 2 * opened == len(brackets) and _links(text)


def _links(text: str) -> bool:
    """Say whether a text has only separators and brackets, and names of lists."""
    return (
        len(text) < _REACH
        and _CONTROL.search(text) is None
        and _LINK.fullmatch(" ".join(text.split())) is not None
    )


def _region(text: str, run: _Run, heads: list[re.Match[str]]) -> _Region:
    """Return the region of a run."""
    start, end, inside, calls = run.start, run.end, run.lists[0].inside, run.shape.calls
    within = False  # whether the place that is looked at is a bracket around the run
    while True:
        head = _SEGMENT.split(text[max(inside.start + 1, start - _REACH) : start])[-1]
        if calls and text[start] == "{" and (called := _CALLED.search(head)):
            if _CONTROL.search(head):
                raise _FaultError(start - len(head.lstrip()))
            return _Region(start + 1, end - 1, (*_around(text, inside), called[1]), "", is_list=False)
        if (within or not calls) and (label := _LABEL.search(head)):
            if not _ENDS.match(text, end) and not (text[start] == "(" and text[end] == "."):
                raise _FaultError(end)
            path, line = (*_around(text, inside), label[1]), head.rstrip().rpartition("\n")[2]
            return _Region(start - len(head) + label.start(2), end, path, line, is_list=True)
        at = bisect_left(heads, start, key=lambda match: match.start())
        if calls and at and heads[at - 1].start() > inside.start:
            end = min(inside.end, heads[at].start()) if at < len(heads) else inside.end
            path = (*_around(text, inside), heads[at - 1][1])
            return _Region(heads[at - 1].end(), end, path, "", is_list=False)
        if inside.end < 0:
            raise _FaultError(inside.start)
        if inside.around is None:
            return _Region(0, len(text), (), "", is_list=not calls)
        start, end, inside, within = inside.start, inside.end + 1, inside.around, True


def _around(text: str, bracket: _Bracket) -> tuple[str, ...]:
    """Return the names of what is around a bracket, and of the bracket."""
    if bracket.around is None:
        return ()
    own = _SEGMENT.split(text[max(0, bracket.start - _REACH) : bracket.start])[-1]
    match = _CALLED.search(own) or _LABEL.search(own) or _LAST.search(own)
    return (*_around(text, bracket.around), *([] if match is None else [match[1]]))


def _see_alone(text: str, region: _Region, run: _Run, before: int, behind: int) -> None:
    """Raise _FaultError if a region has more than a run, which may exchange values.

    Args:
        before, behind: end of the run before, and start of the run behind.
    """
    head, tail = text[region.start : run.start], text[run.end : region.end]
    if run.end > region.end or behind < region.end:
        raise _FaultError(min(run.end, region.end))
    if before > region.start:
        raise _FaultError(before)
    if region.is_list:
        depth = sum(map((head + tail).count, "[({")) - sum(map((head + tail).count, "])}"))
        if not _links(head):
            raise _FaultError(region.start)
        if not _links(tail) or depth:
            raise _FaultError(run.end)
        return
    for part, place in ((head, region.start), (tail, run.end)):
        act = _ACT.search(_GUARD.sub(lambda match: " " * len(match[0]), part))
        if act is not None:
            raise _FaultError(place + act.start())
    if not _BEGINS.search(head[-_REACH:]):
        raise _FaultError(text.rfind("\n", region.start, run.start) + 1 or region.start)
    if not _ENDS.match(tail):
        raise _FaultError(run.end)


def _listing(
    run: _Run, pairs: Pairs, name: str, label: str, fault: str, line: Callable[[int], str]
) -> Listing:
    """Return the network of a run: one list, or a list for each layer."""
    is_flat = any(part.is_flat for part in run.lists)
    sizes = list[int]()
    starts = [part.first // 2 for part in run.lists]
    for part, first, last in zip(run.lists, starts, [*starts[1:], starts[0] + len(pairs)], strict=True):
        sizes += [1] * (last - first) if is_flat and not part.is_flat else [last - first]
    is_layered = len(sizes) > 1
    twice = _with_a_wire_twice(pairs, sizes) if is_layered or is_flat else None
    brackets = [part.inside if is_flat else part.inside.around for part in run.lists]
    if any(bracket is not brackets[0] for bracket in brackets):
        fault = (
            fault or f"{line(run.start)}: lists nested deeper than layers are several networks: one a file"
        )
    elif is_layered and twice is not None:
        place = run.lists[min(twice[0], len(run.lists) - 1)].place
        fault = fault or (
            f"{line(place)} touches wire {twice[1]} twice, so it is a whole network "
            "and no layer: if each list is a network, put one into a file of its own"
        )
    elif is_flat and not is_layered and twice is None:
        fault = fault or f"{line(run.start)} has every number once: if it is a layer, write (0,1),(2,3)"
        pairs = pairs[:0]
    shape = run.shape
    base = 1 if (shape.bracket, shape.wire, shape.divides) == ("[", "", ":") else None
    label = re.sub("[0-9]+", "#", label)
    return Listing(
        pairs, sizes if is_layered else None, None, base, name, shape.name or " ".join(shape), label, fault
    )


def _with_a_wire_twice(pairs: Pairs, sizes: list[int]) -> tuple[int, int] | None:
    """Return the first list, and its wire, that has a wire in two places."""
    keys = np.sort(np.repeat(np.arange(len(sizes)), np.multiply(sizes, 2)) * 10**9 + pairs.ravel())
    again = np.flatnonzero(keys[1:] == keys[:-1])
    return divmod(int(keys[again[0]]), 10**9) if len(again) else None


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
