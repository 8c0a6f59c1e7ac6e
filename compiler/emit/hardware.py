"""Circuits in Verilog and VHDL: the layers of a network, and where a pipeline has registers.

The signal w3_2 is wire 3 behind layer 2, and c3_2 is what the layer puts on it, before a register. Registers
stand behind the last layer and behind every so many before it, so results come from registers.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from nsc.compiler.emit.plan import Operation, Plan
from nsc.compiler.text import filled
from nsc.wording import count

_WIDTH = 104


def facts(plan: Plan, mark: str, gets: str, then: str) -> dict[str, Any]:
    """Return what the templates of circuits need of a plan.

    `mark` begins a comment, `gets` gives a signal its value, `then` stands between two of these.
    """
    operations = [operation for layer in plan.layers for operation in layer]
    depth = plan.network.depth
    # Pipelines of 1, 2 and 3 layers a stage: the layers behind which they have registers.
    cuts = [range(depth, 0, -layers) for layers in (1, 2, 3)]
    return {
        "mark": mark,
        "outputs": len(plan.outputs),
        "result_lines": textwrap.wrap(f"Results: {plan.results}.", _WIDTH),
        "operations": _counted(operations),
        "latencies": ", ".join(str(len(cut)) for cut in cuts),
        "registers": ", ".join(f"{sum(len(plan.live[layer]) for layer in cut):,}" for cut in cuts),
        "inputs": plan.live[0],
        "layers": [_layer(plan, number, gets, then) for number in range(1, depth + 1)],
        "results": enumerate(plan.outputs),
    }


def _counted(operations: Iterable[Operation]) -> str:
    """Return how many comparators there are, whole and half, in words."""
    halves = [len(operation.written) for operation in operations]
    return f"{count(halves.count(2), 'comparator')}, {count(halves.count(1), 'half comparator')}"


def _layer(plan: Plan, number: int, gets: str, then: str) -> dict[str, Any]:
    """Return what the templates print of a layer: its comparators, and how live wires get their values."""
    comparators = [_halves(operation, number) for operation in plan.layers[number - 1]]
    written = {name: None for halves in comparators for name in halves}
    values = {
        f"w{wire}_{number}": f"c{wire}_{number}"
        if f"c{wire}_{number}" in written
        else f"w{wire}_{number - 1}"
        for wire in plan.live[number]
    }
    return {
        "number": number,
        "behind": plan.network.depth - number,
        "words": _counted(plan.layers[number - 1]),
        "comparators": [then.join(map(gets.join, halves.items())) for halves in comparators],
        "wires": _listed(values),
        "signals": _listed([*written, *values]),
        "clocked": filled((f"{wire} <= {value};" for wire, value in values.items()), _WIDTH),
        "unclocked": filled((f"{wire}{gets}{value};" for wire, value in values.items()), _WIDTH),
    }


def _halves(operation: Operation, number: int) -> dict[str, str]:
    """Return the signals that a comparator gives values, with these."""
    functions = {operation.lo: "smaller", operation.hi: "larger"}
    wires = f"w{operation.lo}_{number - 1}, w{operation.hi}_{number - 1}"
    return {f"c{wire}_{number}": f"{functions[wire]}({wires})" for wire in operation.written}


def _listed(names: Iterable[str]) -> str:
    return textwrap.fill(", ".join(names), _WIDTH, subsequent_indent=" " * 8)
