"""Light cones: what a block of columns of P reaches; a kernel skips the rest, whole codelets or butterflies.

P starts as the payload I: column c is 1 on wire c alone. A codelet changes a column only if one of its
wires has a value of that column that is not 0, and behind the codelet all of its wires may have one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from nsc.compiler.schedule.codelets import Codelet

# For each level the codelets of a cone, by their number in the schedule.
Cone = tuple[tuple[int, ...], ...]


def reaching_blocks(n: int, pieces: Iterable[Sequence[int]], columns: int) -> list[int]:
    """Return for each piece a bit for each block of columns of P: whether the block reaches it.

    Args:
        n: wires of the network.
        pieces: the wires of its codelets, or of other pieces, in running order.
        columns: columns of a block.
    """
    reached = [1 << (wire // columns) for wire in range(n)]
    blocks_of_pieces = []
    for wires in pieces:
        blocks = 0
        for wire in wires:
            blocks |= reached[wire]
        for wire in wires:
            reached[wire] = blocks
        blocks_of_pieces.append(blocks)
    return blocks_of_pieces


def light_cones(n: int, codelets: Sequence[Codelet], ends: Sequence[int], columns: int) -> tuple[Cone, ...]:
    """Return the light cone of each block of columns of P, then all codelets as one more.

    Args:
        n: wires of the network.
        codelets: its codelets, in the order of their levels.
        ends: where in them each level ends.
        columns: columns of a block.
    """
    blocks_of_codelets = reaching_blocks(n, [codelet.wires for codelet in codelets], columns)
    blocks = [1 << block for block in range(-(-n // columns))]
    return tuple(
        tuple(
            tuple(number for number in range(begin, end) if blocks_of_codelets[number] & block)
            for begin, end in pairwise([0, *ends])
        )
        for block in (*blocks, -1)
    )
