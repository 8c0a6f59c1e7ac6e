"""The exact kernel: a schedule to the text of a kernel that sorts, or selects, numbers of any type.

It has no relaxation. Straight-line code is the fastest way through a network, about twice as fast as a table
of its comparators. A compiler takes long for it, so large networks run from the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nsc.compiler.schedule import Codelet, Needed, Schedule
from nsc.compiler.targets.records import Constant, ExactHead, ExactKernel, ExactNetwork, ExactPiece
from nsc.compiler.targets.straight import straight_lines
from nsc.compiler.targets.tables import braced, wrapped
from nsc.contract.interface import Status
from nsc.templates import fill

# Most minima and maxima of a network that gets straight-line code: sorting networks up to 128 wires, the 16
# largest of 256. Its build takes at most some three seconds for each type.
MOST_STRAIGHT = 3100
# Most comparators of a function: a compiler's time grows faster than its length.
_LONGEST_PIECE = 50


def render(head: ExactHead, schedule: Schedule) -> str:
    """Return the C++ source of an exact kernel; the same arguments, the same text.

    Args:
        head: what the kernel's first lines say.
        schedule: what is run, codelet by codelet.
    """
    network = schedule.network
    outputs = range(network.n) if schedule.outputs is None else schedule.outputs
    comparators = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    operations = sum(1 if step.needed else 2 for codelet in schedule.codelets for step in codelet.shape)
    is_straight = 0 < operations <= MOST_STRAIGHT
    tables = ExactNetwork(
        wires=network.n,
        comparators=network.size,
        outputs=len(outputs),
        output_lines=wrapped(outputs),
        # C has no empty arrays: the table ends with an entry that is not used.
        pair_lines=wrapped([*map(braced, comparators), "{}"]),
        pieces=tuple(_pieces(schedule.codelets)) if is_straight else (),
    )
    statuses = tuple(Constant(status.name.lower(), status.value) for status in Status)
    return fill("exact/kernel.cpp.j2", ExactKernel(head, statuses, tables))


def _pieces(codelets: Sequence[Codelet]) -> Iterator[ExactPiece]:
    """Yield whole codelets joined to pieces."""
    index, first, size = 0, 0, 0
    for place, codelet in enumerate(codelets):
        if size and size + len(codelet.shape) > _LONGEST_PIECE:
            yield ExactPiece(index, _straight_lines(codelets[first:place]))
            index, first, size = index + 1, place, 0
        size += len(codelet.shape)
    yield ExactPiece(index, _straight_lines(codelets[first:]))


def _straight_lines(codelets: Sequence[Codelet]) -> tuple[str, ...]:
    """Return the comparators of some codelets as statements; wires that are needed behind them are stored."""
    needed: dict[int, bool] = {}
    for codelet in codelets:
        for a, b, half in codelet.shape:
            needed[codelet.wires[a]] = half is not Needed.SECOND
            needed[codelet.wires[b]] = half is not Needed.FIRST
    comparators = [pair for codelet in codelets for pair in codelet.comparators()]
    loads = {wire: f"r[{wire}]" for wire in needed}
    return straight_lines(
        comparators, loads, {wire: f"r[{wire}] = w{wire};" for wire in needed if needed[wire]}
    )
