"""Comparator graphs in files: nodes with lo, hi and perhaps layer, an edge per wire segment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nsc.compiler.formats.listing import Listing
from nsc.compiler.formats.scanning import quoted
from nsc.compiler.network import MAX_WIRES, Network
from nsc.errors import NetworkError

if TYPE_CHECKING:
    import networkx


def listing_of(graph: networkx.DiGraph) -> Listing:
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
    network = Network.from_graph(graph)
    layers = [facts.get("layer") for _, facts in graph.nodes(data=True)]
    if not layers or any(type(layer) is not int or abs(layer) >> 62 for layer in layers):
        return Listing(network.comparators.astype(np.int64), n=n, index_base=0)
    for before, after in graph.edges:
        if graph.nodes[before]["layer"] >= graph.nodes[after]["layer"]:
            raise NetworkError(
                f"the edge {quoted(str(before)[:40])} -> {quoted(str(after)[:40])} leads to no later layer: "
                "correct the layers or leave them out"
            )
    rows = np.array([(f["layer"], f["lo"], f["hi"]) for _, f in graph.nodes(data=True)], dtype=np.int64)
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    return Listing(rows[:, 1:], np.unique(rows[:, 0], return_counts=True)[1].tolist(), n, index_base=0)
