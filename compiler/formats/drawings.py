"""Diagrams of networks, written only: SVG, TikZ and Knuth's in text.

Wires run from left to right, wire 0 on top; a comparator is a line between two dots. The larger value
leaves on the lower wire of the picture unless an arrowhead on the line points up to where it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator

from nsc.compiler.formats.diagram import columns, knuth_diagram
from nsc.compiler.formats.listing import Format
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

# A text diagram has a character per wire and column: beyond this many nobody reads it.
MOST_CELLS = 1 << 26

_SVG_STYLE = (
    "text{font:11px sans-serif;text-anchor:end}"
    ".wire{stroke:#999}.comparator{stroke:#000;stroke-width:1.5}"
    ".reversed .comparator{stroke:#b00}.reversed{fill:#b00}"
)


def _places(network: Network) -> tuple[list[tuple[int, int, int]], int]:
    """Return (column, lo, hi) of each comparator, a column left out after each layer, and the width."""
    places = []
    x = 1
    for layer in network.layers():
        layer_columns = columns(layer)
        places += [(x + k, lo, hi) for k, column in enumerate(layer_columns) for lo, hi in column]
        x += len(layer_columns) + 1
    return places, max(x - 1, 2)


def _write_svg(network: Network) -> str:
    places, width = _places(network)
    left, step, gap = 24 + 7 * len(str(network.n)), 20, 14
    right = left + width * gap
    size = f"{right + 20} {network.n * step + 10}"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{size.split()[0]}" '
        f'height="{size.split()[1]}">',
        f"<title>{network.counts}</title>",
        "<desc>The larger value leaves below, or above where an arrowhead points up.</desc>",
        f"<style>{_SVG_STYLE}</style>",
        '<rect width="100%" height="100%" fill="#fff"/>',
    ]
    for wire in range(network.n):
        y = 15 + step * wire
        lines.append(f'<text x="{left - 8}" y="{y}" dy="0.35em">{wire}</text>')
        lines.append(f'<line class="wire" x1="{left}" y1="{y}" x2="{right}" y2="{y}"/>')
    for column, lo, hi in places:
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


def _write_tikz(network: Network) -> str:
    places, width = _places(network)
    lines = [
        r"\begin{tikzpicture}[x=0.35cm,y=0.5cm,comparator/.style={thick},reversed/.style={thick,red}]",
        f"% {network.counts}; the larger value leaves",
        "% below, or above where an arrowhead points up.",
    ]
    for wire in range(network.n):
        lines.append(rf"\draw[gray] (0,{-wire}) node[left,black] {{{wire}}} -- ({width},{-wire});")
    for x, lo, hi in places:
        style = "reversed" if lo > hi else "comparator"
        lines.append(rf"\draw[{style}] ({x},{-lo}) -- ({x},{-hi});")
        lines.append(rf"\fill[{style}] ({x},{-lo}) circle[radius=2pt] ({x},{-hi}) circle[radius=2pt];")
        if lo > hi:
            lines.append(rf"\draw[{style},->] ({x},{-lo}) -- ({x},{-hi - 0.3});")
    return "\n".join([*lines, r"\end{tikzpicture}"]) + "\n"


def _write_ascii(network: Network) -> str:
    _, width = _places(network)
    if width * network.n > MOST_CELLS:
        raise NetworkError(
            f"a diagram of {count(network.n, 'wire')} and {count(width, 'column')} is too large for text: "
            "write svg"
        )
    return knuth_diagram(network) + "\n"


SVG = Format(example="<svg", suffixes=(".svg",), write=_write_svg)
TIKZ = Format(example=r"\begin{tikzpicture}", suffixes=(".tex", ".tikz"), write=_write_tikz)
ASCII = Format(example="0 ─○", suffixes=(".ascii",), write=_write_ascii)
