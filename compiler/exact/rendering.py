"""The exact kernels: a schedule to the texts of kernels that sort, or select, numbers of any type.

It has no relaxation. Networks up to `nsc.contract.straight_line.LIMITS` are straight-line code, larger ones
run from a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from nsc.compiler.exact.records import (
    ExactCudaKernel,
    ExactKernel,
    ExactNetwork,
    ExactSegment,
)
from nsc.compiler.schedule import Codelet, Needed, Schedule
from nsc.compiler.text.lines import braced, wrapped
from nsc.compiler.text.records import Head
from nsc.compiler.text.straight import straight_lines
from nsc.contract.straight_line import LIMITS
from nsc.templates import fill


def render(head: Head, facts: str, schedule: Schedule) -> dict[str, str]:
    """Return the C++ and the CUDA source of an exact kernel by target; the same arguments, the same texts.

    Args:
        head: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run, codelet by codelet.
    """
    network = schedule.network
    in_codelets = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    in_layers = [layer.tolist() for layer in network.layers()]
    tables = _network(schedule, in_codelets)
    by_layers = _network(schedule, (pair for layer in in_layers for pair in layer))
    ends, literal = wrapped([*accumulate(map(len, in_layers)), 0]), json.dumps(facts)
    return {
        "cpu": fill("exact/kernel.cpp.j2", ExactKernel(head, literal, tables)),
        "cuda": fill("exact/kernel.cu.j2", ExactCudaKernel(head, literal, by_layers, len(in_layers), ends)),
    }


def _network(schedule: Schedule, comparators: Iterable[Sequence[int]]) -> ExactNetwork:
    """Return a network with its comparators in the order in which its table has them."""
    network = schedule.network
    outputs = range(network.n) if schedule.outputs is None else schedule.outputs
    return ExactNetwork(
        wires=network.n,
        comparators=network.size,
        outputs=len(outputs),
        output_lines=wrapped(outputs),
        # C has no empty arrays: the table ends with an entry that is not used.
        pair_lines=wrapped([*map(braced, comparators), "{}"]),
        segments=tuple(_segments(schedule.codelets)) if is_straight(schedule) else (),
    )


def is_straight(schedule: Schedule) -> bool:
    """Return whether an exact kernel has a network as straight-line code."""
    operations = sum(1 if step.needed else 2 for codelet in schedule.codelets for step in codelet.shape)
    return 0 < operations <= LIMITS.exact_operations


def _segments(codelets: Sequence[Codelet]) -> Iterator[ExactSegment]:
    """Yield whole codelets joined to segments."""
    index, first, size = 0, 0, 0
    for place, codelet in enumerate(codelets):
        if size and size + len(codelet.shape) > LIMITS.segment_comparators:
            yield ExactSegment(index, _straight_lines(codelets[first:place]))
            index, first, size = index + 1, place, 0
        size += len(codelet.shape)
    yield ExactSegment(index, _straight_lines(codelets[first:]))


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
