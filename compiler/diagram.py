"""Diagrams, as text, SVG and TikZ: a line per wire, a column per comparator, layers apart.

Wires run from left to right, wire 0 on top; a comparator is a line between two dots. In pictures the larger
value leaves on the lower wire unless an arrowhead on the line points up to where it leaves.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator

from nsc.compiler.network import Comparators, Network
from nsc.errors import NetworkError
from nsc.wording import count

# The largest diagram in a notebook, where each comparator is an element of the page.
_MOST_WIRES, _MOST_COMPARATORS = 128, 4000
# A text diagram has a character per wire and column: beyond this many nobody reads it.
_MOST_CELLS = 1 << 26

# In a page, such a style holds for all of the page: each rule names the picture. The ink has the colour of
# the page's text; in a file of its own it is black, and white in dark mode.
_SVG_STYLE = (
    ".nsc-network{fill:currentColor}.nsc-network text{font:11px sans-serif;text-anchor:end}"
    ".nsc-network .wire{stroke:#888}.nsc-network .comparator{stroke:currentColor;stroke-width:1.5}"
    ".nsc-network .reversed{color:#d9363e;fill:#d9363e}"
    "@media (prefers-color-scheme:dark){.nsc-network:root{color:#fff}}"
)


def knuth_diagram(network: Network) -> str:
    """Return the diagram: inputs left, wire 0 on top, a comparator a vertical line.

    ``●`` marks the end that keeps the maximum and ``○`` the one that keeps the minimum. Comparators
    of a layer stand side by side where they would cross; ``┆`` on the last line ends a layer.

    >>> print(knuth_diagram(Network.from_layers(3, [[(0, 1)], [(1, 2)]])))
    0 ─○───────
    1 ─●───○───
    2 ─────●───
         ┆   ┆
    """
    label = len(str(network.n - 1))
    lines = [[f"{wire:>{label}} ─"] for wire in range(network.n)]
    foot = [" " * (label + 2)]
    for layer in network.layers():
        for column in columns(layer):
            cells = {}
            for lo, hi in column:
                low, high = sorted((lo, hi))
                cells.update(dict.fromkeys(range(low + 1, high), "┼"))
                cells.update({lo: "○", hi: "●"})
            for wire, line in enumerate(lines):
                line.append(cells.get(wire, "─"))
            foot.append(" ")
        for line in lines:
            line.append("───")
        foot.append(" ┆ ")
    return "\n".join([*map("".join, lines), "".join(foot).rstrip()])


def diagram_text(network: Network) -> str:
    """Return the diagram as the text of a file.

    Raises:
        NetworkError: it is too large to be read.
    """
    _, width = places(network)
    if width * network.n > _MOST_CELLS:
        raise NetworkError(
            f"a diagram of {count(network.n, 'wire')} and {count(width, 'column')} is too large for text: "
            "write svg"
        )
    return knuth_diagram(network) + "\n"


def in_ascii(diagram: str) -> str:
    """Return a Knuth diagram in ASCII, for terminals without its letters.

    >>> in_ascii("0 ─○┼●┆")
    '0 -o+@:'
    """
    return diagram.translate(str.maketrans("─┼○●┆", "-+o@:"))


def diagram_width(n: int, layers: Iterable[Comparators]) -> int:
    """Return how many characters wide the diagram of some layers on n wires is."""
    return len(str(n - 1)) + 2 + sum(len(columns(layer)) + 3 for layer in layers)


def bands(network: Network, width: int) -> Iterator[Network]:
    """Yield the layers of a network in parts whose diagrams fit a width, with at least one layer in each.

    Args:
        network: may have no layers, which is one part.
        width: characters.
    """
    first, used = 0, 0
    for index, layer in enumerate(network):
        taken = diagram_width(network.n, [layer])
        if index > first and used + taken > width:
            yield network[first:index]
            first, used = index, 0
        used += taken if index == first else taken - diagram_width(network.n, [])
    yield network[first:]


def columns(layer: Comparators) -> list[list[tuple[int, int]]]:
    """Spread a layer's comparators over columns, so that none crosses another; first fit.

    Args:
        layer: comparators in the order of their lower wire, as a network keeps them.

    Cost: k log k for k comparators.
    """
    all_columns: list[list[tuple[int, int]]] = []
    busy: list[tuple[int, int]] = []  # the wire up to which a column is taken, and the column
    free: list[int] = []
    for lo, hi in layer.tolist():
        low, high = sorted((lo, hi))
        while busy and busy[0][0] < low:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if not free:
            all_columns.append([])
            free.append(len(all_columns) - 1)
        column = heapq.heappop(free)
        all_columns[column].append((lo, hi))
        heapq.heappush(busy, (high, column))
    return all_columns


def places(network: Network) -> tuple[list[tuple[int, int, int]], int]:
    """Return (column, lo, hi) of each comparator, a column left out after each layer, and the width."""
    placed = []
    x = 1
    for layer in network.layers():
        layer_columns = columns(layer)
        placed += [(x + k, lo, hi) for k, column in enumerate(layer_columns) for lo, hi in column]
        x += len(layer_columns) + 1
    return placed, max(x - 1, 2)


def notebook_svg(network: Network) -> str | None:
    """Return the diagram as SVG for a notebook; None: it is too large to be of use there."""
    return svg(network) if network.n <= _MOST_WIRES and network.size <= _MOST_COMPARATORS else None


def svg(network: Network) -> str:
    """Return the diagram as SVG.

    The ground is transparent. The ink has the colour of the page's text, or is black, and white in dark mode.
    """
    placed, width = places(network)
    left, step, gap = 24 + 7 * len(str(network.n)), 20, 14
    right = left + width * gap
    size = f"{right + 20} {network.n * step + 10}"
    lines = [
        f'<svg class="nsc-network" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" '
        f'width="{size.split()[0]}" height="{size.split()[1]}">',
        f"<title>{network.counts}</title>",
        "<desc>The larger value leaves below, or above where an arrowhead points up.</desc>",
        f"<style>{_SVG_STYLE}</style>",
    ]
    for wire in range(network.n):
        y = 15 + step * wire
        lines.append(f'<text x="{left - 8}" y="{y}" dy="0.35em">{wire}</text>')
        lines.append(f'<line class="wire" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>')
    for column, lo, hi in placed:
        lines += _svg_comparator(left + column * gap, 15 + step * lo, 15 + step * hi)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _svg_comparator(x: int, y_lo: int, y_hi: int) -> Iterator[str]:
    reverse = y_lo > y_hi
    if reverse:
        yield '<g class="reversed">'
    yield f'<line class="comparator" x1="{x}" y1="{y_lo}" x2="{x}" y2="{y_hi}"/>'
    yield f'<circle cx="{x}" cy="{y_lo}" r="3"/><circle cx="{x}" cy="{y_hi}" r="3"/>'
    if reverse:
        yield f'<path class="arrowhead" d="M{x - 4} {y_hi + 12}L{x} {y_hi + 3}L{x + 4} {y_hi + 12}z"/></g>'


def tikz(network: Network) -> str:
    """Return the diagram as TikZ."""
    comparators, width = places(network)
    lines = [
        r"\begin{tikzpicture}[x=0.35cm,y=0.5cm,comparator/.style={thick},reversed/.style={thick,red}]",
        f"% {network.counts}; the larger value leaves",
        "% below, or above where an arrowhead points up.",
    ]
    for wire in range(network.n):
        lines.append(rf"\draw[gray] (0,{-wire}) node[left,black] {{{wire}}} -- ({width},{-wire});")
    for x, lo, hi in comparators:
        style = "reversed" if lo > hi else "comparator"
        lines.append(rf"\draw[{style}] ({x},{-lo}) -- ({x},{-hi});")
        lines.append(rf"\fill[{style}] ({x},{-lo}) circle[radius=2pt] ({x},{-hi}) circle[radius=2pt];")
        if lo > hi:
            lines.append(rf"\draw[{style},->] ({x},{-lo}) -- ({x},{-hi - 0.3});")
    return "\n".join([*lines, r"\end{tikzpicture}"]) + "\n"
