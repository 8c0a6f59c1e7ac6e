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

from nsc.arguments import whole
from nsc.compiler.formats.listing import Format, Listing, begins, quoted
from nsc.compiler.formats.table import without_comments
from nsc.compiler.network import MAX_WIRES, Network, check_wires
from nsc.errors import NetworkError

if TYPE_CHECKING:
    import networkx

_ID = r'(?:"[^"\n]*"|-?[A-Za-z0-9_.]+(?![A-Za-z0-9_.]))'
_OPENING = re.compile(rf"\s*(?:strict\s+)?digraph\b\s*{_ID}?\s*\{{[\s;]*", re.IGNORECASE)
_IDS, _FACT = re.compile(_ID), re.compile(rf"({_ID})\s*=\s*({_ID})[\s;,]*")
# A path of one node or several; then a value or the attributes.
_STATEMENT = re.compile(
    rf"({_ID}(?:\s*->\s*{_ID})*)(?:\s*=\s*({_ID})|\s*\[\s*((?:{_ID}\s*=\s*{_ID}[\s;,]*)*)\])?[\s;,]*"
)
_DEFAULTS = ("node", "edge")

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_GRAPH = re.compile(r"<(?:[^\s<>/:]{1,40}:)?graph[\s/>]")


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
    if "n" not in graph.graph:
        raise NetworkError("a comparator graph needs its number of wires as graph.graph['n']")
    return Network.from_comparators(check_wires(graph.graph["n"]), _comparators_of(graph))


def _comparators_of(graph: networkx.DiGraph) -> list[tuple[int, int]]:
    """Return the comparators of a graph that `Network.from_graph` takes, in an order that its edges allow."""
    import networkx

    if not graph.is_directed():
        raise NetworkError("a comparator graph must be directed: use a networkx.DiGraph")
    for node, facts in graph.nodes(data=True):
        for key in ("lo", "hi"):
            if whole(facts.get(key)) is None or not 0 <= facts[key] < MAX_WIRES:
                fault = f"found {quoted(str(facts[key])[:60])}" if key in facts else "it is missing"
                raise NetworkError(f"node {quoted(str(node)[:60])}: {key} must be a wire's number; {fault}")
    try:
        nodes = list(networkx.topological_sort(graph))
    except networkx.NetworkXUnfeasible:
        raise NetworkError("a comparator graph must have no cycle, but this one has one") from None
    pairs = [(int(graph.nodes[node]["lo"]), int(graph.nodes[node]["hi"])) for node in nodes]
    last: dict[int, object] = {}
    for node, pair in zip(nodes, pairs, strict=True):
        for wire in pair:
            if wire in last and not graph.has_edge(last[wire], node):
                raise NetworkError(
                    f"comparators {last[wire]!r} and {node!r} both touch wire {wire} and no "
                    "edge joins them: the graph must have an edge per wire segment"
                )
            last[wire] = node
    return pairs


def _listing(graph: networkx.DiGraph) -> Listing:
    """Return what a comparator graph says: its layers where every node has one, else a flat list."""
    pairs, n = _comparators_of(graph), graph.graph.get("n")
    layers = [facts.get("layer") for _, facts in graph.nodes(data=True)]
    if not layers or any(type(layer) is not int or abs(layer) >> 62 for layer in layers):
        return Listing(np.array(pairs, np.int64).reshape(-1, 2), n=n, index_base=0)
    for before, after in graph.edges:
        if graph.nodes[before]["layer"] >= graph.nodes[after]["layer"]:
            raise NetworkError(
                f"the edge {quoted(str(before)[:40])} -> {quoted(str(after)[:40])} leads to no later layer: "
                "correct the layers or leave them out"
            )
    rows = [(facts["layer"], facts["lo"], facts["hi"]) for _, facts in graph.nodes(data=True)]
    return Listing.of_rows(np.array(rows, np.int64), n, index_base=0)


def _parse_dot(text: str) -> Listing:
    text = without_comments(text).rstrip()
    opening = _OPENING.match(text)
    if opening is None or not text.endswith("}"):
        raise NetworkError("a comparator graph in DOT is one digraph { … }")
    import networkx

    graph, place, end = networkx.DiGraph(), opening.end(), len(text) - 1
    while place < end:
        statement = _STATEMENT.match(text, place, end)
        if statement is None or not _takes_statement(graph, *statement.groups()):
            line = text.count("\n", 0, place) + 1
            excerpt = quoted(text[place : min(place + 40, end)])
            raise NetworkError(
                f"line {line}: expected a new node as 0 [lo=0,hi=2], an edge as 0 -> 1 or n=4, found "
                f"{excerpt}"
            )
        place = statement.end()
    return _listing(graph)


def _takes_statement(graph: networkx.DiGraph, path: str, value: str | None, facts: str | None) -> bool:
    """Add a statement to a graph; return whether it is one that a comparator graph may have."""
    name, *others = map(_name, _IDS.findall(path))
    attributes = {_name(key): _value(word) for key, word in _FACT.findall(facts or "")}
    if value is not None:
        graph.graph[name] = _value(value)
        return not others
    if others:
        graph.add_edges_from(itertools.pairwise((name, *others)))
    elif path == "graph":
        graph.graph.update(attributes)
    elif path not in _DEFAULTS:
        if "lo" in graph.nodes.get(name, {}) or not {"lo", "hi"} <= attributes.keys():
            return False
        graph.add_nodes_from([(name, attributes)])
    return True


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


def _parse_graphml(text: str) -> Listing:
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
    suffixes=(".dot", ".gv"),
    holds_layers=True,
    holds_wires=True,
    recognises=begins(_OPENING),
    parse=_parse_dot,
    write=_write_dot,
)

GRAPHML = Format(
    suffixes=(".graphml",),
    holds_layers=True,
    holds_wires=True,
    recognises=lambda text: text.lstrip().startswith("<") and "<graphml" in text,
    parse=_parse_graphml,
    write=_write_graphml,
)
