"""Gathering: from a request to the facts that a page shows."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from nsc.compiler.describe import describe, is_family
from nsc.compiler.driver import scheduled_network
from nsc.compiler.families import FAMILIES, best, least_depth, least_size, shallowest
from nsc.compiler.formats import FORMATS, writable, write_network
from nsc.compiler.header import render_header
from nsc.compiler.naming import package_name, purpose
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves, relayer, restrict
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.relaxed.butterflies import in_butterflies
from nsc.compiler.relaxed.cpp import NARROW
from nsc.compiler.relaxed.rendering import render
from nsc.compiler.request import Request
from nsc.compiler.schedule import CONE_COLUMNS, TERMS, Schedule, explain, reaching_blocks
from nsc.compiler.verify import CANONICAL_DIGEST, NETWORK_DIGEST, Budget, Verdict, diagnose, verify
from nsc.compiler.verify import Proof as Outcome
from nsc.errors import NetworkError, VerificationError
from nsc.study.explorer.facts import (
    Bounds,
    Cut,
    Digest,
    Facts,
    FailureFacts,
    FamilyFacts,
    MendFacts,
    ProofFacts,
    Settings,
    SigmoidFacts,
    Start,
    Text,
)
from nsc.wording import count

# Beyond, comparators are closer than the pixels of a screen, and browsers take seconds.
MOST_WIRES = 128
MOST_COMPARATORS = 10_000
# Longer texts are not part of a page.
MOST_CHARACTERS = 1 << 18
_SHUFFLE = 7

_BOUNDS = (
    "Least sizes: Knuth, TAOCP 5.3.4 (up to 8 wires); Codish et al. 2014 (9 and 10); Harder 2020 (11 and "
    "12); beyond by Van Voorhis 1972. Least depths: Parberry 1989 (up to 10 wires); Bundala and Závodný 2014 "
    "(up to 16); Ehlers and Müller 2015 (17); beyond by the least size and the comparators that fit a layer."
)


def gather(request: Request, start: Start, budget: Budget) -> Facts:
    """Return the facts of a request's network: it is proved, scheduled and rendered, and nothing is written.

    A network that no method settles is shown as unproved, a refuted one with where it fails and without
    generated source.

    Args:
        request: the network, what is selected and the relaxation; its targets are not used.
        start: what the page shows first.
        budget: what the proof may take.

    Raises:
        NetworkError: no such network, one that is too large for a page, or values for other wires.
        PropertyError: ranks or wires that the network does not have.
    """
    network = describe(request.network, request.n, request.format, request.index_base, budget.progress)
    if network.n > MOST_WIRES or network.size > MOST_COMPARATORS:
        raise NetworkError(
            f"a page shows at most {count(MOST_WIRES, 'wire')} and {count(MOST_COMPARATORS, 'comparator')}, "
            f"this network has {count(network.n, 'wire')} and {count(network.size, 'comparator')}: write a "
            "picture, .svg or .pdf, or choose a smaller n"
        )
    start.check(network.n)
    request = replace(request, targets=("cpu", "cuda"), unproved=True)
    property_ = request.property_of(network.n)
    try:
        scheduled, outcome = scheduled_network(request, budget)
    except VerificationError:
        scheduled, outcome = None, verify(network, property_, budget)
    if scheduled is not None and _part(network, scheduled) != scheduled.network:
        network = scheduled.network  # another network, which nsc compile takes for this selection
    budget.progress.phase("write")
    name = package_name(request, network.n)
    return Facts(
        name=name,
        title=_title(request, network),
        version=request.version,
        n=network.n,
        layers=tuple(tuple((lo, hi) for lo, hi in layer.tolist()) for layer in network.layers()),
        digests=(
            Digest(NETWORK_DIGEST, network.digest),
            Digest(CANONICAL_DIGEST, outcome.canonical),
        ),
        ranks=tuple(property_.ranks.items()),
        is_selection=request.select is not None,
        proof=_proof(network, request, outcome),
        cut=None if scheduled is None else _cut(network, scheduled),
        bounds=_bounds(network),
        formats=tuple(_formats(network, name)),
        sources=() if scheduled is None else tuple(_sources(request, scheduled, outcome, name)),
        sigmoids=tuple(SigmoidFacts(*each) for each in SIGMOIDS.items()),
        start=_settings(network, request.relaxation, start),
    )


def _title(request: Request, network: Network) -> str:
    if is_family(request.network):
        subject = str(request.network)
    elif isinstance(request.network, str | Path):
        # A file's name may hold bytes that are no UTF-8.
        subject = Path(request.network).stem.encode("utf-8", "replace").decode()
    else:
        subject = "network"
    selected = "" if request.select is None else f", {request.select.words}"
    return f"{subject}, {count(network.n, 'wire')}{selected}"


def _settings(network: Network, relaxation: Relaxation, start: Start) -> Settings:
    values = list(map(float, range(1, network.n + 1)))
    random.Random(_SHUFFLE).shuffle(values)
    default = 2.0 * max(1, network.depth)
    # The default is for values of about 1; for 1 … n this shows as soft a network.
    own = default if start.values is not None else float(f"{default / network.n:.2g}")
    return Settings(
        values=tuple(values) if start.values is None else start.values,
        sigmoid=relaxation.sigmoid,
        art_lambda=relaxation.art_lambda,
        steepness=own if start.steepness is None else start.steepness,
        form="error-free" if relaxation.error_free else "relaxed",
        default_steepness=default,
    )


def _proof(network: Network, request: Request, outcome: Outcome) -> ProofFacts:
    property_ = request.property_of(network.n)
    failure = None
    if outcome.counterexample is not None:
        found = diagnose(network, property_, outcome.counterexample)
        mend = None if found.mend is None else MendFacts(**asdict(found.mend), words=found.mend.words)
        failure = FailureFacts(found.vector, found.values, found.wires, found.layer, mend)
        outcome = replace(outcome, counterexample=found.vector, failing_input=found.values)
    return ProofFacts(
        verdict=outcome.verdict.value,
        claim=purpose(request, network.n),
        sentence=outcome.sentence(),
        method=outcome.method,
        detail=outcome.detail,
        json=outcome.to_json(),
        failure=failure,
    )


def _part(network: Network, scheduled: Schedule) -> Network:
    """Return the part of a network that is scheduled, if it is scheduled at all."""
    return network if scheduled.outputs is None else relayer(restrict(network, scheduled.outputs))


def _cut(network: Network, scheduled: Schedule) -> Cut:
    """Return how a schedule cuts a network, of which it may run a part."""
    scheduled, joined = in_butterflies(scheduled)
    outputs = range(network.n) if scheduled.outputs is None else scheduled.outputs
    is_live = live_halves(network, outputs).any(axis=1)
    # Comparators of the same two wires run in the order of the network.
    numbers: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    for number in is_live.nonzero()[0].tolist():
        lo, hi = network.comparators[number].tolist()
        numbers[lo, hi].append(number)
    codelets = tuple(
        tuple(numbers[pair].popleft() for pair in codelet.comparators()) for codelet in scheduled.codelets
    )
    figures = explain(scheduled)
    words = [
        f"{count(figures.comparators, 'comparator')} in {count(figures.codelets, 'codelet')} of "
        f"{count(figures.shapes, 'shape')}",
        f"{figures.comparators_per_load:.2f} comparators per wire loaded; a layer at a time is 0.50",
    ]
    if network.n <= NARROW and scheduled.outputs is None:
        words.append("P of few wires takes the light cone of each column")
        return Cut(codelets, columns=1, butterflies=None, reached=(), figures=tuple(words), terms=TERMS)
    butterflies, wires = [], []
    for codelet, comparators in zip(scheduled.codelets, codelets, strict=True):
        for butterfly in joined[codelet.shape]:
            butterflies.append(tuple(comparators[slot] for slot in butterfly.slots))
            wires.append(tuple(codelet.wires[place] for place in butterfly.wires))
    reached = tuple(reaching_blocks(network.n, wires, CONE_COLUMNS))
    runs = sum(blocks.bit_count() * len(each) for blocks, each in zip(reached, butterflies, strict=True))
    share = runs / max(1, -(-network.n // CONE_COLUMNS) * figures.comparators)
    words.append(f"P takes {share:.0%} of the dense work; the rest lies outside the light cones")
    return Cut(codelets, CONE_COLUMNS, tuple(butterflies), reached, tuple(words), TERMS)


def _bounds(shown: Network) -> Bounds:
    n = shown.n
    size, depth = best(n).size, shallowest(n).depth
    return Bounds(
        size=size,
        depth=depth,
        least_size=least_size(n),
        least_depth=least_depth(n),
        families=tuple(_families(shown)),
        source=_BOUNDS,
    )


def _families(shown: Network) -> Iterator[FamilyFacts]:
    for name, family in FAMILIES.items():
        summary = family.summary.removeprefix("Return ").rstrip(".")
        try:
            network = family(shown.n)
            yield FamilyFacts(name, summary, network.size, network.depth, network == shown)
        except NetworkError as error:
            yield FamilyFacts(name, str(error), None, None, is_own=False)


def _formats(network: Network, name: str) -> Iterator[Text]:
    for format_ in writable():
        suffix = FORMATS[format_].suffixes[0] if FORMATS[format_].suffixes else f".{format_}"
        text = write_network(network, format_)
        is_short = len(text) <= MOST_CHARACTERS
        note = (
            ""
            if is_short
            else f"{len(text):,} characters, too many for this page: save the nsc format and run "
            f"nsc convert {name}.json {name}{suffix} --to {format_}"
        )
        yield Text(format_, f"{name}{suffix}", note, text if is_short else None)


def _sources(request: Request, scheduled: Schedule, outcome: Outcome, name: str) -> Iterator[Text]:
    request = replace(request, unproved=outcome.verdict is Verdict.UNPROVED)
    plain = replace(request, is_header=True, relaxation=Relaxation())
    files = render(request, scheduled, outcome).files
    note = (
        "" if outcome.verdict is Verdict.PROVED else "The network is unproved: nsc compile needs --unproved."
    )
    for language, file, text in (
        ("C", f"{name}.h", render_header(plain, scheduled, outcome).text),
        ("C++", f"{name}.cpp", files[f"{name}.cpp"]),
        ("CUDA", f"{name}.cu", files[f"{name}.cu"]),
        ("Python", "__init__.py", files["__init__.py"]),
    ):
        is_short = len(text) <= 2 * MOST_CHARACTERS
        lack = (
            "" if is_short else f"{len(text):,} characters, too many for this page: nsc compile writes them."
        )
        yield Text(language, file, f"{note} {lack}".strip(), text if is_short else None)
