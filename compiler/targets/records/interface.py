"""What the template of a package's own C header is given."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.targets.records.common import Header, Real


@dataclass(frozen=True)
class Code:
    """A name, a number and what it means, in words."""

    name: str
    value: int
    meaning: str


@dataclass(frozen=True)
class Interface:
    """What cpp/interface.h.j2 is given.

    Attributes:
        version: of the C interface.
        wires: of the network.
        values: what the relaxed values are, in words.
    """

    header: Header
    version: int
    wires: int
    values: str
    statuses: tuple[Code, ...]
    routings: tuple[Code, ...]
    reals: tuple[Real, ...]
