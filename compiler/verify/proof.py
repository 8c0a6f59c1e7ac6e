"""Proof: the outcome of a verification, as data and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any

from nsc.errors import PropertyError
from nsc.strict_json import read_json

PROOF_FORMAT = "nsc-proof/1"
Vector = tuple[int, ...]


class Verdict(Enum):
    """What verification says of a network and a property."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNPROVED = "unproved"


@dataclass(frozen=True)
class Proof:
    """The outcome of a verification; true exactly where the property is proved.

    Attributes:
        verdict: proved, refuted or unproved.
        property: what was asked, as `property.parse` names it.
        method: which method settled it, a key of METHODS, or "sampling".
        detail: what was done, in one sentence with its figures.
        network: digest of the canonical form of the network it speaks of.
        states: the most states that were held at a time, of methods that count them.
        conflicts: of a SAT solver.
        seconds: how long it took; None where the same proof must be the same bytes.
        counterexample: a 0-1 input that comes out wrong, if refuted.
        failing_input: a permutation of 0 … n-1 that comes out wrong, likewise.
    """

    verdict: Verdict
    property: str
    method: str
    detail: str
    network: str
    states: int | None = None
    conflicts: int | None = None
    seconds: float | None = None
    counterexample: Vector | None = None
    failing_input: Vector | None = None

    def __post_init__(self) -> None:
        assert (self.verdict is Verdict.REFUTED) == (self.counterexample is not None)

    def __bool__(self) -> bool:
        """Say whether the property is proved: neither refuted nor left open."""
        return self.verdict is Verdict.PROVED

    def sentence(self) -> str:
        """The verdict in words: "sorts", "does not sort", "median: proved"."""
        if self.property == "sort":
            return {
                Verdict.PROVED: "sorts",
                Verdict.REFUTED: "does not sort",
                Verdict.UNPROVED: "unproved",
            }[self.verdict]
        return f"{self.property}: {self.verdict.value}"

    def facts(self) -> dict[str, Any]:
        """Return the proof as JSON has it."""
        return {"format": PROOF_FORMAT, **asdict(self), "verdict": self.verdict.value}

    def to_json(self) -> str:
        """Return the proof as JSON text; the same proof, the same bytes."""
        return json.dumps(self.facts(), indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Proof:
        """Return the proof that a text holds.

        Raises:
            PropertyError: it holds none.
        """
        try:
            facts = read_json(text)
            if facts.pop("format") != PROOF_FORMAT:
                raise ValueError(f'"format" is not "{PROOF_FORMAT}"')
            made = {field.name: facts[field.name] for field in fields(cls)}
            made["verdict"] = Verdict(made["verdict"])
            for name in ("counterexample", "failing_input"):
                made[name] = None if made[name] is None else tuple(map(int, made[name]))
            return cls(**made)
        except (ValueError, KeyError, TypeError, AttributeError, AssertionError, RecursionError) as error:
            raise PropertyError(f"not a proof that nsc wrote: {error}") from None
