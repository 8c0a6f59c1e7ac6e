"""Diagrams of networks, written only: SVG, TikZ and Knuth's in text.

Wires run from left to right, wire 0 on top; a comparator is a line between two dots. The larger value
leaves on the lower wire of the picture unless an arrowhead on the line points up to where it leaves.
"""

from __future__ import annotations

from nsc.compiler.diagram import knuth_diagram, places, svg
from nsc.compiler.formats.listing import Format
from nsc.compiler.network import Network
from nsc.errors import NetworkError
from nsc.wording import count

# A text diagram has a character per wire and column: beyond this many nobody reads it.
MOST_CELLS = 1 << 26


def _write_tikz(network: Network) -> str:
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


def _write_ascii(network: Network) -> str:
    _, width = places(network)
    if width * network.n > MOST_CELLS:
        raise NetworkError(
            f"a diagram of {count(network.n, 'wire')} and {count(width, 'column')} is too large for text: "
            "write svg"
        )
    return knuth_diagram(network) + "\n"


SVG = Format(example="<svg", suffixes=(".svg",), write=svg)
TIKZ = Format(example=r"\begin{tikzpicture}", suffixes=(".tex", ".tikz"), write=_write_tikz)
ASCII = Format(example="0 ─○", suffixes=(".ascii",), write=_write_ascii)
