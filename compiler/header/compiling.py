"""The stages of the compiler for C headers: describe, transform, prove, schedule, render."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.driver import scheduled_network
from nsc.compiler.header.rendering import render
from nsc.compiler.naming import header_of
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule
from nsc.compiler.verify import Budget, Proof


@dataclass(frozen=True)
class CompiledHeader:
    """What the stages return for a request of a C header.

    Attributes:
        network, proof: as of `Compiled`.
        name: what the file is called before its suffix, and how its functions begin.
        text: of the file.
    """

    network: Network
    proof: Proof
    name: str
    text: str


def compile_header(request: Request, budget: Budget | None = None) -> CompiledHeader:
    """Describe, transform, prove and schedule as `compile_network`, and render a C header.

    Args:
        request: what to compile, as a header.
        budget: as of `compile_network`.

    Raises:
        Those of `compile_network`.
    """
    budget = Budget() if budget is None else budget
    scheduled, proof = scheduled_network(request, budget)
    budget.progress.phase("render")
    return render_header(request, scheduled, proof)


def render_header(request: Request, schedule: Schedule, proof: Proof) -> CompiledHeader:
    """Return the C header of a schedule; the same arguments, the same text.

    Args:
        request: what was compiled.
        schedule: the network as the header's functions run it.
        proof: that it does what it was compiled for.
    """
    network = schedule.network
    header, outputs = header_of(request, network.n, proof), request.outputs(network.n)
    ranks = None if outputs is None else tuple(outputs.values())
    return CompiledHeader(network, proof, header.name, render(header, schedule, request.dtypes, ranks))
