"""The exact kernel: a schedule to the text of a kernel that sorts, or selects, numbers of any type.

It has no relaxation. Straight-line code is the fastest way through a small network. A large one runs from a
table: its code would not stay in the processor's cache of instructions.
"""

from __future__ import annotations

from nsc.compiler.schedule import Schedule
from nsc.compiler.targets.records import Constant, ExactHead, ExactKernel, ExactNetwork
from nsc.compiler.targets.straight import straight_lines
from nsc.compiler.targets.tables import braced, wrapped
from nsc.contract.interface import Status
from nsc.templates import fill

# Most comparators of a network that gets straight-line code: 64 wires have at most 672 in the networks that
# nsc constructs. Its build takes a second or two for each type.
MOST_STRAIGHT = 700


def render(head: ExactHead, schedule: Schedule) -> str:
    """Return the C++ source of an exact kernel; the same arguments, the same text.

    Args:
        head: what the kernel's first lines say.
        schedule: what is run, codelet by codelet.
    """
    network = schedule.network
    outputs = range(network.n) if schedule.outputs is None else schedule.outputs
    comparators = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    is_straight = 0 < network.size <= MOST_STRAIGHT
    tables = ExactNetwork(
        wires=network.n,
        comparators=network.size,
        outputs=len(outputs),
        output_lines=wrapped(outputs),
        straight_lines=_straight_lines(comparators, set(outputs)) if is_straight else (),
        # C has no empty arrays: the table ends with an entry that is not used.
        pair_lines=() if is_straight else wrapped([*map(braced, comparators), "{}"]),
    )
    statuses = tuple(Constant(status.name.lower(), status.value) for status in Status)
    return fill("exact/kernel.cpp.j2", ExactKernel(head, statuses, tables))


def _straight_lines(comparators: list[tuple[int, int]], outputs: set[int]) -> tuple[str, ...]:
    # A wire that no comparator touches stays where it is.
    touched = {wire for pair in comparators for wire in pair}
    loads = {wire: f"r[{wire}]" for wire in touched}
    return straight_lines(comparators, loads, {wire: f"r[{wire}] = w{wire};" for wire in touched & outputs})
