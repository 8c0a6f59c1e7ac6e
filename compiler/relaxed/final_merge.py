"""The merge that a network ends in, as a bitonic sorter does: nsc/relaxed/final_merge.h takes it apart."""

from __future__ import annotations

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.schedule import Schedule

# The fewest wires of a network that is worth taking in two parts, with the widest registers.
FEWEST = 64
# The most: tables of a sample, with their gradients, take 265 MB in float32.
MOST = 1 << 14


def merge_layers(schedule: Schedule) -> int:
    """Return the levels of the merge of all wires that a sorter ends in; 0: it ends in none.

    The merge joins all wires that are n/2, n/4, … 1 apart, so that one path leads from each wire to each
    rank. In front of it each half of the wires is by itself.

    Cost: O(size).
    """
    n = schedule.network.n
    levels = n.bit_length() - 1
    if schedule.outputs is not None or not FEWEST <= n <= MOST or n != 1 << levels:
        return 0
    network = Network.from_comparators(n, schedule.network.comparators)
    if not levels <= network.depth == schedule.network.depth:
        return 0
    merge, front = network[-levels:].layers(), network[:-levels].comparators
    is_merge = all(
        np.array_equal(np.sort(layer, 1), _apart(n, n >> level)) for level, layer in enumerate(merge, 1)
    )
    return levels if is_merge and (front // (n // 2) == front[:, :1] // (n // 2)).all() else 0


def _apart(n: int, distance: int) -> np.ndarray:
    """Return the pairs of wires whose numbers differ in the bit `distance`, by the first wire."""
    wires = np.arange(n)
    first = wires[wires & distance == 0]
    return np.stack([first, first + distance], 1)
