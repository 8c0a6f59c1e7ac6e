"""What several templates are given."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.network import Network


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
    """The first lines of a generated text: a header, and what was compiled.

    Attributes:
        counts: of the network, in words.
        digest: of the network.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    digest: str


def head_of(header: Header, network: Network) -> Head:
    """Return the first lines of a text that was compiled from a network."""
    return Head(**vars(header), counts=network.counts, digest=network.digest)


@dataclass(frozen=True)
class Real:
    """An arithmetic type: its name, its name in C++, and how the functions for it end."""

    name: str
    type: str
    suffix: str
