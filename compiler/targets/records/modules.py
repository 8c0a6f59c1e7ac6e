"""What the templates of Python modules are given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """The facts in a Python module's docstring and constants.

    Attributes:
        name, purpose, command, version, proof: as of `Header`.
        counts: of the network, in words.
        relaxation: in words.
        dtypes, accepts: the types that are computed in, and those of tensors that are accepted.
        targets: what it is compiled for.
        n, size, depth: of the network.
        default_steepness: the steepness of a call without one.
        tie_note: words that the error-free form adds to the sentence on ties.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    counts: str
    relaxation: str
    dtypes: str
    targets: str
    accepts: str
    n: int
    size: int
    depth: int
    default_steepness: str
    tie_note: str


@dataclass(frozen=True)
class ModuleLoss:
    """A loss of a module: its function's name, and its value in words."""

    name: str
    sentence: str


@dataclass(frozen=True)
class SortModule:
    """What python/sort.py.j2 is given; `last` is the largest rank."""

    module: Module
    last: int
    losses: tuple[ModuleLoss, ...]


@dataclass(frozen=True)
class SelectModule:
    """What python/select.py.j2 is given: the count of the ranks, and lines that list them."""

    module: Module
    k: int
    rank_lines: tuple[str, ...]


@dataclass(frozen=True)
class FilterFacts:
    """What a filter's module says of itself; see `FilterHead` and `FilterSizes`.

    Attributes:
        axes: the last axes of an image, in words.
    """

    name: str
    purpose: str
    command: str
    version: str
    counts: str
    proof: str
    axes: str
    planes: int
    rows: int
    columns: int
    rank: int


@dataclass(frozen=True)
class FilterModule:
    """What python/filter.py.j2 is given."""

    module: FilterFacts
