"""Records: what the template of a deployed source is given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class DeployedKernel:
    """A kernel of a deployed source.

    Attributes:
        number: its place, from 0 on.
        spec: as models name it.
        name: of its package.
        text: its source, without what it includes.
        wires: of its network.
        outputs: how many values it selects; 0: it sorts.
        rank_lines: the ranks of these.
        float32, float64: its C functions for each arithmetic type, or nothing.
        exact_texts: the source of the exact kernel beside it, without what it includes; none or one.
        sorts: the exact kernel's C functions by element, an expression.
    """

    number: int
    spec: str
    name: str
    text: str
    wires: int
    outputs: int
    rank_lines: tuple[str, ...]
    float32: str
    float64: str
    exact_texts: tuple[str, ...]
    sorts: str


@dataclass(frozen=True)
class DeployedFilter:
    """A filter of a deployed source.

    Attributes:
        number: its place, from 0 on.
        window: its sizes and its rank, as models name it.
        name: of its package.
        text: its source, without what it includes.
        planes, rows, columns: of the window.
        functions: its C functions by element, an expression.
    """

    number: int
    window: str
    name: str
    text: str
    planes: int
    rows: int
    columns: int
    functions: str


@dataclass(frozen=True)
class DeployedSource:
    """What deploy/source.cpp.j2 is given.

    Attributes:
        name: of the file, without its suffix.
        command: what makes it.
        version: of nsc.
    """

    name: str
    command: str
    version: str
    kernels: tuple[DeployedKernel, ...]
    filters: tuple[DeployedFilter, ...]
