"""Graphviz DOT of the comparator graph: a digraph of nodes and edges with their attributes.

A small, strict reader of what such graphs need and nsc, networkx and pydot write: ``n=4;`` or
``graph [n=4]``, nodes with lo, hi and perhaps layer, edges, other attributes and defaults (passed
over) and comments. Subgraphs, ports, escapes, HTML labels and a node stated twice are refused.

Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from nsc.compiler.formats.graphs import listing_of
from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import quoted, without_comments
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError

if TYPE_CHECKING:
    import networkx

_ID = r'(?:"[^"\n]*"|-?[A-Za-z0-9_.]+(?![A-Za-z0-9_.]))'
_OPENING = re.compile(rf"\s*(?:strict\s+)?digraph\b\s*{_ID}?\s*\{{[\s;]*", re.IGNORECASE)
# A word and what follows it; an attribute; what ends a list of attributes.
_WORD = re.compile(rf"({_ID})\s*(?:(=|->|\[)\s*|[\s;,]*)")
_FACT = re.compile(rf"({_ID})\s*=\s*({_ID})[\s;,]*")
_CLOSING = re.compile(r"\][\s;,]*")
_DEFAULTS = ("node", "edge")

_Facts = dict[str, int | str]


def _recognises(text: str) -> bool:
    return _OPENING.match(text) is not None


def _parse(text: str, progress: Progress) -> Listing:
    return listing_of(_graph(without_comments(text).rstrip()))


def _graph(text: str) -> networkx.DiGraph:
    import networkx

    opening = _OPENING.match(text)
    if opening is None or not text.endswith("}"):
        raise NetworkError("a comparator graph in DOT is one digraph { … }")
    reader = _Reader(text, opening.end(), len(text) - 1)
    while (start := reader.place) < reader.end:
        if not reader.takes_statement():
            line = text.count("\n", 0, start) + 1
            excerpt = quoted(text[start : min(start + 40, reader.end)])
            raise NetworkError(
                f"line {line}: expected a new node as 0 [lo=0,hi=2], an edge as 0 -> 1 or n=4, found "
                f"{excerpt}"
            )
    graph = networkx.DiGraph()
    graph.graph.update(reader.facts)
    graph.add_nodes_from(reader.nodes.items())
    graph.add_edges_from(reader.edges)
    return graph


class _Reader:
    """Goes through a text once; its parts are matched where the reader stands, never searched for.

    Attributes:
        place, end: where it stands, and where the graph's closing bracket is.
        facts, nodes, edges: what was read: the graph's own attributes, nodes with theirs, and edges, which
            may be stated twice.
    """

    def __init__(self, text: str, place: int, end: int) -> None:
        self.text, self.place, self.end = text, place, end
        self.facts: _Facts = {}
        self.nodes: dict[str, _Facts] = {}
        self.edges: dict[tuple[str, str], None] = {}

    def takes_statement(self) -> bool:
        """Take a statement, and say whether one with a place here was there."""
        word, sign = self._word()
        name = _name(word)
        if sign == "=":
            value, more = self._word()
            self.facts[name] = _value(value)
            return value != "" and more == ""
        if sign == "->":
            return self._takes_path(name)
        facts = self._facts() if sign == "[" else {}
        if facts is None or word == "":
            return False
        if word == "graph":
            self.facts.update(facts)
        elif word not in _DEFAULTS:
            if name in self.nodes or "lo" not in facts or "hi" not in facts:
                return False
            self.nodes[name] = facts
        return True

    def _takes_path(self, name: str) -> bool:
        sign = "->"
        while sign == "->":
            word, sign = self._word()
            if word == "":
                return False
            before, name = name, _name(word)
            self.edges[before, name] = None
        return sign == "" or (sign == "[" and self._facts() is not None)

    def _word(self) -> tuple[str, str]:
        """Return a word and the sign behind it, each empty where there is none."""
        match = _WORD.match(self.text, self.place, self.end)
        if match is None:
            return "", ""
        self.place = match.end()
        return match[1], match[2] or ""

    def _facts(self) -> _Facts | None:
        """Return the attributes up to the closing bracket, None where there is something else."""
        facts: _Facts = {}
        while (match := _FACT.match(self.text, self.place, self.end)) is not None:
            facts[_name(match[1])] = _value(match[2])
            self.place = match.end()
        closing = _CLOSING.match(self.text, self.place, self.end)
        if closing is None:
            return None
        self.place = closing.end()
        return facts


def _name(word: str) -> str:
    return word[1:-1] if word[:1] == '"' else word


def _value(word: str) -> int | str:
    text = _name(word)
    return int(text) if len(text) < 10 and text.isascii() and text.isdecimal() else text


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
