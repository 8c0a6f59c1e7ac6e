"""Facts: what the explorer shows of a network, as data that its page reads.

Each record becomes a JSON object with the same names. `web/app.mjs` reads them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from nsc.arguments import real
from nsc.errors import NetworkError
from nsc.wording import argument, count

FORMAT = "nsc-explorer/1"


@dataclass(frozen=True)
class Start:
    """What a page shows first.

    Attributes:
        values: the input of each wire; None: a shuffle of 1 … n.
        steepness: of the relaxation; None: the default, twice the depth, and less of it for 1 … n.

    Raises:
        NetworkError: a value that is no finite number, or a steepness that is not positive and finite.
    """

    values: tuple[float, ...] | None = None
    steepness: float | None = None

    def __post_init__(self) -> None:
        numbers = () if self.values is None else tuple(map(real, self.values))
        for wire, number in enumerate(numbers):
            if number is None or not abs(number) < float("inf"):
                wrong = (self.values or ())[wire]
                raise NetworkError(
                    f"{argument('values')} must be finite numbers, got {wrong!r} for wire {wire}, of "
                    f"{count(len(numbers), 'value')}"
                )
        object.__setattr__(self, "values", None if self.values is None else numbers)
        steepness = None if self.steepness is None else real(self.steepness)
        if self.steepness is not None and (steepness is None or not 0 < steepness < float("inf")):
            raise NetworkError(
                f"{argument('steepness')} must be a number above 0 and finite, got {self.steepness!r}"
            )
        object.__setattr__(self, "steepness", steepness)

    def check(self, n: int) -> None:
        """Raise NetworkError unless there is a value for each of n wires."""
        if self.values is not None and len(self.values) != n:
            raise NetworkError(
                f"the network has {count(n, 'wire')}, {argument('values')} has "
                f"{count(len(self.values), 'value')}: give one for each wire"
            )


@dataclass(frozen=True)
class Text:
    """A text about the network: a file in some format, or generated source.

    Attributes:
        name: what it is, such as "C++".
        file: a name for the file.
        note: what a reader should know of it; empty: nothing.
        text: the text; None: it is too long for the page, or there is none, and the note says why.
    """

    name: str
    file: str
    note: str
    text: str | None


@dataclass(frozen=True)
class MendFacts:
    """The change that mends the network; its fields are as of `verify.Mend`."""

    kind: str
    lo: int
    hi: int
    layer: int
    words: str


@dataclass(frozen=True)
class FailureFacts:
    """Where a refuted network fails.

    Attributes:
        vector: a 0-1 input that comes out wrong.
        values: a permutation that comes out wrong.
        wires: the output wires that are wrong for the 0-1 input.
        layer: the last layer with a comparator on one of these; None: there is none.
        mend: the change that mends the network; None: none was found.
    """

    vector: tuple[int, ...]
    values: tuple[int, ...]
    wires: tuple[int, ...]
    layer: int | None
    mend: MendFacts | None


@dataclass(frozen=True)
class ProofFacts:
    """The outcome of the verification, in words.

    Attributes:
        verdict: proved, refuted or unproved.
        claim: what was to be proved, in words.
        sentence, method, detail: as of `verify.Proof`.
        json: the proof as `nsc verify --json` prints it.
        failure: where the network fails; None: it is not refuted.
    """

    verdict: str
    claim: str
    sentence: str
    method: str
    detail: str
    json: str
    failure: FailureFacts | None


@dataclass(frozen=True)
class Digest:
    """A SHA-256, and what it is of."""

    name: str
    value: str


@dataclass(frozen=True)
class Cut:
    """How kernels run the network.

    Attributes:
        codelets: the comparators of each codelet, by their numbers in the network, in running order.
        columns: columns of P whose light cone is taken as one.
        butterflies: the comparators that kernels in C++ run or skip together for P, in running order; None:
            a kernel takes the exact light cone of each column.
        reached: of each butterfly the blocks of columns that reach it, a bit for each.
        figures: facts in words.
        terms: what the words mean that these and the page use.
    """

    codelets: tuple[tuple[int, ...], ...]
    columns: int
    butterflies: tuple[tuple[int, ...], ...] | None
    reached: tuple[int, ...]
    figures: tuple[str, ...]
    terms: dict[str, str]


@dataclass(frozen=True)
class FamilyFacts:
    """A family's network on as many wires.

    Attributes:
        name, summary: what it is.
        size, depth: its comparators and layers; None: it is too large.
        is_own: whether it is the network that the page shows.
    """

    name: str
    summary: str
    size: int | None
    depth: int | None
    is_own: bool


@dataclass(frozen=True)
class Bounds:
    """What is known of sorting networks on as many wires.

    Attributes:
        size, depth: the least that nsc knows or can construct.
        least_size, least_depth: what every sorting network has at least.
        families: the families, for comparison.
        source: where the bounds come from.
    """

    size: int
    depth: int
    least_size: int
    least_depth: int
    families: tuple[FamilyFacts, ...]
    source: str


@dataclass(frozen=True)
class SigmoidFacts:
    """A relaxation to choose, with its source."""

    name: str
    source: str


@dataclass(frozen=True)
class Settings:
    """What the page shows first.

    Attributes:
        values: the input of each wire.
        sigmoid, art_lambda, steepness: the relaxation.
        form: "relaxed" or "error-free".
        default_steepness: twice the depth.
    """

    values: tuple[float, ...]
    sigmoid: str
    art_lambda: float
    steepness: float
    form: str
    default_steepness: float


@dataclass(frozen=True)
class Facts:
    """All that the page shows of a network.

    Attributes:
        name: an identifier for files.
        title: the network in a few words.
        version: of nsc.
        n, layers: the network; a layer is a tuple of (lo, hi).
        digests: of the network and of its canonical form.
        ranks: the rank that each output wire carries; of a selection of the selected wires alone.
        is_selection: whether only some ranks are selected.
        proof, cut, bounds: see there; no cut of a refuted network.
        formats: the network in every format.
        sources: generated source.
        sigmoids: the relaxations to choose from.
        start: what is shown first.
    """

    name: str
    title: str
    version: str
    n: int
    layers: tuple[tuple[tuple[int, int], ...], ...]
    digests: tuple[Digest, ...]
    ranks: tuple[tuple[int, int], ...]
    is_selection: bool
    proof: ProofFacts
    cut: Cut | None
    bounds: Bounds
    formats: tuple[Text, ...]
    sources: tuple[Text, ...]
    sigmoids: tuple[SigmoidFacts, ...]
    start: Settings

    def to_json(self) -> str:
        """Return the facts as JSON; the same facts, the same text."""
        facts = {"format": FORMAT, **asdict(self)}
        return json.dumps(facts, separators=(",", ":"), ensure_ascii=False)
