"""Knuth diagrams as text: a line per wire, a column per comparator, layers apart."""

from __future__ import annotations

from nsc.compiler.network import Comparators, Network


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
    lines = [f"{wire:>{label}} ─" for wire in range(network.n)]
    foot = " " * (label + 2)
    for layer in network.layers():
        for column in _columns(layer):
            cells = {}
            for lo, hi in column:
                low, high = sorted((lo, hi))
                cells.update(dict.fromkeys(range(low + 1, high), "┼"))
                cells.update({lo: "○", hi: "●"})
            lines = [line + cells.get(wire, "─") for wire, line in enumerate(lines)]
            foot += " "
        lines = [line + "───" for line in lines]
        foot += " ┆ "
    return "\n".join([*lines, foot.rstrip()])


def _columns(layer: Comparators) -> list[list[tuple[int, int]]]:
    """Spread a layer's comparators over columns, so that none crosses another; first fit."""
    columns: list[list[tuple[int, int]]] = []
    for lo, hi in layer.tolist():
        low, high = sorted((lo, hi))
        for column in columns:
            if all(high < min(other) or low > max(other) for other in column):
                column.append((lo, hi))
                break
        else:
            columns.append([(lo, hi)])
    return columns
