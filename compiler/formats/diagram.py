"""Knuth diagrams as text: a line per wire, a column per comparator, layers apart."""

from __future__ import annotations

import heapq

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
