"""What the templates of exact kernels are given."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ExactHead:
    """The first lines of an exact kernel; see `Head`."""

    name: str
    purpose: str
    version: str
    proof: str
    counts: str
    digest: str
    facts: str


@dataclass(frozen=True)
class ExactPiece:
    """Some comparators of a network, as a function.

    Attributes:
        index: its number.
        lines: the comparators as statements, with loads and stores of wires.
    """

    index: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ExactNetwork:
    """A network as exact kernels in C++ run it.

    Attributes:
        wires, comparators, outputs: how many.
        output_lines: the wire of each output, as lines of a table.
        pair_lines: the comparators as lines of a table.
        pieces: the comparators as statements; none for a network that runs from the table alone.
    """

    wires: int
    comparators: int
    outputs: int
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    pieces: tuple[ExactPiece, ...]


@dataclass(frozen=True)
class ExactKernel:
    """What exact/kernel.cpp.j2 is given."""

    kernel: ExactHead
    network: ExactNetwork


@dataclass(frozen=True)
class ExactLayers:
    """A network as exact kernels in CUDA run it; see `ExactNetwork`.

    Attributes:
        layers: how many.
        pair_lines: the comparators as lines of a table, layer by layer.
        layer_end_lines: where each layer ends there, as lines of a table.
    """

    wires: int
    layers: int
    outputs: int
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    layer_end_lines: tuple[str, ...]
    pieces: tuple[ExactPiece, ...]


@dataclass(frozen=True)
class ExactCudaKernel:
    """What exact/kernel.cu.j2 is given."""

    kernel: ExactHead
    network: ExactLayers
