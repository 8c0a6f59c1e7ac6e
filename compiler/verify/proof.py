"""Proof: the outcome of a verification, as data and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from nsc.compiler.cards import Mood, bits, card
from nsc.errors import PropertyError
from nsc.strict_json import read_json

PROOF_FORMAT = "nsc-proof/1"
Vector = tuple[int, ...]
Digest = str
# How the two digests of a network are called, wherever one is shown.
NETWORK_DIGEST, CANONICAL_DIGEST = "digest of the network", "digest of its canonical form"
CERTIFICATE_DIGEST = "digest of the certificate"


class Verdict(Enum):
    """The verdict of a verification on a network and a property.

    >>> Verdict("refuted") is Verdict.REFUTED
    True
    """

    PROVED = "proved"
    REFUTED = "refuted"
    UNPROVED = "unproved"


_MOODS = {Verdict.PROVED: Mood.GOOD, Verdict.REFUTED: Mood.BAD, Verdict.UNPROVED: Mood.OPEN}


@dataclass(frozen=True)
class Proof:
    """The outcome of a verification; true only if the property is proved.

    Attributes:
        verdict: proved, refuted or unproved.
        property: the name of the property, which `property.parse` reads.
        method: the method that settled it, a key of METHODS, or "sampling".
        detail: the argument in one sentence, with its figures.
        canonical: digest of the network's canonical form, which every layering of the network shares.
        states: 0-1 patterns of the largest join; None for methods without joins.
        conflicts: conflicts of the SAT solver; None for other methods.
        seconds: the time taken; None where equal proofs must be equal bytes.
        counterexample: a 0-1 input that comes out wrong, if refuted.
        failing_input: a permutation of 0 … n-1 that comes out wrong, if refuted.
        certificate: SHA-256 of the certificate that was written; None if none was.

    >>> import nsc
    >>> proof = nsc.verify("bitonic", 8)
    >>> bool(proof), proof.verdict, proof.method
    (True, <Verdict.PROVED: 'proved'>, 'exhaustion')
    """

    verdict: Verdict
    property: str
    method: str
    detail: str
    canonical: Digest
    states: int | None = None
    conflicts: int | None = None
    seconds: float | None = None
    counterexample: Vector | None = None
    failing_input: Vector | None = None
    certificate: Digest | None = None

    def __post_init__(self) -> None:
        assert (self.verdict is Verdict.REFUTED) == (self.counterexample is not None)

    def __bool__(self) -> bool:
        """Return whether the property is proved, not refuted or unproved."""
        return self.verdict is Verdict.PROVED

    def sentence(self) -> str:
        """Return the verdict in words: "sorts", "does not sort", "median: proved".

        >>> import nsc
        >>> nsc.verify([(0, 1)], 3).sentence()
        'does not sort'
        """
        if self.property == "sort":
            return {"proved": "sorts", "refuted": "does not sort"}.get(self.verdict.value, "unproved")
        return f"{self.property}: {self.verdict.value}"

    def _repr_html_(self) -> str:
        """Return the verdict and the counterexample, which a notebook shows."""
        facts = {
            "property": self.property,
            "method": self.method,
            "argument": self.detail,
            CANONICAL_DIGEST: f"sha256 {self.canonical[:12]}…",
        }
        if self.counterexample is not None and self.failing_input is not None:
            facts["0-1 input that comes out wrong"] = bits(self.counterexample)
            facts["permutation that comes out wrong"] = " ".join(map(str, self.failing_input))
        return card(self.sentence(), facts, mood=_MOODS[self.verdict])

    def facts(self) -> dict[str, Any]:
        """Return the proof as a JSON object.

        >>> import nsc
        >>> nsc.verify([(0, 1)], 2).facts()["verdict"]
        'proved'
        """
        return {"format": PROOF_FORMAT, **asdict(self), "verdict": self.verdict.value}

    def to_json(self) -> str:
        """Return the proof as JSON text; equal proofs give equal bytes.

        >>> import nsc
        >>> proof = nsc.verify([(0, 1)], 2)
        >>> Proof.from_json(proof.to_json()) == proof
        True
        """
        return json.dumps(self.facts(), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Proof:
        """Return the proof in a JSON text.

        Raises:
            PropertyError: the text holds no proof, a proof of another format, or an invalid field.

        >>> import nsc
        >>> Proof.from_json(nsc.verify("bitonic", 4).to_json()).sentence()
        'sorts'
        """
        try:
            facts = read_json(text)
        except (ValueError, RecursionError) as error:
            raise PropertyError(f"not a proof that nsc wrote: not JSON: {error}") from None
        if not isinstance(facts, dict) or not str(facts.get("format")).startswith("nsc-proof/"):
            raise PropertyError(f'not a proof that nsc wrote: it has no "format": "{PROOF_FORMAT}"')
        if facts["format"] != PROOF_FORMAT:
            raise PropertyError(
                f"a proof of format {_shown(facts['format'])}, this nsc reads {PROOF_FORMAT}: "
                "verify the network again"
            )
        names = [each.name for each in fields(cls)]
        for each in fields(cls):
            name, (fits, valid) = each.name, _VALID[str(each.type)]
            if name not in facts:
                raise PropertyError(f'the proof was changed: "{name}" is missing')
            if not fits(facts[name]):
                raise PropertyError(
                    f'the proof was changed: "{name}" must be {valid}, found {_shown(facts[name])}'
                )
        refuted = facts["verdict"] == Verdict.REFUTED.value
        for name in ("counterexample", "failing_input"):
            if refuted != (facts[name] is not None):
                raise PropertyError(
                    f'the proof was changed: "verdict" is "{facts["verdict"]}" and "{name}" is '
                    f"{_shown(facts[name])}: a refutation must have one, other proofs must not"
                )
            facts[name] = None if facts[name] is None else tuple(facts[name])
        return cls(**{name: facts[name] for name in names} | {"verdict": Verdict(facts["verdict"])})


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "…"


def _is_digest(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


_VERDICTS = [verdict.value for verdict in Verdict]
# For the type of each field, a test of its JSON value, and the valid values in words.
_VALID: dict[str, tuple[Callable[[Any], bool], str]] = {
    "Verdict": (lambda value: value in _VERDICTS, f"one of {', '.join(_VERDICTS)}"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "Digest": (_is_digest, "a digest of 64 digits"),
    "Digest | None": (lambda value: value is None or _is_digest(value), "a digest of 64 digits or null"),
    "int | None": (lambda value: value is None or (type(value) is int and value >= 0), "a count or null"),
    "float | None": (
        lambda value: value is None or (type(value) in (int, float) and value >= 0),
        "a time or null",
    ),
    "Vector | None": (
        lambda value: value is None or (isinstance(value, list) and {*map(type, value)} <= {int}),
        "a list of whole numbers or null",
    ),
}
