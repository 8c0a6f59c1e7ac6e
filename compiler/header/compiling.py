"""The stages of the compiler for C headers: describe, transform, prove, schedule, render."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from nsc.compiler.driver import scheduled_network
from nsc.compiler.header.rendering import render
from nsc.compiler.naming import header_of
from nsc.compiler.network import Network
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule
from nsc.compiler.verify import Budget, Proof
from nsc.compiler.windows import Window
from nsc.errors import LoweringError
from nsc.wording import argument


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
        request: what to compile, as a header. In the place of a network it may name a window of pixels, such
            as 3x3: the header then filters images.
        budget: as of `compile_network`.

    Raises:
        Those of `compile_network`.
        WindowError: a window of too many values.
    """
    request = _with_window(request)
    budget = Budget() if budget is None else budget
    scheduled, proof = scheduled_network(request, budget)
    budget.progress.phase("render")
    return render_header(request, scheduled, proof)


def _with_window(request: Request) -> Request:
    """Return the request for the smallest network of a window, if that is what its network names."""
    size = re.fullmatch(r"(\d{1,9})x(\d{1,9})", request.network) if isinstance(request.network, str) else None
    if size is None:
        return request
    rows, columns = int(size[1]), int(size[2])
    values = Window(1, rows, columns, 0).values
    outputs = None if request.select is None else request.outputs(values)
    if outputs is None or len(outputs) != 1:
        raise LoweringError(
            f"say which value of {request.network} pixels is selected: {argument('median', True)} of an odd "
            f"number, or {argument('ranks', values // 2)}"
        )
    return replace(request, network="best", n=values, window=(rows, columns))


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
    text = render(header, schedule, request.dtypes, ranks, request.window)
    return CompiledHeader(network, proof, header.name, text)
