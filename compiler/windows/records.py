"""What the templates of filters are given: kernels and Python modules."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FilterHead:
    """The first lines of a filter; see `Head`.

    Attributes:
        shared: how many minima and maxima a pixel takes, in words.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    shared: str
    counts: str
    digest: str
    facts: str


@dataclass(frozen=True)
class FilterSizes:
    """What a filter reads and writes in a step.

    Attributes:
        planes, rows, columns: of the window.
        step: rows of results.
        list_rows: rows of memory for the lists of its stages.
        operations: minima and maxima for a pixel.
    """

    planes: int
    rows: int
    columns: int
    step: int
    list_rows: int
    operations: int


@dataclass(frozen=True)
class FilterLoop:
    """A loop of a filter that writes a list.

    Attributes:
        number: of the loop.
        comment: what it makes.
        reach: how many places further on others read it.
        lines: its statements.
    """

    number: int
    comment: str
    reach: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FilterKernel:
    """What filter/kernel.cpp.j2 is given.

    Attributes:
        loops: those that write lists, in order.
        lists: the names of their structs.
        results: the last one, which writes results.
    """

    kernel: FilterHead
    window: FilterSizes
    loops: tuple[FilterLoop, ...]
    lists: str
    results: FilterLoop


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
