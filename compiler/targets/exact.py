"""The exact kernel: a schedule to the text of a kernel that sorts, or selects, numbers of any type.

It has no relaxation. Straight-line code is the fastest way through a small network. A large one runs from a
table: its code would not stay in the processor's cache of instructions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nsc.compiler.schedule import Schedule
from nsc.compiler.targets.records import Constant, ExactHead, ExactKernel, ExactNetwork
from nsc.compiler.targets.tables import braced, wrapped
from nsc.contract.interface import Status
from nsc.templates import fill

# Most comparators of a network that gets straight-line code: 64 wires have at most 672 in the networks that
# nsc constructs. Its build takes a second or two for each type.
MOST_STRAIGHT = 700
_WIDTH = 110


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
        straight_lines=_lines(_statements(comparators, set(outputs))) if is_straight else (),
        # C has no empty arrays: the table ends with an entry that is not used.
        pair_lines=() if is_straight else wrapped([*map(braced, comparators), "{}"]),
    )
    statuses = tuple(Constant(status.name.lower(), status.value) for status in Status)
    return fill("exact/kernel.cpp.j2", ExactKernel(head, statuses, tables))


def _statements(comparators: list[tuple[int, int]], outputs: set[int]) -> Iterator[str]:
    """Yield each comparator, behind the loads of wires that it touches first and before the stores of outputs
    that it touches last.
    """
    last = {wire: index for index, pair in enumerate(comparators) for wire in pair}
    loaded: set[int] = set()
    for index, (lo, hi) in enumerate(comparators):
        fresh = [wire for wire in (lo, hi) if wire not in loaded]
        loaded.update(fresh)
        if fresh:
            yield f"Item {', '.join(f'w{wire} = r[{wire}]' for wire in fresh)};"
        yield f"c(w{lo}, w{hi});"
        for wire in (lo, hi):
            if last[wire] == index and wire in outputs:
                yield f"r[{wire}] = w{wire};"


def _lines(statements: Iterable[str]) -> tuple[str, ...]:
    """Return statements in lines of readable length."""
    lines = [""]
    for statement in statements:
        if len(lines[-1]) + len(statement) > _WIDTH:
            lines.append("")
        lines[-1] += f"{' ' if lines[-1] else ''}{statement}"
    return tuple(lines)
