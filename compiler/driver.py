"""The stages of the compiler, once in words and once as calls."""

from __future__ import annotations

import textwrap
from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from nsc.compiler.describe import describe, is_family
from nsc.compiler.formats import write_network
from nsc.compiler.naming import command, package_name, proof_line, purpose
from nsc.compiler.network import Network
from nsc.compiler.optimize.candidates import MOST_OPTIMIZED, smallest_first
from nsc.compiler.optimize.redundant import remove_redundant
from nsc.compiler.package import MANIFEST, Package, kernel_facts, manifest_text
from nsc.compiler.passes.relayer import relayer
from nsc.compiler.passes.restrict import restrict
from nsc.compiler.progress import SILENT, Progress
from nsc.compiler.request import Request
from nsc.compiler.schedule.cuda_levels import levels
from nsc.compiler.schedule.ir import schedule
from nsc.compiler.targets.render import (
    KERNEL_ABI,
    REALS,
    Header,
    arrays_of_weights,
    render_cpp,
    render_cuda,
)
from nsc.compiler.verify import UNTIMED, Budget, Proof, Property, Verdict, parse, sort, verify
from nsc.compiler.verify.question import BudgetError
from nsc.compiler.verify.reachable import FEW_STATES
from nsc.contract.targets import TARGETS
from nsc.errors import UnprovedError, VerificationError
from nsc.templates import fill
from nsc.wording import argument


@dataclass(frozen=True)
class Compiled:
    """What the stages made of a request.

    Attributes:
        network: what was compiled: the network asked for, or what of it the selected values need.
        proof: that it does what it is compiled for.
        package: the generated texts.
    """

    network: Network
    proof: Proof
    package: Package


def compile_network(request: Request, budget: Budget | None = None) -> Compiled:
    """Describe, transform, prove, schedule, render.

    describe:  family, file or lists → Network
    transform: Network + Property → Network, what the wanted values need of it
    prove:     Network + Property → Proof; one without the property is refused, an unproved one unless
               asked for
    schedule:  Network + outputs → Schedule
    render:    Schedule + Relaxation → Package, the texts of the generated folder

    `package.write` puts the result on disk.

    Args:
        request: what to compile.
        budget: what proving may take, and who is told of the stages; None: what it takes by itself, nobody.

    Raises:
        NetworkError: no such family or file, or no network in it.
        PropertyError: ranks or wires that the network does not have.
        VerificationError: the network does not sort, or does not select what it should.
        UnprovedError: no method settled it, and the request does not accept that.
    """
    progress = SILENT if budget is None else budget.progress
    given = describe(request.network, request.n, request.format, request.index_base, progress)
    property_ = _property(request, given.n)
    progress.phase("transform")
    if is_family(request.network) and request.network == "best" and request.select is not None:
        network, proof = _smallest_proved(property_, request, budget)
        return Compiled(network, proof, _render(request, network, property_, proof, progress))
    network = _transform(given, property_, request, budget)
    try:
        proof = prove(network, property_, request.unproved, budget)
    except VerificationError:
        middle = list(property_.ranks)
        if request.select != "median" or len(middle) == 1:
            raise
        # Networks for the median of an even number leave the two middle values in any order.
        given = Network.from_layers(given.n, [*given.layers(), [middle]])
        network = _transform(given, property_, request, budget)
        proof = prove(network, property_, request.unproved, budget)
    return Compiled(network, proof, _render(request, network, property_, proof, progress))


def _property(request: Request, n: int) -> Property:
    """Return what the compiled network must do, each wanted wire with one rank."""
    if request.select is None:
        return sort(n)
    asked = parse(request.select, n, request.wires)
    if asked.ranks:
        return asked
    # The median of an even number: two ranks, which are given out in their order.
    (middle,) = asked.groups
    return parse(f"rank-{middle.first},{middle.first + 1}", n, request.wires)


def _smallest_proved(property_: Property, request: Request, budget: Budget | None) -> tuple[Network, Proof]:
    """Return the network of fewest half operations that is proved, with its proof.

    Of many wires without the methods that a clock ends, so that which it is does not depend on the machine,
    and without long searches, since there are many networks; if none is proved, or on the user's word, that
    of fewest of all.
    """
    networks = smallest_first(property_)
    methods = None if property_.n <= MOST_OPTIMIZED else UNTIMED
    short = replace(Budget() if budget is None else budget, states=FEW_STATES)
    for network in networks if not request.unproved else ():
        try:
            made = _transform(network, property_, request, short)
            return made, prove(made, property_, budget=short, methods=methods)
        except UnprovedError:
            continue
    made = _transform(networks[0], property_, request, budget)
    return made, prove(made, property_, request.unproved, budget)


def _transform(network: Network, property_: Property, request: Request, budget: Budget | None) -> Network:
    """Return what the wanted values need of a network; the network itself where all are."""
    made = network
    if request.without_redundant:
        try:
            made = remove_redundant(made, property_, Budget() if budget is None else budget)
        except BudgetError as ended:
            raise UnprovedError(
                f"redundant comparators are found by reachable sets, which ended at {ended}: compile "
                f"without {argument('without_redundant', True)}"
            ) from None
    if property_.is_sort and made is network:
        return network
    return relayer(restrict(made, property_.ranks))


def prove(
    network: Network,
    property_: Property | None = None,
    unproved: bool = False,
    budget: Budget | None = None,
    methods: Collection[str] | None = None,
) -> Proof:
    """Return the proof that a network has a property; None: that it sorts; methods as of `verify`.

    Raises:
        VerificationError: it has not; the message and the error carry a counterexample.
        UnprovedError: not settled, and `unproved` is false.
    """
    # The same network, the same package: how long a proof took is no part of it.
    proof = replace(verify(network, property_, budget, methods), seconds=None)
    if proof.verdict is Verdict.REFUTED:
        assert proof.counterexample is not None
        assert proof.failing_input is not None
        raise VerificationError(
            f"the network {_sentence(proof)}: 0-1 input {_vector(proof.counterexample)} and integer "
            f"input {_vector(proof.failing_input)} come out "
            f"{'unsorted' if proof.property == 'sort' else 'wrong'}",
            proof.counterexample,
            proof.failing_input,
        )
    if proof.verdict is Verdict.UNPROVED and not unproved:
        raise UnprovedError(
            f"the network is unproved: {proof.detail}. To compile it all the same, on your word that "
            f"it {'sorts' if proof.property == 'sort' else f'selects {proof.property}'}, add "
            f"{argument('unproved', True)}"
        )
    return proof


def _sentence(proof: Proof) -> str:
    return "does not sort" if proof.property == "sort" else f"does not select {proof.property}"


def _vector(values: tuple[int, ...]) -> str:
    shown = " ".join(map(str, values[:64]))
    return shown if len(values) <= 64 else f"{shown} … ({len(values)} values)"


def _render(
    request: Request, network: Network, property_: Property, proof: Proof, progress: Progress
) -> Package:
    name = package_name(request, network.n)
    outputs = _outputs(request, property_)
    relaxation = request.relaxation
    header = Header(
        name, purpose(request, network.n), command(request, name), request.version, proof_line(proof)
    )
    sources = {target: f"{name}{TARGETS[target].suffix}" for target in request.targets}
    progress.phase("schedule")
    made = schedule(network, None if outputs is None else tuple(outputs))
    progress.phase("render")
    facts: dict[str, object] = {
        "name": name,
        "nsc": request.version,
        "command": header.command,
        "n": network.n,
        "size": network.size,
        "depth": network.depth,
        "outputs": None if outputs is None else [list(output) for output in outputs.items()],
        "network": network.digest,
        "proof": proof.verdict.value,
        "sigmoid": relaxation.sigmoid,
        "art_lambda": relaxation.art_lambda,
        "error_free": relaxation.error_free,
        "reals": {real: list(REALS[real].serves) for real in request.dtypes},
        "abi": KERNEL_ABI,
        "sources": sources,
        "cuda": {},
    }
    network_text = write_network(network)
    texts = {}
    if "cpu" in sources:
        stated = replace(header, facts=kernel_facts(facts, network_text))
        texts[sources["cpu"]] = render_cpp(stated, made, relaxation, request.dtypes)
    if "cuda" in sources:
        in_levels = levels(made, arrays_of_weights(relaxation))
        launch = facts["cuda"] = asdict(in_levels.launch)
        stated = replace(header, facts=kernel_facts(facts, network_text, launch))
        texts[sources["cuda"]] = render_cuda(stated, in_levels, relaxation, request.dtypes)
    files = {
        "__init__.py": _module(request, header, network, outputs),
        **texts,
        "network.json": network_text,
        "proof.json": proof.to_json(),
    }
    files[MANIFEST] = manifest_text(facts, files)
    return Package(name, MappingProxyType(files))


def _outputs(request: Request, property_: Property) -> dict[int, int] | None:
    """Return the wires that are given out, in order, with their ranks: the largest of a top-k first."""
    if request.select is None:
        return None
    outputs = list(property_.ranks.items())
    return dict(outputs[::-1] if request.select.startswith("top-") else outputs)


def _module(request: Request, header: Header, network: Network, outputs: dict[int, int] | None) -> str:
    accepts = [dtype for real in request.dtypes for dtype in REALS[real].serves]
    error_free = request.relaxation.error_free
    facts = {
        **header.__dict__,
        "n": network.n,
        "last": network.n - 1,
        "size": network.size,
        "depth": network.depth,
        "counts": network.counts,
        "relaxation": request.relaxation.describe(),
        "dtypes": ", ".join(request.dtypes),
        "targets": " and ".join(request.targets),
        "accepts": ", ".join(accepts),
        "default_steepness": 2 * network.depth,
        "tie_note": " in the gradient and keep their places" if error_free else "",
    }
    if outputs is None:
        return fill("python/sort.py.j2", {"module": facts})
    ranks = tuple(outputs.values())
    lines = textwrap.wrap(", ".join(map(str, ranks)) + ",", 96)
    return fill("python/select.py.j2", {"module": facts, "selected": {"k": len(ranks), "rank_lines": lines}})
