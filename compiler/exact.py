"""The stages of the compiler for exact kernels: describe, prove, schedule, render."""

from __future__ import annotations

import json

from nsc.compiler.driver import compile_network
from nsc.compiler.naming import package_name, proof_line, purpose
from nsc.compiler.passes.restrict import half_operations
from nsc.compiler.request import Request
from nsc.compiler.schedule import schedule
from nsc.compiler.selection import Selection
from nsc.compiler.targets import exact
from nsc.compiler.targets.records import ExactHead
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

    Cost: half a second for 64 values, half of it the proof; two for 1,024. Some ranks of 64 values can take
    five: several networks are tried. A budget with an archive saves the proofs.
    """
    request = Request("best", n, select=select, version=version)
    compiled = compile_network(request, budget)
    network, outputs = compiled.network, request.outputs(n)
    wires = tuple(range(n)) if outputs is None else tuple(outputs)
    scheduled = schedule(network, None if outputs is None else wires)
    name = f"{package_name(request, n)}_exact"
    facts = json.dumps({"n": n, "outputs": outputs and wires, "network": network.digest})
    head = ExactHead(
        name=name,
        purpose=purpose(request, n),
        version=version,
        proof=proof_line(compiled.proof),
        counts=network.counts,
        digest=network.digest,
        facts=json.dumps(facts),
    )
    operations = half_operations(network, wires)
    straight = network.size if exact.is_straight(scheduled) else 0
    sources = exact.render(head, scheduled)
    return ExactSource(name, version, n, len(wires), operations, straight, facts, sources)
