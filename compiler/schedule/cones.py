"""Light cones: the codelets that a block of columns of P reaches; a kernel skips the others.

P starts as the payload I: column c is 1 on wire c alone. A codelet changes a column only if one of its
wires has a value of that column that is not 0, and behind the codelet all of its wires may have one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from nsc.compiler.schedule.codelets import Codelet

# For each level the codelets of a cone, by their number in the schedule.
Cone = tuple[tuple[int, ...], ...]


def reaching_blocks(n: int, codelets: Sequence[Codelet], columns: int) -> list[int]:
    """Return for each codelet a bit for each block of columns of P: whether the block reaches it.

    Args:
        n: wires of the network.
        codelets: its codelets, in running order.
        columns: columns of a block.
    """
    reached = [1 << (wire // columns) for wire in range(n)]
    blocks_of_codelets = []
    for codelet in codelets:
        blocks = 0
        for wire in codelet.wires:
            blocks |= reached[wire]
        for wire in codelet.wires:
            reached[wire] = blocks
        blocks_of_codelets.append(blocks)
    return blocks_of_codelets


def light_cones(n: int, codelets: Sequence[Codelet], ends: Sequence[int], columns: int) -> tuple[Cone, ...]:
    """Return the light cone of each block of columns of P, then all codelets as one more.

    Args:
        n: wires of the network.
        codelets: its codelets, in the order of their levels.
        ends: where in them each level ends.
        columns: columns of a block.
    """
    blocks_of_codelets = reaching_blocks(n, codelets, columns)
    blocks = [1 << block for block in range(-(-n // columns))]
    return tuple(
        tuple(
            tuple(number for number in range(begin, end) if blocks_of_codelets[number] & block)
            for begin, end in pairwise([0, *ends])
        )
        for block in (*blocks, -1)
    )
