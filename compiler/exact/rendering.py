"""The exact kernels: a schedule to the texts of kernels that sort, or select, numbers of any type."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate

from nsc.compiler.exact.records import (
    ExactCudaKernel,
    ExactKernel,
    ExactNetwork,
    ExactSegment,
)
from nsc.compiler.exact.segments import Call, Segment, StraightLine, is_straight, straight_line
from nsc.compiler.schedule import Needed, Schedule
from nsc.compiler.text.lines import braced, filled, wrapped
from nsc.compiler.text.records import Head
from nsc.compiler.text.straight import straight_lines
from nsc.templates import fill


def render(head: Head, facts: str, schedule: Schedule) -> dict[str, str]:
    """Return the C++ and the CUDA source of an exact kernel by target; the same arguments, the same texts.

    Args:
        head: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run, codelet by codelet.
    """
    network = schedule.network
    code = straight_line(schedule)
    in_codelets = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    in_layers = [layer.tolist() for layer in network.layers()]
    by_codelets = _network(schedule, code, in_codelets)
    all_or_none = code if is_straight(schedule) else StraightLine((), ())
    by_layers = _network(schedule, all_or_none, (pair for layer in in_layers for pair in layer))
    ends, literal = wrapped([*accumulate(map(len, in_layers)), 0]), json.dumps(facts)
    return {
        "cpu": fill("exact/kernel.cpp.j2", ExactKernel(head, literal, by_codelets)),
        "cuda": fill("exact/kernel.cu.j2", ExactCudaKernel(head, literal, by_layers, len(in_layers), ends)),
    }


def _network(schedule: Schedule, code: StraightLine, comparators: Iterable[Sequence[int]]) -> ExactNetwork:
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
        segments=tuple(ExactSegment(index, _lines(segment)) for index, segment in enumerate(code.segments)),
        run_lines=filled(map(_call, code.calls), 110),
    )


def _call(call: Call) -> str:
    if call.segment is None:
        return f"nsc::run_pairs<Form>(r, pairs + {call.first}, {call.size});"
    return f"segment_{call.segment}<Form>(r{f' + {call.first}' if call.first else ''});"


def _lines(codelets: Segment) -> tuple[str, ...]:
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
