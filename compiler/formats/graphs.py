"""Comparator graphs: networkx's, and Graphviz DOT texts of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsc.arguments import whole
from nsc.compiler.formats.listing import Listing, quoted, settle
from nsc.compiler.network import MAX_WIRES, Network
from nsc.errors import NetworkError

if TYPE_CHECKING:
    import networkx


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
    """Return the network of a graph that `Network.from_graph` describes, in an order that its edges allow."""
    import networkx

    if "n" not in graph.graph:
        raise NetworkError("a comparator graph needs its number of wires as graph.graph['n']")
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
    last: dict[int, object] = {}
    for node in nodes:
        for wire in wires[node]:
            if wire in last and not graph.has_edge(last[wire], node):
                raise NetworkError(
                    f"comparators {quoted(last[wire])} and {quoted(node)} both touch wire {wire} and no edge "
                    "joins them in this order: the graph must have an edge per wire segment"
                )
            last[wire] = node
    pairs = np.array([wires[node] for node in nodes], np.int64).reshape(-1, 2)
    return settle(Listing(pairs, n=graph.graph["n"], index_base=0), None, None)


def dot(network: Network) -> str:
    """Return a network's graph as a Graphviz DOT text."""
    graph = graph_of(network)
    lines = ["digraph network {", f" n={network.n}; rankdir=LR;"]
    for node, facts in graph.nodes(data=True):
        lo, hi = facts["lo"], facts["hi"]
        lines.append(f' {node} [lo={lo},hi={hi},layer={facts["layer"]},label="{lo}:{hi}"];')
    for before, after, wires in graph.edges(data="wires"):
        lines.append(f' {before} -> {after} [wires="{" ".join(map(str, wires))}"];')
    return "\n".join([*lines, "}\n"])
