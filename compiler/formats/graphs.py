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
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nsc.arguments import whole
from nsc.compiler.formats.listing import Format, Listing, begins, quoted, settle
from nsc.compiler.formats.table import without_comments
from nsc.compiler.network import MAX_WIRES, Network
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
    return settle(_listing(graph, has_layers=False), None, None)


def _listing(graph: networkx.DiGraph, has_layers: bool = True) -> Listing:
    """Return what a comparator graph says: its layers where every node has one, else a flat list.

    The edges must allow the order of the layers. Without layers it is any order that they allow.
    """
    import networkx

    if not graph.is_directed():
        raise NetworkError("a comparator graph must be directed: use a networkx.DiGraph")
    wires: dict[object, list[int]] = {node: [] for node in graph}
    for node, facts in graph.nodes(data=True):
        for key in ("lo", "hi"):
            wire = whole(facts.get(key))
            if wire is None or not 0 <= wire < MAX_WIRES:
                fault = f"found {quoted(facts[key])}" if key in facts else "it is missing"
                raise NetworkError(f"node {quoted(node)}: {key} must be a wire's number; {fault}")
            wires[node].append(wire)
    try:
        nodes = list(networkx.topological_sort(graph))
    except networkx.NetworkXUnfeasible:
        raise NetworkError("a comparator graph must have no cycle, but this one has one") from None
    layers = dict(graph.nodes(data="layer")) if has_layers else {}
    if not all(type(layer) is int and not abs(layer) >> 62 for layer in layers.values()):
        layers = {}
    nodes.sort(key=lambda node: layers.get(node, 0))
    last: dict[int, object] = {}
    for node in nodes:
        for wire in wires[node]:
            if wire in last and not graph.has_edge(last[wire], node):
                raise NetworkError(
                    f"comparators {quoted(last[wire])} and {quoted(node)} both touch wire {wire} and no edge "
                    "joins them in this order: the graph must have an edge per wire segment"
                )
            last[wire] = node
    rows = [(layers.get(node, 0), *wires[node]) for node in nodes]
    listing = Listing.of_rows(np.array(rows, np.int64).reshape(-1, 3), graph.graph.get("n"), index_base=0)
    return listing if layers else replace(listing, layer_sizes=None)


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
            raise NetworkError(
                f"line {text.count(chr(10), 0, place) + 1}: expected a new node as 0 [lo=0,hi=2], an edge as "
                f"0 -> 1 or n=4, found {quoted(text[place : min(place + 40, end)])}"
            )
        place = statement.end()
    return _listing(graph)


def _takes_statement(graph: networkx.DiGraph, path: str, value: str | None, facts: str | None) -> bool:
    """Add a statement to a graph; return whether it is one that a comparator graph may have."""
    nodes = [word.strip('"') for word in _IDS.findall(path)]
    pairs = [(path, value)] if value else _FACT.findall(facts or "")
    words = [(key.strip('"'), word.strip('"')) for key, word in pairs]
    attributes = {key: int(word) if re.fullmatch("[0-9]{1,9}", word) else word for key, word in words}
    if len(nodes) > 1:
        graph.add_edges_from(itertools.pairwise(nodes))
        return value is None
    if value is not None or path == "graph":
        graph.graph.update(attributes)
    elif path not in ("node", "edge"):
        if "lo" in graph.nodes.get(nodes[0], {}) or not {"lo", "hi"} <= attributes.keys():
            return False
        graph.add_nodes_from([(nodes[0], attributes)])
    return True


def _write_dot(network: Network) -> str:
    graph = graph_of(network)
    lines = ["digraph network {", f" n={network.n}; rankdir=LR;"]
    for node, facts in graph.nodes(data=True):
        lo, hi = facts["lo"], facts["hi"]
        lines.append(f' {node} [lo={lo},hi={hi},layer={facts["layer"]},label="{lo}:{hi}"];')
    for before, after, wires in graph.edges(data="wires"):
        lines.append(f' {before} -> {after} [wires="{" ".join(map(str, wires))}"];')
    return "\n".join([*lines, "}\n"])


def _parse_graphml(text: str) -> Listing:
    # Entities that stand for entities make gigabytes of a few lines; a network needs none.
    if declared := re.search("<!(DOCTYPE|ENTITY)", text):
        raise NetworkError(f"{declared[0]} has no place in a network file: remove it")
    if len(re.findall(r"<(?:[^\s<>/:]{1,40}:)?graph[\s/>]", text)) > 1:
        raise NetworkError("several graphs: one network a file")
    import networkx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # The encoding that an XML declaration states was true of bytes, and not of this text.
            graph = networkx.parse_graphml(re.sub(r"\A\s*(<\?xml.*?\?>)?", "", text, flags=re.DOTALL))
    # networkx raises whatever its reader runs into: KeyError, ValueError, ParseError, NetworkXError, …
    except Exception as error:
        raise NetworkError(f"not valid GraphML: {quoted(str(error)[:200])}") from None
    return _listing(graph)


def _write_graphml(network: Network) -> str:
    import networkx

    graph = graph_of(network)
    for _, _, facts in graph.edges(data=True):
        facts["wires"] = " ".join(map(str, facts["wires"]))  # GraphML has no tuples
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', *networkx.generate_graphml(graph), ""])


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
