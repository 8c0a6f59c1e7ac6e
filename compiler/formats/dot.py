"""Graphviz DOT of the comparator graph: a digraph of nodes and edges with their attributes.

A small, strict reader of what such graphs need and nsc, networkx and pydot write: ``n=4;`` or
``graph [n=4]``, nodes with lo, hi and perhaps layer, edges, other attributes and defaults (passed
over) and comments. Subgraphs, ports, escapes and HTML labels are refused.

Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsc.compiler.formats.graphs import listing_of
from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import shown, without_comments
from nsc.compiler.network import Network
from nsc.errors import NetworkError

if TYPE_CHECKING:
    import networkx

_ID = r'(?:"([^"\n]*)"|(-?[A-Za-z0-9_.]+))'
_OPENING = re.compile(rf"\s*(?:strict\s+)?digraph\b\s*{_ID}?\s*\{{[\s;]*", re.IGNORECASE)
_ASSIGNMENT = re.compile(rf"{_ID}\s*=\s*{_ID}[\s;,]*")
_STEP = re.compile(rf"{_ID}\s*(->\s*)?")
_ATTRIBUTES = re.compile(r"\[[\s;,]*")
_END = re.compile(r"[\s;]*")
_DEFAULTS = ("node", "edge")


def _recognises(text: str) -> bool:
    return _OPENING.match(text) is not None


def _parse(text: str) -> Listing:
    return listing_of(_graph(without_comments(text).rstrip()))


def _graph(text: str) -> networkx.DiGraph:
    import networkx

    opening = _OPENING.match(text)
    if opening is None or not text.endswith("}"):
        raise NetworkError("a comparator graph in DOT is one digraph { … }")
    graph = networkx.DiGraph()
    at, end = opening.end(), len(text) - 1
    while at < end:
        assignment = _ASSIGNMENT.match(text, at, end)
        if assignment is not None:
            graph.graph[_word(assignment, 1)] = _value(assignment, 3)
            at = assignment.end()
            continue
        path, after = _path(text, at, end)
        facts, after = _attributes(text, after, end)
        if path == ["graph"]:
            graph.graph.update(facts)
        elif len(path) > 1:
            networkx.add_path(graph, path)
        elif facts and path[0] not in _DEFAULTS:
            graph.add_node(path[0])
            graph.nodes[path[0]].update(facts)
        elif path[0] not in _DEFAULTS:
            raise _unexpected(text, at, "a node's attributes, as in 0 [lo=0,hi=2]")
        at = _after(_END, text, after, end)
    return graph


def _path(text: str, at: int, end: int) -> tuple[list[str], int]:
    """Return the nodes of ``a -> b -> c`` or of ``a`` alone, and where the text goes on."""
    path = []
    while True:
        step = _STEP.match(text, at, end)
        if step is None:
            raise _unexpected(text, at, "a node, an edge or an attribute")
        path.append(_word(step, 1))
        at = step.end()
        if step[3] is None:
            return path, at


def _attributes(text: str, at: int, end: int) -> tuple[dict[str, int | str], int]:
    """Return what stands in brackets at a place, if anything, and where the text goes on."""
    facts: dict[str, int | str] = {}
    opening = _ATTRIBUTES.match(text, at, end)
    if opening is None:
        return facts, at
    at = opening.end()
    while not text.startswith("]", at, end):
        assignment = _ASSIGNMENT.match(text, at, end)
        if assignment is None:
            raise _unexpected(text, at, "an attribute, as lo=0, or ]")
        facts[_word(assignment, 1)] = _value(assignment, 3)
        at = assignment.end()
    return facts, at + 1


def _after(pattern: re.Pattern[str], text: str, at: int, end: int) -> int:
    match = pattern.match(text, at, end)
    return at if match is None else match.end()


def _word(match: re.Match[str], group: int) -> str:
    return match[group] if match[group] is not None else match[group + 1]


def _value(match: re.Match[str], group: int) -> int | str:
    word = _word(match, group)
    return int(word) if re.fullmatch("[0-9]{1,9}", word) else word


def _unexpected(text: str, at: int, expected: str) -> NetworkError:
    line = text.count("\n", 0, at) + 1
    return NetworkError(f"line {line}: expected {expected}, found {shown(text[at : at + 40])}")


def _write(network: Network) -> str:
    graph = network.to_graph()
    lines = ["digraph network {", f" n={network.n}; rankdir=LR;"]
    for node, facts in graph.nodes(data=True):
        lo, hi = facts["lo"], facts["hi"]
        lines.append(f' {node} [lo={lo},hi={hi},layer={facts["layer"]},label="{lo}:{hi}"];')
    for before, after, wires in graph.edges(data="wires"):
        lines.append(f' {before} -> {after} [wires="{" ".join(map(str, wires))}"];')
    return "\n".join([*lines, "}"]) + "\n"


FORMAT = Format(
    example="digraph {n=4; a [lo=0,hi=2]; b [lo=1,hi=3]; c [lo=0,hi=1]; d [lo=2,hi=3]; e [lo=1,hi=2]; "
    "a -> c -> e; a -> d -> e; b -> c; b -> d}",
    suffixes=(".dot", ".gv"),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
