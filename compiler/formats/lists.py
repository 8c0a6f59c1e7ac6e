"""Lists of comparators, and program text that has them: one reader for all brackets, separators and names.

A comparator is a bracket with two wires, perhaps with a name before it and words beside the wires:
``(0, 2)``, ``[1:3]``, ``SWAP(p[0], p[2]);``, ``cas(v, 0, 2, less)``, ``greater(ref p0, ref p2)``. A bracket
with more wires is a list without brackets around comparators. A run is comparators of one shape with only
separators and brackets between them. A network is a run that is alone in its region: what a label names, a
function's body, or the whole text. In a list nothing may stand beside the run; in a body nothing that could
exchange values, such as a loop, a condition, a call or an assignment.
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

from nsc.compiler.formats.comments import without_comments
from nsc.compiler.formats.listing import Format, Listing, Pairs, quoted
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

_BRACKETS = dict(zip("[({<", "])}>", strict=True))
_NAME = r"(?<![\w.>:$@])[A-Za-z_$@](?:[\w.$]|->|::){0,99}!?"
_WORD = r"[&*]?[A-Za-z_](?:[\w.*]|->|::){0,99}(?<![0-9])"
_WIRE = r"([0-9]{1,9})(?(index)\s*[\])])"
_COMPARATOR = re.compile(
    # A type or a name, and a bracket: SWAP(, &[_]usize{, integer_sequence<; words.
    rf"(?:&?\[\s*\w*\s*\]\s*)?(?:(?P<name>{_NAME})[ \t]*(?:\[\s*\]\s*){{0,2}})?((?(name)[\[({{<]|[\[({{]))\s*"
    rf"((?:{_WORD}\s*,\s*){{0,9}})"
    # What is before the number of each wire: data[, ref p. Then the wires, and words again.
    rf"(?P<wire>(?:(?:ref|mut|out|inout)\s+|[&*]\s*){{0,3}}(?:{_NAME}\s*(?P<index>[\[(])|[A-Za-z_]{{1,40}})?)\s*"
    rf"{_WIRE}(\s*,|\s*:|\s)\s*(?P=wire)\s*{_WIRE}((?:\s*,\s*[0-9]{{1,9}}\s*,\s*[0-9]{{1,9}})*)"
    rf"((?:\s*,\s*{_WORD}){{0,9}})\s*,?\s*([\])}}>])"
)
# Words that say when or how often something is done.
_CONTROL = re.compile(
    r"(?i)(?<!#)\b(?:if|else|elif|elsif|elseif|unless|switch|case|select|when|match|for|foreach|forall|while|do|"
    r"loop|repeat|until|goto)\b"
)
# Parts of names that make lists, where other names call functions.
_LIST = r"(?i:list|array|vec|seq|tuple|layer)"
# What may stand between comparators: separators, closing brackets, and opening ones with types before them.
_LINK = re.compile(
    rf"[,;\])}}]*(?:\[\],?|&?(?:\w{{1,60}}!)?\[|(?:(?:new )?(?:[A-Z]\w{{0,60}}|\w{{0,60}}{_LIST}\w{{0,60}}))?"
    r"\(|&?(?:\[\w*\])?(?:new )?(?:\w|::|\.){0,60}(?:<[\w:<>,]{0,60}>)?(?:\[\w*\])*\{)*(?i:call)?"
)
# The heads of functions: of those without brackets, and of those with a body in braces.
_HEAD = re.compile(
    rf"(?i)(?<!end )\b(?:def|subroutine|function|procedure|sub|fun|func|fn|proc|task)\s+({_NAME})"
)
_CALLED = re.compile(rf"({_NAME})\s*(?:<[^<>;{{}}]{{0,99}}>\s*)?\(")
# What names a list, and its type: "int s[9] =", "ops: []Swap", "9 => Net"; the last word of other heads.
_LABEL = re.compile(
    r"(?:(?<![\w.$@%])|(?<=[$@%]))([\w.$-]{1,99}(?:\[\s*\w+\s*\]|<\w+>){0,2})[\"']?(?:\[\s*\w*\s*\]){0,3}\s*"
    r"(?::[^=;{}:]{0,99}=|:=|=>|=|:)(?![=>:])\s*((?:(?=[^\s0-9])(?:[\w.<>&*: \t]|\[\s*\w*\s*\]){1,99})?)\s*\Z"
)
_LAST = re.compile(r"([\w:]{1,99}(?:<\s*\w+\s*>)?)\s*\Z")
# What stands before the first comparator of a body; behind the last one of a list, and of either.
_BEGINS = re.compile(r"(?i)(?:\A|[;{}\[(,:\n])\s*(?:call\s+)?\Z")
_TAIL = re.compile(r"[\s,;\])}]*(?:\[\s*\][\s,;\])}]*)*")
_ENDS = re.compile(r"[ \t]*(?:[;,\])}\n]|\Z)")
# A condition under which nothing is sorted, without another one inside.
_GUARD = re.compile(
    r"(?i)\bif\b(?:[^i;{}]|i(?!f\b)){0,200}?(?:[;{}](?:[^i;{}]|i(?!f\b)){0,80}?)?"
    r"\b(?:return|abort|panic|throw|raise|exit|unreachable)\b!?[^;{}\n]{0,200}"
)
# What may exchange values: control, calls, and assignments to what is there already.
_ACT = re.compile(
    rf"{_CONTROL.pattern}|\+\+|--|\breturn\b(?!\s*(?:[\w.*&]{{1,80}}(?:\[\s*\w+\s*\])?)?\s*(?:[;}}\n]|\Z))"
    rf"|(?:\A|[;{{}}\n])[ \t]*((?:call\s+)?(?!return\b|\w*assert)(?:{_NAME}(?:<[^<>;{{}}]{{0,99}}>)?\s*\("
    r"(?![^\n;]*[\s)]::)|(?:[\w.\[\]()>*-]{1,80}\s*,\s*){0,9}[\w.\[\]()>*-]{1,80}\s*[-+*/|&^]?=(?!=)))"
)
# An exchange written out, of the values that a call found in the wrong order.
_VALUE = r"\s*(?:(?:ref\s|&|\*)\s*)?(\w{1,40})\s*"
_EXCHANGE = re.compile(
    rf"(?i)\bif\s*\(\s*(\w{{0,40}}greater\w{{0,40}}\({_VALUE},{_VALUE}\))\s*\)"
    r"\s*\{\s*(\w{1,40})\s*=\s*\2\s*;\s*\2\s*=\s*\3\s*;\s*\3\s*=\s*\4\s*;\s*\}"
)
# A line's beginning that numbers the layer that it has.
_NUMBERED = re.compile(r"(?m)^[^\[({\n0-9]*([0-9]{1,9})[^\[({\n0-9=]*:[ \t]*(?=\[)")
# Strings but those of one word, which may be a label.
_STRING = re.compile(r'"(?![A-Za-z_][\w.-]*")[^"\n]*"')
# Texts that have networks and are not read, by what their beginnings have.
_CIRCUITS = {
    r"\A\s*<": "XML, such as SVG or GraphML",
    r"\A\s*(?:strict\s+)?digraph\b": "a graph in DOT",
    r"\barchitecture\s+\w+\s+of\b|\bport\s+map\b": "VHDL",
    r"^\s*module\s+\w+\s*[#(]": "Verilog",
    r"\A\s*\{[0-9]+(,[0-9]+){6}\}\(\[": "a netlist of Cartesian genetic programming",
}
_BEGINNING = 1 << 16
# Characters before a bracket in which its label or its function's head begins; those of a link.
_REACH = 800


@dataclass(eq=False)
class _Bracket:
    """A bracket of no comparator, or the whole text: its place, its end (-1: none), the bracket around it."""

    start: int
    end: int
    around: _Bracket | None


class _List(NamedTuple):
    """Comparators in one bracket: the first wire's index, a place, the bracket, whether it has no other."""

    first: int
    place: int
    inside: _Bracket
    is_flat: bool


@dataclass
class _Run:
    """Comparators of one shape with only separators and brackets between them.

    Attributes:
        shape: of the comparators, "#" in the place of wires.
        called: the name that they call; "": they are no calls.
        start, end: of the run in the text.
        path: names of what is around the network, and its own.
        label: the line before a list, with the list's name.
        fault: why the run is no network; "": it is one.
    """

    shape: str
    called: str
    start: int
    end: int
    wires: array[int]
    lists: list[_List]
    path: tuple[str, ...] = ()
    label: str = ""
    fault: str = ""


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
        divides, follows = begins[1] or "[ \t]", "" if begins[1] == "," else ","
        pair = rf"([0-9]{{1,9}})[ \t]*{divides}[ \t]*([0-9]{{1,9}})(?![^\s;{follows}])"
        if re.fullmatch(r"(?:\s*\b[0-9]{1,9}\b){4,}", bare):
            n, size, *wires = map(int, bare.split())
            if len(wires) == 2 * size and min(wires) > 0 and max(wires) <= n:
                many = count(size, "comparator")
                raise NetworkError(f"a table of {many} from 1 is not read: write them as (0,2)")
        bare = re.sub(pair, rf"(\1{begins[1] or ','}\2)", bare)
    if re.fullmatch(r"[\s\[\](){},]*\[[\s\[\](){},]*", bare):
        return [Listing(np.empty((0, 2), np.int64))]
    numbers = [int(match[1]) for match in _NUMBERED.finditer(bare)]
    if numbers in ([*range(len(numbers))], [*range(1, len(numbers) + 1)]):
        bare = _NUMBERED.sub("", bare)
    ends = [match.start() for match in re.finditer("\n", bare)]

    def line(place: int) -> str:
        return f"line {bisect_left(ends, place) + 1}"

    def found(place: int) -> str:
        rest = bare[place : place + _REACH]
        place += len(rest) - len(rest.lstrip(" \t\n,;)]}"))
        return f"{line(place)}: found {quoted(bare[place : place + 40].partition(chr(10))[0])}"

    runs, heads = _runs(bare), [*_HEAD.finditer(bare)]
    if not runs:
        looks = ", it looks like program text" if re.search(r"[;{}]\s*$", bare, re.MULTILINE) else ""
        raise NetworkError(f"{found(0)}{looks}: comparators are (0,2), [0,2], 0:2 or SWAP(p[0], p[2])")
    edges = [0, *(place for run in runs for place in (run.start, run.end)), len(bare)]
    for run, before, behind in zip(runs, edges[::2], edges[3::2], strict=False):
        try:
            _see_alone(bare, run, _region(bare, run, heads), before, behind)
        except _FaultError as error:
            example = run.shape.replace("#", "1", 1).replace("#", "2", 1)
            run.fault = f"{found(*error.args)}: expected nothing but comparators such as {example}"
    if begins and len(runs) > 1:  # comparators without brackets are a whole text
        raise NetworkError(runs[0].fault)
    lines = [line(run.start) for run in runs]
    return [_listing(run, name, line) for run, name in zip(runs, _names(runs, lines), strict=True)]


def _runs(text: str) -> list[_Run]:
    """Return the runs of a text."""
    runs, place, inside = list[_Run](), 0, _Bracket(-1, len(text), None)
    shape_of, gap_of = cache(_shape), cache(_gap)
    for match in chain(_COMPARATOR.finditer(text), [None]):
        start = end = len(text)
        if match is not None:
            name, bracket, before, wire, _, lo, divides, hi, more, after, closer = match.groups()
            shape, called = shape_of(name or "", bracket, before, wire, divides, after, closer)
            if not shape or (more and (called or wire or ":" in divides)):
                continue
            start, end = match.span()
        gap = text[place:start]
        brackets, links = gap_of(gap)
        for at, bracket in brackets:
            if bracket in _BRACKETS:
                inside = _Bracket(place + at, -1, inside)
            elif inside.around is not None:
                if bracket == _BRACKETS[text[inside.start]]:
                    inside.end = place + at
                inside = inside.around
        if match is None:
            break
        if not runs or not links or shape != runs[-1].shape or (called and "}" in gap):
            runs.append(_Run(shape, called, start, end, array("q"), []))
        run = runs[-1]
        if brackets or more or not run.lists or run.lists[-1].is_flat:
            run.lists.append(_List(len(run.wires), start, inside, more != ""))
        run.wires.append(int(lo))
        run.wires.append(int(hi))
        if more:
            run.wires.extend(map(int, more.replace(",", " ").split()))
        place = run.end = end
    return runs


def _shape(
    name: str, bracket: str, before: str, wire: str, divides: str, after: str, closer: str
) -> tuple[str, str]:
    """Return the shape of a bracket with wires, and what it calls; "" if it has no comparators."""
    is_index = bracket == "[" and name != "" and not name.endswith("!")
    if is_index or _BRACKETS[bracket] != closer or _CONTROL.fullmatch(name):
        return "", ""
    wire = f"{' '.join(wire.split())}#{_BRACKETS.get(wire.rstrip()[-1:], '')}"
    before, after = "".join(before.split()), "".join(after.split())
    called = name if bracket == "(" and not re.search(_LIST, name) else ""
    return f"{name}{bracket}{before}{wire}{divides.strip() or ' '}{wire}{after}{closer}", called


def _gap(text: str) -> tuple[list[tuple[int, str]], bool]:
    """Return the brackets of a text between comparators, and whether it links them."""
    return [(match.start(), match[0]) for match in re.finditer(r"[\[({\])}]", text)], _links(text) == 0


def _links(text: str) -> int | None:
    """Return how many brackets a text of separators and brackets leaves open; None: it has more."""
    bare = re.sub(r"\s*([^\w\s])\s*", r"\1", text.strip()) if len(text) < _REACH else ",,"
    if ",," in bare or not _LINK.fullmatch(bare) or _CONTROL.search(bare):
        return None
    return sum(map(bare.count, "[({")) - sum(map(bare.count, "])}"))


def _region(text: str, run: _Run, heads: list[re.Match[str]]) -> tuple[int, int, bool]:
    """Return where the region of a run starts and ends, and whether it is a body; give the run its names."""
    start, end, inside, within = run.start, run.end, run.lists[0].inside, False
    is_body = run.called != ""  # until a bracket of a list is around
    while True:
        head = _head(text, inside.start + 1, start)
        at = bisect_left(heads, start, key=lambda match: match.start())
        if is_body and text[start] == "{" and (function := _CALLED.search(head)):
            if _CONTROL.search(head):
                raise _FaultError(start - len(head.lstrip()))
            run.path = (*_around(text, inside), function[1])
            return start + 1, end - 1, True
        if (within or not run.called) and (label := _LABEL.search(head)):
            line = head.rstrip().rpartition("\n")[2]
            if _CONTROL.search(line):
                raise _FaultError(start - len(head) + head.rindex(line))
            if not _ENDS.match(text, end) and not (text[start] == "(" and text[end] == "."):
                raise _FaultError(end)
            run.path = (*_around(text, inside), label[1])
            run.label = re.sub("[0-9]+", "#", line)
            return start - len(head) + label.start(2), end, False
        if is_body and at and heads[at - 1].start() > inside.start:
            run.path = (*_around(text, inside), heads[at - 1][1])
            following = [match.start() for match in heads[at : at + 1]]
            return heads[at - 1].end(), min([inside.end, *following]), True
        if inside.around is None:
            return 0, len(text), is_body
        if inside.end < 0:
            raise _FaultError(inside.start)
        start, end, inside, within = inside.start, inside.end + 1, inside.around, True
        is_body = is_body and text[start] == "{"


def _around(text: str, bracket: _Bracket) -> tuple[str, ...]:
    """Return the names of what is around a bracket, and of the bracket."""
    names: list[str] = []
    while bracket.around is not None:
        head = _head(text, 0, bracket.start)
        match = _CALLED.search(head) or _LABEL.search(head) or _LAST.search(head)
        names += [] if match is None else [match[1]]
        bracket = bracket.around
    return tuple(reversed(names))


def _head(text: str, start: int, end: int) -> str:
    """Return the statement before a place, as far as it reaches."""
    return re.split("[;{}]", text[max(start, end - _REACH) : end])[-1]


def _see_alone(text: str, run: _Run, region: tuple[int, int, bool], before: int, behind: int) -> None:
    """Raise _FaultError if something in a region may exchange values, as may the runs before and behind."""
    low, high, is_body = region
    start, end = max(before, low), min(behind, high)
    head, tail = text[start : run.start], text[run.end : end]
    if is_body:
        if not _BEGINS.search(head[-_REACH:]):
            raise _FaultError(max(start, text.rfind("\n", 0, run.start) + 1))
        for part, place in ((head, start), (tail, run.end)):
            if act := _ACT.search(_GUARD.sub(lambda match: " " * len(match[0]), part)):
                raise _FaultError(place + act.start())
    else:
        opened = _links(head)
        if opened is None or re.match(r"[\s,;]*[\])}]", head):
            raise _FaultError(start)
        closed = sum(map(tail.count, "])}")) - tail.count("[")
        if not _TAIL.fullmatch(tail) or (end == high and opened != closed):
            raise _FaultError(run.end)
    if start > low:
        raise _FaultError(start)
    if end < max(high, run.end) or not _ENDS.match(text, run.end):
        raise _FaultError(min(high, run.end))


def _names(runs: list[_Run], lines: list[str]) -> list[str]:
    """Return different names of networks, from the names around them and the lines where they begin."""
    paths = [run.path or (line,) for run, line in zip(runs, lines, strict=True)]
    while len(paths) > 1 and min(map(len, paths)) > 1 and len({path[-1] for path in paths}) == 1:
        paths = [path[:-1] for path in paths]
    uses, same, names = Counter(path[-1] for path in paths), Counter[str](), list[str]()
    for path, run, line in zip(paths, runs, lines, strict=True):
        name = f"{path[-1]}, {line}" if run.path and uses[path[-1]] > 1 else path[-1]
        same[name] += 1
        names.append(f"{name}, {same[name]}" if same[name] > 1 else name)
    return names


def _listing(run: _Run, name: str, line: Callable[[int], str]) -> Listing:
    """Return the network of a run: one list, or a list for each layer."""
    pairs, fault = np.array(run.wires, np.int64).reshape(-1, 2), run.fault
    is_flat = any(part.is_flat for part in run.lists)
    sizes, ends = list[int](), [*(part.first for part in run.lists[1:]), pairs.size]
    for part, end in zip(run.lists, ends, strict=True):
        size = (end - part.first) // 2
        sizes += [1] * size if is_flat and not part.is_flat else [size]
    is_layered = len(sizes) > 1
    twice = _with_a_wire_twice(pairs, sizes) if is_layered or is_flat else None
    if len({part.inside if is_flat else part.inside.around for part in run.lists}) > 1:
        fault = (
            fault or f"{line(run.start)}: lists nested deeper than layers are several networks: one a file"
        )
    elif is_layered and twice is not None:
        place = run.lists[min(twice[0], len(run.lists) - 1)].place
        fault = fault or (
            f"{line(place)} touches wire {twice[1]} twice, so it is a whole network and no layer: if each "
            "list is a network, put one into a file of its own"
        )
    elif is_flat and not is_layered and twice is None:
        fault = fault or f"{line(run.start)} has every number once: if it is a layer, write (0,1),(2,3)"
        pairs = pairs[:0]
    base = 1 if run.shape == "[#:#]" else None
    shape = run.called or run.shape
    return Listing(pairs, sizes if is_layered else None, None, base, name, shape, run.label, fault)


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
