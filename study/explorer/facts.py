"""Facts: what the explorer shows of a network, as data that its page reads: `web/app.mjs`."""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from nsc import library
from nsc.arguments import real
from nsc.compiler.describe import describe, is_family
from nsc.compiler.driver import scheduled_network
from nsc.compiler.emit import emitted
from nsc.compiler.families import FAMILIES, best, least_depth, least_size, shallowest, summary_of
from nsc.compiler.formats import FORMATS, writable, write_network
from nsc.compiler.naming import package_name, purpose
from nsc.compiler.network import Network
from nsc.compiler.passes import live_halves, relayer, restrict
from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.relaxed.butterflies import in_butterflies
from nsc.compiler.relaxed.rendering import render
from nsc.compiler.request import Request
from nsc.compiler.schedule import CONE_COLUMNS, TERMS, Schedule, explain, reaching_blocks
from nsc.compiler.verify import CANONICAL_DIGEST, NETWORK_DIGEST, Budget, Proof, Verdict, diagnose, verify
from nsc.errors import NetworkError, VerificationError
from nsc.wording import argument, count

Facts = dict[str, Any]

# Beyond, comparators are closer than the pixels of a screen, and browsers take seconds.
MOST_WIRES = 128
MOST_COMPARATORS = 10_000
# P of so few wires is routed with a sample in each lane.
NARROW = int(library.constant("most_narrow_wires", "relaxed/network.h"))
# Longer texts are not part of a page.
MOST_CHARACTERS = 1 << 18
_SHUFFLE = 7

_BOUNDS = (
    "Least sizes: Knuth, TAOCP 5.3.4 (up to 8 wires); Codish et al. 2014 (9 and 10); Harder 2020 (11 and "
    "12); beyond by Van Voorhis 1972. Least depths: Parberry 1989 (up to 10 wires); Bundala and Závodný 2014 "
    "(up to 16); Ehlers and Müller 2015 (17); beyond by the least size and the comparators that fit a layer."
)


def gather(
    request: Request,
    budget: Budget,
    values: Sequence[float] | None = None,
    steepness: float | None = None,
) -> Facts:
    """Return the facts of a request's network: it is proved, scheduled and rendered, and nothing is written.

    A network that no method settles is shown as unproved, a refuted one with where it fails and without
    generated source.

    Args:
        request: the network, what is selected and the relaxation; its targets are not used.
        budget: what the proof may take.
        values: the input of each wire that is shown first; None: a shuffle of 1 … n.
        steepness: the steepness that is shown first; None: the default, twice the depth, and less of it for
            1 … n.

    Returns:
        What becomes JSON. Comparators are named by their numbers in the network.

        - `name`, `title`, `version`: an identifier for files, the network in a few words, nsc's version.
        - `n`, `layers`, `digests`: the network, a layer being a list of (lo, hi).
        - `ranks`: pairs of an output wire and its rank, of a selection (`is_selection`) the selected alone.
        - `proof`: verdict, claim, method and so on in words, and of a refuted network its `failure`.
        - `cut`: how kernels run it; None for a refuted network.
        - `bounds`: what is known of sorting networks on as many wires, and the families for comparison.
        - `formats`, `sources`: texts with a name, a file, a note, and None where the text is too long.
        - `sigmoids`: the names of the relaxations to choose from.
        - `start`: what is shown first.

    Raises:
        NetworkError: no such network, one that is too large for a page, values that are no finite number for
            each wire, or a steepness that is not positive and finite.
        PropertyError: ranks or wires that the network does not have.
    """
    network = describe(request.network, request.n, request.format, request.index_base, budget.progress)
    if network.n > MOST_WIRES or network.size > MOST_COMPARATORS:
        raise NetworkError(
            f"a page shows at most {count(MOST_WIRES, 'wire')} and {count(MOST_COMPARATORS, 'comparator')}, "
            f"this network has {count(network.n, 'wire')} and {count(network.size, 'comparator')}: write a "
            "picture, .svg or .pdf, or choose a smaller n"
        )
    start = _start(network, request.relaxation, values, steepness)
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
    return {
        "name": name,
        "title": _title(request, network),
        "version": request.version,
        "n": network.n,
        "layers": [layer.tolist() for layer in network.layers()],
        "digests": [
            {"name": NETWORK_DIGEST, "value": network.digest},
            {"name": CANONICAL_DIGEST, "value": outcome.canonical},
        ],
        "ranks": list(property_.ranks.items()),
        "is_selection": request.select is not None,
        "proof": _proof(network, request, outcome),
        "cut": None if scheduled is None else _cut(network, scheduled),
        "bounds": _bounds(network),
        "formats": list(_formats(network, name)),
        "sources": [] if scheduled is None else list(_sources(request, scheduled, outcome, name)),
        "sigmoids": list(SIGMOIDS),
        "start": start,
    }


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


def _start(
    network: Network, relaxation: Relaxation, values: Sequence[float] | None, steepness: float | None
) -> Facts:
    """Return what the page shows first."""
    default = 2.0 * max(1, network.depth)
    # The default is for values of about 1; for 1 … n this shows as soft a network.
    first = default if values is not None else float(f"{default / network.n:.2g}")
    given = first if steepness is None else real(steepness)
    if given is None or not 0 < given < float("inf"):
        raise NetworkError(f"{argument('steepness')} must be a number above 0 and finite, got {steepness!r}")
    return {
        "values": _shuffled(network.n) if values is None else _checked(values, network.n),
        "sigmoid": relaxation.sigmoid,
        "art_lambda": relaxation.art_lambda,
        "steepness": given,
        "form": "error-free" if relaxation.error_free else "relaxed",
        "default_steepness": default,
    }


def _shuffled(n: int) -> list[float]:
    values = list(map(float, range(1, n + 1)))
    random.Random(_SHUFFLE).shuffle(values)
    return values


def _checked(values: Sequence[float], n: int) -> list[float]:
    try:
        given = list(values)
    except TypeError:
        raise NetworkError(
            f"{argument('values')} must be finite numbers, one for each wire, got {values!r}"
        ) from None
    numbers = []
    for wire, value in enumerate(given):
        number = real(value)
        if number is None or not isfinite(number):
            raise NetworkError(
                f"{argument('values')} must be finite numbers, got {value!r} for wire {wire}, of "
                f"{count(len(given), 'value')}"
            )
        numbers.append(number)
    if len(numbers) != n:
        raise NetworkError(
            f"the network has {count(n, 'wire')}, {argument('values')} has {count(len(numbers), 'value')}: "
            "give one for each wire"
        )
    return numbers


def _proof(network: Network, request: Request, outcome: Proof) -> Facts:
    property_ = request.property_of(network.n)
    failure = None
    if outcome.counterexample is not None:
        found = diagnose(network, property_, outcome.counterexample)
        mend = None if found.mend is None else {**asdict(found.mend), "words": found.mend.words}
        failure = {**asdict(found), "mend": mend}
        outcome = replace(outcome, counterexample=found.vector, failing_input=found.values)
    return {
        "verdict": outcome.verdict.value,
        "claim": purpose(request, network.n),
        "sentence": outcome.sentence(),
        "method": outcome.method,
        "detail": outcome.detail,
        "json": outcome.to_json(),
        "failure": failure,
    }


def _part(network: Network, scheduled: Schedule) -> Network:
    """Return the part of a network that is scheduled, if it is scheduled at all."""
    return network if scheduled.outputs is None else relayer(restrict(network, scheduled.outputs))


def _cut(network: Network, scheduled: Schedule) -> Facts:
    """Return how a schedule cuts a network, of which it may run a part.

    `codelets` and `butterflies` are lists of comparators in running order. For P, kernels in C++ run or skip
    a butterfly as a whole: `reached` has for each a bit for each block of `columns` that reaches it. Without
    butterflies a kernel takes the exact light cone of each column.
    """
    scheduled, joined = in_butterflies(scheduled)
    outputs = range(network.n) if scheduled.outputs is None else scheduled.outputs
    is_live = live_halves(network, outputs).any(axis=1)
    # Comparators of the same two wires run in the order of the network.
    numbers: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    for number in np.flatnonzero(is_live).tolist():
        lo, hi = network.comparators[number].tolist()
        numbers[lo, hi].append(number)
    codelets = [[numbers[pair].popleft() for pair in codelet.comparators()] for codelet in scheduled.codelets]
    figures = explain(scheduled)
    words = [
        f"{count(figures.comparators, 'comparator')} in {count(figures.codelets, 'codelet')} of "
        f"{count(figures.shapes, 'shape')}",
        f"{figures.comparators_per_load:.2f} comparators per wire loaded; a layer at a time is 0.50",
    ]
    if network.n <= NARROW and scheduled.outputs is None:
        words.append("P of few wires takes the light cone of each column")
        return {"codelets": codelets, "columns": 1, "butterflies": None, "figures": words, "terms": TERMS}
    butterflies, wires = [], []
    for codelet, comparators in zip(scheduled.codelets, codelets, strict=True):
        for butterfly in joined[codelet.shape]:
            butterflies.append([comparators[slot] for slot in butterfly.slots])
            wires.append(tuple(codelet.wires[place] for place in butterfly.wires))
    reached = list(reaching_blocks(network.n, wires, CONE_COLUMNS))
    runs = sum(blocks.bit_count() * len(each) for blocks, each in zip(reached, butterflies, strict=True))
    share = runs / max(1, -(-network.n // CONE_COLUMNS) * figures.comparators)
    words.append(f"P takes {share:.0%} of the dense work; the rest lies outside the light cones")
    return {
        "codelets": codelets,
        "columns": CONE_COLUMNS,
        "butterflies": butterflies,
        "reached": reached,
        "figures": words,
        "terms": TERMS,
    }


def _bounds(shown: Network) -> Facts:
    n = shown.n
    return {
        "size": best(n).size,
        "depth": shallowest(n).depth,
        "least_size": least_size(n),
        "least_depth": least_depth(n),
        "families": list(_families(shown)),
        "source": _BOUNDS,
    }


def _families(shown: Network) -> Iterator[Facts]:
    for name, family in FAMILIES.items():
        summary = summary_of(name).removeprefix("Return ").rstrip(".")
        size = depth = None
        is_own = False
        try:
            network = family(shown.n)
            size, depth, is_own = network.size, network.depth, network == shown
        except NetworkError as error:  # it is too large
            summary = str(error)
        yield {"name": name, "summary": summary, "size": size, "depth": depth, "is_own": is_own}


def _formats(network: Network, name: str) -> Iterator[Facts]:
    for format_ in writable():
        suffix = FORMATS[format_].suffixes[0] if FORMATS[format_].suffixes else f".{format_}"
        advice = f"save the nsc format and run nsc convert {name}.json {name}{suffix} --to {format_}"
        yield _text(format_, f"{name}{suffix}", write_network(network, format_), MOST_CHARACTERS, advice)


def _sources(request: Request, scheduled: Schedule, outcome: Proof, name: str) -> Iterator[Facts]:
    is_proved = outcome.verdict is Verdict.PROVED
    request = replace(request, unproved=not is_proved)
    plain = replace(request, language="c", relaxation=Relaxation())
    files = render(request, scheduled, outcome).files
    for language, file, text in (
        ("C", f"{name}.h", emitted(plain, scheduled, outcome).text),
        ("C++", f"{name}.cpp", files[f"{name}.cpp"]),
        ("CUDA", f"{name}.cu", files[f"{name}.cu"]),
        ("Python", "__init__.py", files["__init__.py"]),
    ):
        facts = _text(language, file, text, 2 * MOST_CHARACTERS, "nsc compile writes them.")
        warning = "" if is_proved else "The network is unproved: nsc compile needs --unproved."
        yield {**facts, "note": f"{warning} {facts['note']}".strip()}


def _text(name: str, file: str, text: str, most: int, advice: str) -> Facts:
    if len(text) <= most:
        return {"name": name, "file": file, "note": "", "text": text}
    note = f"{len(text):,} characters, too many for this page: {advice}"
    return {"name": name, "file": file, "note": note, "text": None}
