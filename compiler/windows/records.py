"""What the templates of filters are given: kernels and Python modules."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.text.records import Head


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
        reach: how many values further on others read it.
        lines: its statements.
    """

    number: int
    comment: str
    reach: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class FilterKernel:
    """What windows/kernel.cpp.j2 is given.

    Attributes:
        facts: what the kernel states of itself, as a C string literal.
        work: how many minima and maxima a pixel takes, in words.
        loops: those that write lists, in order.
        lists: the names of their structs.
        results: the last one, which writes results.
    """

    kernel: Head
    facts: str
    work: str
    window: FilterSizes
    loops: tuple[FilterLoop, ...]
    lists: str
    results: FilterLoop


@dataclass(frozen=True)
class FilterFacts:
    """What a filter's module says of itself; see `Head` and `FilterSizes`.

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
    """What windows/filter.py.j2 is given."""

    module: FilterFacts
