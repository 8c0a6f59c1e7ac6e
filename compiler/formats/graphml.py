"""GraphML of the comparator graph, through networkx."""

from __future__ import annotations

import re
import warnings

from nsc.compiler.formats.graphs import listing_of
from nsc.compiler.formats.listing import Format, Listing
from nsc.compiler.formats.scanning import quoted
from nsc.compiler.network import Network
from nsc.compiler.progress import Progress
from nsc.errors import NetworkError

_NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
_GRAPH = re.compile(r"<(?:[^\s<>/:]{1,40}:)?graph[\s/>]")


def _recognises(text: str) -> bool:
    return text.lstrip().startswith("<") and "<graphml" in text


def _parse(text: str, progress: Progress) -> Listing:
    # Entities that stand for entities make gigabytes of a few lines; a network needs none.
    for word in ("<!DOCTYPE", "<!ENTITY"):
        if word in text:
            raise NetworkError(f"{word} has no place in a network file: remove it")
    if _NAMESPACE not in text:
        raise NetworkError(f"GraphML has the namespace {_NAMESPACE}, this text has not")
    if len(_GRAPH.findall(text)) > 1:
        raise NetworkError("several graphs: one network a file")
    import networkx

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = networkx.parse_graphml(_undeclared(text))
    # networkx raises whatever its reader runs into: KeyError, ValueError, ParseError, NetworkXError, …
    except Exception as error:
        raise NetworkError(f"not valid GraphML: {quoted(str(error)[:200])}") from None
    if graph.is_multigraph():
        raise NetworkError("GraphML with parallel edges: one edge joins two comparators")
    return listing_of(graph)


def _undeclared(text: str) -> str:
    """Return the text without its XML declaration: its encoding was true of bytes, not of text."""
    text = text.lstrip()
    return text.partition("?>")[2] if text.startswith("<?xml") else text


def _write(network: Network) -> str:
    import networkx

    graph = network.to_graph()
    for _, _, facts in graph.edges(data=True):
        facts["wires"] = " ".join(map(str, facts["wires"]))  # GraphML has no tuples
    return '<?xml version="1.0" encoding="utf-8"?>\n' + "\n".join(networkx.generate_graphml(graph)) + "\n"


_NODES = "".join(
    f'<node id="{v}"><data key="l">{lo}</data><data key="h">{hi}</data></node>'
    for v, (lo, hi) in enumerate([(0, 2), (1, 3), (0, 1), (2, 3), (1, 2)])
)
_EDGES = "".join(
    f'<edge source="{u}" target="{v}"/>' for u, v in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 4), (3, 4)]
)

FORMAT = Format(
    example=f'<graphml xmlns="{_NAMESPACE}">'
    '<key id="n" for="graph" attr.name="n" attr.type="int"/>'
    '<key id="l" for="node" attr.name="lo" attr.type="int"/>'
    '<key id="h" for="node" attr.name="hi" attr.type="int"/>'
    f'<graph edgedefault="directed"><data key="n">4</data>{_NODES}{_EDGES}</graph></graphml>',
    suffixes=(".graphml",),
    holds_layers=True,
    holds_wires=True,
    recognises=_recognises,
    parse=_parse,
    write=_write,
)
