"""The stages of the compiler for exact kernels: describe, prove, schedule, render."""

from __future__ import annotations

import json

from nsc.compiler.driver import scheduled_network
from nsc.compiler.exact.rendering import render
from nsc.compiler.exact.segments import is_straight
from nsc.compiler.naming import package_name, proof_line, purpose
from nsc.compiler.passes import half_operations
from nsc.compiler.request import Request
from nsc.compiler.selection import Selection
from nsc.compiler.text.records import Header, head_of
from nsc.compiler.verify import Budget
from nsc.contract.exact import ExactSource


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
    facts = json.dumps({"n": n, "outputs": outputs and wires, "network": network.digest})
    command = f"compile_exact({', '.join(map(repr, (n, select) if select else (n,)))}) of nsc.compiler.exact"
    header = Header(name, purpose(request, n), command, version, proof_line(proof))
    operations = half_operations(network, wires)
    straight = network.size if is_straight(scheduled) else 0
    sources = render(head_of(header, network), facts, scheduled)
    return ExactSource(name, version, n, len(wires), operations, straight, facts, sources)
