"""Rendering: from a schedule to a package, its module, its C header, and the source text of each target.

A target is a row of `nsc.contract.targets.TARGETS`, a file of this room with the functions of `Backend`, its
row in `BACKENDS`, and its template.
"""

from __future__ import annotations

import textwrap
from types import MappingProxyType
from typing import Any, Protocol

from nsc import library
from nsc.compiler.describe import is_family
from nsc.compiler.formats import LONGEST_LISTED, named, write_network
from nsc.compiler.naming import Head, head_of
from nsc.compiler.network import Network
from nsc.compiler.package import Package
from nsc.compiler.relaxed import cpp, cuda
from nsc.compiler.request import Request
from nsc.compiler.schedule import Schedule
from nsc.compiler.text import filled
from nsc.compiler.verify import Proof
from nsc.contract.interface import FUNCTIONS, KERNEL_ABI, REALS, Status, function_name
from nsc.contract.manifest import MANIFEST, NETWORK, PROOF, TABLES, RelaxedManifest, digest, engine_source
from nsc.contract.routings import IGNORED, LOSSES, ROUTINGS, Payload, Routing
from nsc.templates import fill


class Backend(Protocol):
    """A file that makes the source of a target. Each target has its own type of plan."""

    def lower(self, schedule: Schedule, request: Request, /) -> Any:
        """Return the plan that the target runs."""

    def render(self, head: Head, facts: str, plan: Any, request: Request, /) -> str:
        """Return the source text; facts: what the kernel states of itself when it is asked."""


BACKENDS: dict[str, Backend] = {"cpu": cpp, "cuda": cuda}


def render(request: Request, schedule: Schedule, proof: Proof) -> Package:
    """Return the package of a schedule; the same arguments, the same texts.

    Args:
        request: what was compiled, and for what targets.
        schedule: the network as kernels run it.
        proof: that it does what it was compiled for.

    Raises:
        LoweringError: a target cannot take a network of this size.
    """
    network, relaxation = schedule.network, request.relaxation
    head, outputs = head_of(request, network, proof), request.outputs(network.n)
    name = head.name
    lowered = {target: BACKENDS[target].lower(schedule, request) for target in request.targets}
    texts = {NETWORK: network_text(request, network), PROOF: proof.to_json()}
    if "cpu" in request.targets:
        texts[TABLES] = lowered["cpu"].to_text()
        texts |= {engine_source(real): cpp.engine(relaxation, real) for real in request.dtypes}
    manifest = RelaxedManifest(
        name=name,
        nsc=request.version,
        library=library.digest(),
        command=head.command,
        n=network.n,
        size=network.size,
        depth=network.depth,
        selection=None if request.select is None else request.select.form,
        outputs=None if outputs is None else tuple(outputs.items()),
        network=network.digest,
        proof=proof.verdict.value,
        sigmoid=relaxation.sigmoid,
        art_lambda=relaxation.art_lambda,
        error_free=relaxation.error_free,
        reals=request.dtypes,
        targets=request.targets,
        cuda=lowered["cuda"].launch if "cuda" in lowered else None,
        files={name: digest(text) for name, text in texts.items()},
    )
    sources = {
        manifest.sources[target]: BACKENDS[target].render(head, manifest.stated(), plan, request)
        for target, plan in lowered.items()
    }
    if request.single_file:
        sources = {name: library.expanded(text) for name, text in sources.items()}
    interface = {f"{name}_c.h": _interface(head, request)} if "cpu" in request.targets else {}
    files = {"__init__.py": _module(head, request), **sources, **interface, **texts}
    files[MANIFEST] = manifest.with_files(files).to_text()
    return Package(name, MappingProxyType(files))


def network_text(request: Request, network: Network) -> str:
    """Return the text of a package's network: its comparators, or the name of a family whose list is long."""
    family = request.network
    is_whole = request.select is None and not request.remove_redundant
    if isinstance(family, str) and is_family(family) and is_whole and network.size > LONGEST_LISTED:
        return named(family, network)
    return write_network(network)


# The methods that a module has as functions.
_SORTER = ("sort", "sort_with_permutation", "rank", "route", "topk", "top_k_weights", "hard_sort")
_SELECTOR = ("select", "select_with_rows", "route", "hard_select")


def _module(head: Head, request: Request) -> str:
    """Return the text of a package's `__init__.py`."""
    network, relaxation, outputs = head.network, request.relaxation, request.outputs(head.network.n)
    ranks = "" if outputs is None else ", ".join(map(str, outputs.values())) + ","
    return fill(
        "relaxed/module.py.j2",
        head=head,
        network=network,
        kind="Sorter" if outputs is None else "Selector",
        relaxation=relaxation.describe(),
        dtypes=", ".join(request.dtypes),
        targets=" and ".join(request.targets),
        accepts=", ".join(dtype for real in request.dtypes for dtype in REALS[real].serves),
        steepness=f"{2 * network.depth} = 2 × depth" if network.depth else "2",
        tie_note=" in the gradient and keep their places" if relaxation.error_free else "",
        rank_lines=textwrap.wrap(ranks, 96),
        methods=_SORTER if outputs is None else _SELECTOR,
        losses=[(loss.name, "" if outputs else loss.sentence) for loss in LOSSES.values()],
    )


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


def _interface(head: Head, request: Request) -> str:
    """Return the text of a package's C header: what its functions take, return and mean."""
    outputs = request.outputs(head.network.n)
    values = "the smallest first"
    routings = list(ROUTINGS.values())
    if outputs is not None:
        values = f"the results are those on wire {', '.join(map(str, outputs))}"
        routings = [routing for routing in routings if routing.selector is not None]
    return fill(
        "relaxed/interface.h.j2",
        head=head,
        version=KERNEL_ABI,
        values=values,
        statuses=[(status.name.lower(), status.value, _STATUSES[status]) for status in Status],
        routings=[(routing.name, routing.code, _meaning(routing)) for routing in routings],
        reals=[(REALS[real], _declared(real)) for real in request.dtypes],
    )


def _declared(real: str) -> dict[str, tuple[str, ...]]:
    """Return lines that declare each function for an arithmetic type."""
    declarations = {}
    for name, declared in FUNCTIONS.items():
        *parameters, last = (each.replace("real ", f"{REALS[real].type} ") for each in declared)
        start = f"int32_t {function_name(name, real)}("
        first, *others = filled([start, *(f"{each}," for each in parameters), f"{last});"], 112)
        declarations[name] = (first.replace("( ", "("), *(f"    {line}" for line in others))
    return declarations


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
