"""Tables: what kernels in C++ and in CUDA say alike of a schedule and its relaxation."""

from __future__ import annotations

import numpy as np

from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import Schedule

# The fewest wires of a network whose final merge is worth taking apart, with the widest registers.
FEWEST_MERGED = 64
# The most: tables of a sample, with their gradients, take 265 MB in float32.
MOST_MERGED = 1 << 14


def spread_begins(schedule: Schedule) -> dict[tuple[int, ...], int]:
    """Return where each spread begins in the table of spreads, which has each once."""
    begins: dict[tuple[int, ...], int] = {}
    end = 0
    for codelet in schedule.codelets:
        if codelet.spread not in begins:
            begins[codelet.spread] = end
            end += len(codelet.spread)
    return begins


def softened(relaxation: Relaxation) -> dict[str, str]:
    """Return a relaxation by its names in nsc/relaxed/relaxations.h, for relaxation.j2.

    The strength of the activation replacement is empty where its struct need not be told.
    """
    strength, root = relaxation.art_lambda, relaxation.root
    return {
        "words": relaxation.describe(),
        "sigmoid": relaxation.sigmoid,
        "replacement": f"nsc::Root<{root}>"
        if root
        else "nsc::Power<Lambda>"
        if strength
        else "nsc::Unchanged",
        "strength": "" if root or not strength else strength.hex(),
        "error_free": str(relaxation.error_free).lower(),
    }


def merge_layers(schedule: Schedule) -> int:
    """Return how many layers the final merge of a sorter has; 0: it has no merge that losses can factor.

    Such a merge compares all wires at the distances n/2, n/4, … 1, as the last merge of a bitonic sorter
    does. So one path leads from each wire to each rank. In front of the merge no comparator joins the two
    halves of the wires. The number of wires is a power of two, FEWEST_MERGED … MOST_MERGED.
    nsc/relaxed/final_merge.h factors the merge.

    Cost: O(size).
    """
    n = schedule.network.n
    layers = n.bit_length() - 1
    if schedule.outputs is not None or not FEWEST_MERGED <= n <= MOST_MERGED or n != 1 << layers:
        return 0
    network = Network.from_comparators(n, schedule.network.comparators)
    if not layers <= network.depth == schedule.network.depth:
        return 0
    merge, front = network[-layers:].layers(), network[:-layers].comparators
    is_merge = all(
        np.array_equal(np.sort(layer, 1), _pairs_at_distance(n, n >> number))
        for number, layer in enumerate(merge, 1)
    )
    return layers if is_merge and (front // (n // 2) == front[:, :1] // (n // 2)).all() else 0


def _pairs_at_distance(n: int, distance: int) -> np.ndarray:
    """Return the pairs of wires whose numbers differ in the bit `distance`, by the first wire."""
    wires = np.arange(n)
    first = wires[wires & distance == 0]
    return np.stack([first, first + distance], 1)
