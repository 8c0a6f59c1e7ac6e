"""Comparator graphs: networkx's, and Graphviz DOT and GraphML files of them.

The DOT reader is small and strict. It takes what such graphs need and nsc, networkx and pydot write:
``n=4;`` or ``graph [n=4]``, nodes with lo, hi and perhaps layer, edges, other attributes and defaults (passed
over) and comments. Subgraphs, ports, escapes, HTML labels and a node stated twice are refused.

Source: https://graphviz.org/doc/info/lang.html
"""

from __future__ import annotations

import itertools
import re
import warnings
from typing import TYPE_CHECKING

import numpy as np

from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import quoted, without_comments
from nsc.compiler.network import MAX_WIRES, Network, check_wires
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

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_GRAPH = re.compile(r"<(?:[^\s<>/:]{1,40}:)?graph[\s/>]")

_Facts = dict[str, int | str]


def graph_of(network: Network) -> networkx.DiGraph:
    """Return the graph that `Network.to_graph` describes."""
    import networkx

    graph = networkx.DiGraph(n=network.n)
    last: dict[int, int] = {}
    layers = np.repeat(np.arange(network.depth), np.diff(network.layer_starts)).tolist()
    for node, ((lo, hi), layer) in enumerate(zip(network.comparators.tolist(), layers, strict=True)):
        graph.add_node(node, lo=lo, hi=hi, layer=layer)
        for wire in (lo, hi):
            if wire in last:
                before = last[wire]
                wires = graph.edges[before, node]["wires"] if graph.has_edge(before, node) else ()
                graph.add_edge(before, node, wires=(*wires, wire))
            last[wire] = node
    return graph


def network_of_graph(graph: networkx.DiGraph) -> Network:
    """Return the network of a graph that `Network.from_graph` describes."""
    import networkx

    if "n" not in graph.graph:
        raise NetworkError("a comparator graph needs its number of wires as graph.graph['n']")
    n = check_wires(graph.graph["n"])
    if not graph.is_directed():
        raise NetworkError("a comparator graph must be directed: use a networkx.DiGraph")
    try:
        nodes = list(networkx.topological_sort(graph))
        pairs = [(graph.nodes[node]["lo"], graph.nodes[node]["hi"]) for node in nodes]
    except networkx.NetworkXUnfeasible:
        raise NetworkError("a comparator graph must have no cycle, but this one has one") from None
    except KeyError as missing:
        raise NetworkError(f"every node of a comparator graph needs {missing}") from None
    network = Network.from_comparators(n, pairs)
    last: dict[int, object] = {}
    for node, pair in zip(nodes, pairs, strict=True):
        for wire in pair:
            if wire in last and not graph.has_edge(last[wire], node):
                raise NetworkError(
                    f"comparators {last[wire]!r} and {node!r} both touch wire {wire} and no "
                    "edge joins them: the graph must have an edge per wire segment"
                )
            last[wire] = node
    return network


def _listing(graph: networkx.DiGraph) -> Listing:
    """Return what a comparator graph says: its layers where every node has one, else a flat list.

    Args:
        graph: as `Network.from_graph` takes it; the graph attribute ``n`` may be missing.

    Raises:
        NetworkError: an attribute that is missing or no integer, a graph that `Network.from_graph`
            refuses, or layers that the edges contradict.
    """
    for node, facts in graph.nodes(data=True):
        for key in ("lo", "hi"):
            if type(facts.get(key)) is not int or not 0 <= facts[key] < MAX_WIRES:
                fault = f"found {quoted(str(facts[key])[:60])}" if key in facts else "it is missing"
                raise NetworkError(f"node {quoted(str(node)[:60])}: {key} must be a wire's number; {fault}")
    n = graph.graph.get("n")
    if n is None:  # the user may state it; the highest wire will do for the edges
        ends = [facts[key] for _, facts in graph.nodes(data=True) for key in ("lo", "hi")]
        graph.graph["n"] = max(ends, default=0) + 1
    network = network_of_graph(graph)
    layers = [facts.get("layer") for _, facts in graph.nodes(data=True)]
    if not layers or any(type(layer) is not int or abs(layer) >> 62 for layer in layers):
        return Listing(network.comparators.astype(np.int64), n=n, index_base=0)
    for before, after in graph.edges:
        if graph.nodes[before]["layer"] >= graph.nodes[after]["layer"]:
            raise NetworkError(
                f"the edge {quoted(str(before)[:40])} -> {quoted(str(after)[:40])} leads to no later layer: "
                "correct the layers or leave them out"
            )
    rows = [(facts["layer"], facts["lo"], facts["hi"]) for _, facts in graph.nodes(data=True)]
    return Listing.of_rows(np.array(rows, np.int64), n, index_base=0)


def _recognises_dot(text: str) -> bool:
    return _OPENING.match(text) is not None


def _parse_dot(text: str, progress: Progress) -> Listing:
    text = without_comments(text).rstrip()
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
    import networkx

    graph = networkx.DiGraph()
    graph.graph.update(reader.facts)
    graph.add_nodes_from(reader.nodes.items())
    graph.add_edges_from(reader.edges)
    return _listing(graph)


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
        """Take a statement; return whether there was one that a comparator graph may have."""
        word, sign = self._word()
        path = [word]
        while sign == "->":
            word, sign = self._word()
            path.append(word)
        if "" in path:
            return False
        name = _name(word)
        if sign == "=" and len(path) == 1:
            value, more = self._word()
            self.facts[name] = _value(value)
            return value != "" and more == ""
        facts = self._facts() if sign == "[" else {}
        if facts is None or sign == "=":
            return False
        if len(path) > 1:
            self.edges |= dict.fromkeys(itertools.pairwise(map(_name, path)))
        elif word == "graph":
            self.facts.update(facts)
        elif word not in _DEFAULTS:
            if name in self.nodes or "lo" not in facts or "hi" not in facts:
                return False
            self.nodes[name] = facts
        return True

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


def _write_dot(network: Network) -> str:
    graph = graph_of(network)
    lines = ["digraph network {", f" n={network.n}; rankdir=LR;"]
    for node, facts in graph.nodes(data=True):
        lo, hi = facts["lo"], facts["hi"]
        lines.append(f' {node} [lo={lo},hi={hi},layer={facts["layer"]},label="{lo}:{hi}"];')
    for before, after, wires in graph.edges(data="wires"):
        lines.append(f' {before} -> {after} [wires="{" ".join(map(str, wires))}"];')
    return "\n".join([*lines, "}"]) + "\n"


def _recognises_graphml(text: str) -> bool:
    return text.lstrip().startswith("<") and "<graphml" in text


def _parse_graphml(text: str, progress: Progress) -> Listing:
    # Entities that stand for entities make gigabytes of a few lines; a network needs none.
    for word in ("<!DOCTYPE", "<!ENTITY"):
        if word in text:
            raise NetworkError(f"{word} has no place in a network file: remove it")
    if _NAMESPACE not in text:
        raise NetworkError(f"GraphML has the namespace {_NAMESPACE}, this text has not")
    if len(_GRAPH.findall(text)) > 1:
        raise NetworkError("several graphs: one network a file")
    import networkx

    # The encoding that an XML declaration states was true of bytes, and not of this text.
    text = text.lstrip()
    undeclared = text.partition("?>")[2] if text.startswith("<?xml") else text
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.parse_graphml(undeclared)
    # networkx raises whatever its reader runs into: KeyError, ValueError, ParseError, NetworkXError, …
    except Exception as error:
        raise NetworkError(f"not valid GraphML: {quoted(str(error)[:200])}") from None
    if graph.is_multigraph():
        raise NetworkError("GraphML with parallel edges: one edge joins two comparators")
    return _listing(graph)


def _write_graphml(network: Network) -> str:
    import networkx

    graph = graph_of(network)
    for _, _, facts in graph.edges(data=True):
        facts["wires"] = " ".join(map(str, facts["wires"]))  # GraphML has no tuples
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(networkx.generate_graphml(graph)) + "\n"


DOT = Format(
    example="digraph {n=4; a [lo=0,hi=2]; b [lo=1,hi=3]; c [lo=0,hi=1]; d [lo=2,hi=3]; e [lo=1,hi=2]; "
    "a -> c -> e; a -> d -> e; b -> c; b -> d}",
    suffixes=(".dot", ".gv"),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises_dot,
    parse=_parse_dot,
    write=_write_dot,
)

_NODES = "".join(
    f'<node id="{v}"><data key="l">{lo}</data><data key="h">{hi}</data></node>'
    for v, (lo, hi) in enumerate([(0, 2), (1, 3), (0, 1), (2, 3), (1, 2)])
)
_EDGES = "".join(
    f'<edge source="{u}" target="{v}"/>' for u, v in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)]
)

GRAPHML = Format(
    example=f'<graphml xmlns="{_NAMESPACE}">'
    '<key id="n" for="graph" attr.name="n" attr.type="int"/>'
    '<key id="l" for="node" attr.name="lo" attr.type="int"/>'
    '<key id="h" for="node" attr.name="hi" attr.type="int"/>'
    f'<graph edgedefault="directed"><data key="n">4</data>{_NODES}{_EDGES}</graph></graphml>',
    suffixes=(".graphml",),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises_graphml,
    parse=_parse_graphml,
    write=_write_graphml,
)
