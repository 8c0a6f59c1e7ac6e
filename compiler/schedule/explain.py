"""Explain: the figures of a schedule that its speed depends on."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.schedule.cutting import CONE_COLUMNS, work_on_permutation
from nsc.compiler.schedule.ir import Schedule

# A mix is two products and a sum for each of its two wires; a float32 is loaded and stored.
FLOPS_PER_COMPARATOR = 6
BYTES_PER_LOAD = 8
# What the words mean that figures of a schedule use.
TERMS = {
    "P": "the relaxed permutation matrix: how much of each input leaves on each wire",
    "codelet": "a piece of the network on at most 16 wires, which are loaded once for all of its comparators",
    "shape": "codelets that differ in the numbers of their wires alone have one shape, and share a function",
    "comparators per wire loaded": "the more comparators a codelet runs on a wire that it loads, the less "
    "memory is read",
    "light cone": "the comparators that a column of P, or a block of columns, reaches from its own inputs; "
    "kernels skip the others",
}


@dataclass(frozen=True)
class Explanation:
    """The figures of a schedule's routing pass.

    Attributes:
        comparators: size of the network.
        codelets: number of codelets.
        shapes: number of different shapes among them.
        loads: wires that the codelets load together.
        comparators_per_load: comparators per wire loaded; 0.5 is a layer at a time.
        widest: most wires of a codelet, the registers that are live in it.
        light_cone: share of the work on P that is left where each block of columns skips the codelets
            that it does not reach.
        flops_per_byte: arithmetic per byte between codelets and memory, forward, float32.
    """

    comparators: int
    codelets: int
    shapes: int
    loads: int
    comparators_per_load: float
    widest: int
    light_cone: float
    flops_per_byte: float


def explain(schedule: Schedule) -> Explanation:
    """Return the figures of a schedule. Cost: less than that of `schedule`."""
    size, loads = schedule.network.size, schedule.loads
    work = work_on_permutation(schedule.network.n, schedule.codelets, set(schedule.straight_shapes))
    blocks = -(-schedule.network.n // CONE_COLUMNS)
    return Explanation(
        comparators=size,
        codelets=len(schedule.codelets),
        shapes=len(schedule.shapes),
        loads=loads,
        comparators_per_load=size / max(1, loads),
        widest=max((len(c.wires) for c in schedule.codelets), default=0),
        light_cone=work.comparators / max(1, blocks * size),
        flops_per_byte=FLOPS_PER_COMPARATOR * size / max(1, BYTES_PER_LOAD * loads),
    )
