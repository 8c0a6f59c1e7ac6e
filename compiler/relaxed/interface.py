"""The C header of a package's library: what its functions take, return and mean."""

from __future__ import annotations

from collections.abc import Mapping

from nsc.compiler.relaxed.records import Code, Declared, Interface
from nsc.compiler.text.lines import filled
from nsc.compiler.text.records import Header
from nsc.contract.interface import FUNCTIONS, KERNEL_ABI, REALS, Status, function_name
from nsc.contract.routings import IGNORED, ROUTINGS, Payload, Routing
from nsc.templates import fill

_STATUSES = {
    Status.OK: "done",
    Status.OUT_OF_MEMORY: "not enough memory",
    Status.BAD_STEEPNESS: "a steepness that is not finite or not more than 0",
    Status.BAD_TARGET: "a target with a rank twice, or one outside 0 ... n - 1 that is not "
    f"{IGNORED}, or with reals out of range",
    Status.NO_RANK: "a rank outside 0 ... n - 1",
}
_TARGETS = {
    Payload.TARGET: f"int64_t ranks (n), {IGNORED} where an item does not count",
    Payload.INTERVALS: "first ranks, last ranks and weights of the items (3, n)",
    Payload.SHARES: "what each item should have of each rank, and weights of the items (n + 1, n)",
}


def interface_text(header: Header, n: int, outputs: Mapping[int, int] | None, dtypes: tuple[str, ...]) -> str:
    """Return the text of a package's C header.

    Args:
        header: what its first lines say.
        n: wires of the network.
        outputs: the selected wires with their ranks, in order; None: the network sorts.
        dtypes: the arithmetic types, keys of REALS.
    """
    values = "the smallest first"
    routings = list(ROUTINGS.values())
    if outputs is not None:
        wires = ", ".join(map(str, outputs))
        values = f"the results are those on wire {wires}"
        routings = [routing for routing in routings if routing.selector is not None]
    interface = Interface(
        header=header,
        version=KERNEL_ABI,
        wires=n,
        values=values,
        statuses=tuple(Code(status.name.lower(), status.value, _STATUSES[status]) for status in Status),
        routings=tuple(Code(routing.name, routing.code, _meaning(routing)) for routing in routings),
        reals=tuple(_declared(real) for real in dtypes),
    )
    return fill("relaxed/interface.h.j2", interface)


def _declared(real: str) -> Declared:
    """Return declarations of the functions for an arithmetic type."""
    declarations = {}
    for name, function in FUNCTIONS.items():
        *parameters, last = (each.replace("real ", f"{REALS[real].type} ") for each in function.parameters)
        start = f"{function.result} {function_name(name, real)}("
        first, *others = filled([start, *(f"{each}," for each in parameters), f"{last});"], 112)
        declarations[name] = (first.replace("( ", "("), *(f"    {line}" for line in others))
    return Declared(real, REALS[real].suffix, **declarations)


def _meaning(routing: Routing) -> str:
    """Return what a routing takes and what it gives for each sample."""
    if routing.is_loss:
        assert routing.loss is not None
        return f"takes {_TARGETS[routing.payload]}, gives a loss: {routing.loss.replace('_', ' ')} of P"
    if routing.payload is Payload.RANKS:
        return "takes int64_t ranks (columns), gives these rows of P as columns, (n, columns)"
    if routing.payload is Payload.COLUMNS:
        return f"takes V, gives {'the transpose of P' if routing.is_reversed else 'P'} times V, (n, columns)"
    return "takes and gives nothing" if routing.name == "none" else "takes nothing, gives P"
