"""CUDA: functions of a thread, which sort or select from arrays that stay in registers."""

from __future__ import annotations

import textwrap
from typing import Any

from nsc.compiler.emit.plan import STRAIGHT_LINE, Plan
from nsc.compiler.text import filled
from nsc.errors import LoweringError
from nsc.wording import argument


def facts(plan: Plan) -> dict[str, Any]:
    """Return what the template of CUDA needs of a plan.

    Raises:
        LoweringError: a network that is too large for the registers of a thread.
    """
    if not plan.is_straight:
        raise LoweringError(
            f"a text in CUDA keeps a sample in a thread's registers, so it has at most {STRAIGHT_LINE} "
            f"comparators, and this network has {plan.network.size:,}: compile it with "
            f"{argument('target', 'cuda')}"
        )
    name, n, outputs = f"{plan.head.name}_{plan.verb}", f"[{plan.network.n}]", f"[{len(plan.outputs)}]"
    steps = [f"enter({wire});" for wire in range(plan.network.n)]
    steps += [f"order({lo}, {hi});" for lo, hi in plan.comparators]
    steps += [f"leave({result}, {wire});" for result, wire in enumerate(plan.outputs)]
    if plan.ranks is None:
        alone, arguments, nothing = f"void {name}(T (&x){n})", "x, nothing", f"nothing{n} = {{}}"
        pairs = f"void {name}_pairs(K (&keys){n}, V (&values){n})"
    else:
        several = f"void {name}(const T (&x){n}, T (&selected){outputs})"
        alone = f"T {name}(const T (&x){n})" if plan.is_one else several
        arguments, nothing = "x, nothing, selected, rest", f"nothing{n} = {{}}, rest{outputs}"
        results = f"K (&selected_keys){outputs}, V (&selected_values){outputs}"
        pairs = f"void {name}_pairs(const K (&keys){n}, const V (&values){n}, {results})"
    return {
        "result_lines": textwrap.wrap(f"Results: {plan.results}.", 112),
        "lines": filled(steps, 104),
        "alone": alone,
        "pairs": pairs,
        "result": "" if plan.ranks is None else "selected_",
        "nothing": nothing,
        "arguments": arguments,
    }
