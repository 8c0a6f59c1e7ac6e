"""Graphviz DOT of the comparator graph: a digraph of nodes and edges with their attributes.

A small, strict reader of what such graphs need and nsc, networkx and pydot write: ``n=4;`` or
``graph [n=4]``, nodes with lo, hi and perhaps layer, edges, other attributes and defaults (passed
over) and comments. Subgraphs, ports, escapes, HTML labels and a node stated twice are refused.

Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import itertools
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
# What a graph consists of, one at a time: name=value, a node with or without an arrow, a bracket, or
# a character that has no place.
_TOKEN = re.compile(rf"(?:{_ID}\s*(?:(=)\s*{_ID}|(->))?|([\[\]])|([\s\S]))[\s;,]*")
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
    reader = _Reader(networkx.DiGraph())
    for token in _TOKEN.finditer(text, opening.end(), len(text) - 1):
        if not reader.takes(token):
            line = text.count("\n", 0, token.start()) + 1
            found = shown(text[token.start() : token.start() + 40])
            raise NetworkError(
                f"line {line}: expected a new node as 0 [lo=0,hi=2], an edge as 0 -> 1 or n=4, found {found}"
            )
    if not reader.ends():
        raise NetworkError("the last statement has no end")
    reader.graph.add_edges_from(reader.edges)
    return reader.graph


class _Reader:
    """Builds a graph of tokens; a statement ends where the next begins."""

    def __init__(self, graph: networkx.DiGraph) -> None:
        self.graph = graph
        self.edges: list[tuple[str, str]] = []
        self.path: list[str] = []
        self.arrow = False  # whether the path goes on
        self.facts: dict[str, int | str] | None = None  # the attributes, while their bracket is open

    def takes(self, token: re.Match[str]) -> bool:
        """Take a token, and say whether it has a place here."""
        quoted, word, equals, quoted_value, value, arrow, bracket, junk = token.groups()
        name = word if quoted is None else quoted
        if equals and self.facts is not None:
            self.facts[name] = _value(value, quoted_value)
        elif equals:
            if not self.ends():
                return False
            self.graph.graph[name] = _value(value, quoted_value)
        elif bracket == "[" and self.path and not self.arrow and self.facts is None:
            self.facts = {}
        elif bracket == "]" and self.facts is not None:
            facts, self.facts = self.facts, None
            return self._add(facts)
        elif junk is not None or bracket is not None or self.facts is not None:
            return False
        else:
            if not self.arrow and not self.ends():
                return False
            self.path.append(name)
            self.arrow = arrow is not None
        return True

    def ends(self) -> bool:
        """End a statement without attributes, and say whether it may: a node needs lo and hi."""
        if self.arrow or self.facts is not None or len(self.path) == 1:
            return False
        return self._add({})

    def _add(self, facts: dict[str, int | str]) -> bool:
        if self.path == ["graph"]:
            self.graph.graph.update(facts)
        elif len(self.path) > 1:
            self.edges += itertools.pairwise(self.path)
        elif self.path and self.path[0] not in _DEFAULTS:
            if self.path[0] in self.graph or "lo" not in facts or "hi" not in facts:
                return False
            self.graph.add_nodes_from([(self.path[0], facts)])
        self.path = []
        return True


def _value(word: str | None, quoted: str) -> int | str:
    text = quoted if word is None else word
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
