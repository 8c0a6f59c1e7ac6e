"""The stages of the compiler for exact kernels: describe, prove, schedule, render."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate

from nsc.compiler.driver import scheduled_network
from nsc.compiler.exact.segments import Call, Segment, StraightLine, is_straight, straight_line
from nsc.compiler.naming import Head, package_name, proof_line, purpose
from nsc.compiler.passes import half_operations
from nsc.compiler.request import Request
from nsc.compiler.schedule import Needed, Schedule
from nsc.compiler.selection import Selection
from nsc.compiler.text import braced, filled, straight_lines, wrapped
from nsc.compiler.verify import Budget
from nsc.contract.exact import ExactSource
from nsc.templates import fill


def compile_exact(
    n: int, select: Selection | None = None, version: str = "0", budget: Budget | None = None
) -> ExactSource:
    """Return the sources of the exact kernel of the smallest network that nsc has for a task.

    Args:
        n: values of a sample.
        select: what is selected; None: all values, sorted.
        version: of nsc.
        budget: what the proof may take; None: the defaults.

    Raises:
        NetworkError: n outside 1 … MAX_WIRES.
        PropertyError: ranks that n values do not have.
        UnprovedError: no method settled the network within the budget.

    Cost: 0.3 s for 64 values and 1.5 s for 1,024, two thirds of it the proof, which a budget with an archive
    saves the next time. Some ranks of 64 values can take 4 s, because several networks are tried.
    """
    request = Request("best", n, select=select, version=version)
    scheduled, proof = scheduled_network(request, Budget() if budget is None else budget)
    network, outputs = scheduled.network, request.outputs(n)
    wires = tuple(range(n)) if outputs is None else tuple(outputs)
    name = f"{package_name(request, n)}_exact"
    command = f"compile_exact({', '.join(map(repr, (n, select) if select else (n,)))}) of nsc.compiler.exact"
    head = Head(name, purpose(request, n), command, version, proof_line(proof), network)
    operations = half_operations(network, wires)
    straight = network.size if is_straight(scheduled) else 0
    return ExactSource(name, n, len(wires), operations, straight, _texts(head, scheduled))


def _texts(head: Head, schedule: Schedule) -> dict[str, str]:
    """Return the C++ and the CUDA source of an exact kernel by target; the same arguments, the same texts."""
    code = straight_line(schedule)
    in_codelets = [pair for codelet in schedule.codelets for pair in codelet.comparators()]
    in_layers = [layer.tolist() for layer in schedule.network.layers()]
    all_or_none = code if is_straight(schedule) else StraightLine((), ())
    outputs = range(schedule.network.n) if schedule.outputs is None else schedule.outputs
    common = {"head": head, "outputs": len(outputs), "output_lines": wrapped(outputs)}
    return {
        "cpu": fill("exact/kernel.cpp.j2", **common, **_lines(code, in_codelets)),
        "cuda": fill(
            "exact/kernel.cu.j2",
            **common,
            **_lines(all_or_none, (pair for layer in in_layers for pair in layer)),
            layers=len(in_layers),
            layer_end_lines=wrapped([*accumulate(map(len, in_layers)), 0]),
        ),
    }


def _lines(code: StraightLine, comparators: Iterable[Sequence[int]]) -> dict[str, object]:
    """Return the table of comparators, the functions of straight-line code, and the calls of either."""
    return {
        # C has no empty arrays: the table ends with an entry that is not used.
        "pair_lines": wrapped([*map(braced, comparators), "{}"]),
        "segments": [(index, _statements(segment)) for index, segment in enumerate(code.segments)],
        "run_lines": filled(map(_call, code.calls), 110),
    }


def _call(call: Call) -> str:
    if call.segment is None:
        return f"nsc::run_pairs<Form>(r, pairs + {call.first}, {call.size});"
    return f"segment_{call.segment}<Form>(r{f' + {call.first}' if call.first else ''});"


def _statements(codelets: Segment) -> tuple[str, ...]:
    """Return the comparators of some codelets as statements; wires that are needed behind them are stored."""
    needed: dict[int, bool] = {}
    for codelet in codelets:
        for a, b, half in codelet.shape:
            needed[codelet.wires[a]] = half is not Needed.SECOND
            needed[codelet.wires[b]] = half is not Needed.FIRST
    comparators = [pair for codelet in codelets for pair in codelet.comparators()]
    loads = {wire: f"r[{wire}]" for wire in needed}
    return straight_lines(
        comparators, loads, {(wire,): f"r[{wire}] = w{wire};" for wire in needed if needed[wire]}
    )
