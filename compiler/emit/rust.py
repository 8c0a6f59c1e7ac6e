"""Rust: functions that take arrays by value, so that compilers keep wires in registers.

A comparator that swaps two places behind a reference becomes a branch; one of two variables becomes two
conditional moves, or a minimum and a maximum of vectors. By value, no type needs to be copied either.
"""

from __future__ import annotations

import textwrap
from typing import Any

from nsc.compiler.emit.plan import Plan
from nsc.compiler.text import wrapped


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the template of Rust needs of a plan."""
    written = {wire for operation in plan.operations for wire in operation.written}
    names = {wire: f"mut w{wire}" if wire in written else f"w{wire}" for wire in plan.live[0]}
    results = "{}" if plan.is_one else f"[{{}}; {len(plan.outputs)}]"
    return {
        "result_lines": textwrap.wrap(f"Returns {plan.results}.", 96),
        "results": results.format("T"),
        "types": [
            {"name": f"f{bits}", "key": f"i{bits}", "bits": f"u{bits}", "results": results.format(f"f{bits}")}
            for bits in (32, 64)
        ],
        "of_pairs": ".1" if plan.is_one else ".map(|(_, value)| value)",
        # A network without comparators compares nothing.
        "is_less": "mut is_less" if plan.comparators else "_",
        "wire_lines": wrapped(names.get(wire, "_") for wire in range(plan.network.n)),
        "pair_lines": wrapped(f"({lo}, {hi})" for lo, hi in plan.comparators),
        "output_lines": _outputs(plan),
    }


def _outputs(plan: Plan) -> tuple[str, ...]:
    """Return the lines of the expression of all results: of variables, or of an array of options."""
    if plan.ranks is None and not plan.is_straight:
        return ("w",)
    names = [f"w{wire}" if plan.is_straight else f"w[{wire}].take().unwrap()" for wire in plan.outputs]
    lines = (names[0],) if plan.is_one else ("[", *(f"    {line}" for line in wrapped(names)), "]")
    return lines if plan.is_straight else ("let mut w = w.map(Some);", *lines)
