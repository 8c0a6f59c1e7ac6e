"""What several templates are given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Header:
    """What a generated file says of its purpose and origin.

    Attributes:
        name: of the package.
        purpose: such as "sorting of 16 values".
        command: what makes the package again.
        version: of nsc.
        proof: what is proved, by what.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str


@dataclass(frozen=True)
class Head:
    """The first lines of a kernel: a header, and what was compiled.

    Attributes:
        counts: of the network, in words.
        digest: of the network.
        relaxation: in words.
        facts: what the kernel states of itself, as a C string literal.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    digest: str
    relaxation: str
    facts: str


@dataclass(frozen=True)
class Real:
    """An arithmetic type: its name, its name in C++, and how the functions for it end."""

    name: str
    type: str
    suffix: str
