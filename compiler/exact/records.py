"""What the templates of exact kernels are given."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.text.records import Head


@dataclass(frozen=True)
class ExactSegment:
    """Some comparators of a network, as a function that may run on several ranges of wires.

    Attributes:
        index: its number.
        lines: the comparators as statements, with loads and stores of wires, counted from the range's first.
    """

    index: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class ExactNetwork:
    """A network as exact kernels run it.

    Attributes:
        wires, comparators, outputs: how many.
        output_lines: the wire of each output, as lines of a table.
        pair_lines: the comparators as lines of a table.
        segments: comparators as statements; in CUDA none unless they are all of the network's.
        run_lines: the calls that run the network, of segments and of parts of the table.
    """

    wires: int
    comparators: int
    outputs: int
    output_lines: tuple[str, ...]
    pair_lines: tuple[str, ...]
    segments: tuple[ExactSegment, ...]
    run_lines: tuple[str, ...]


@dataclass(frozen=True)
class ExactKernel:
    """What exact/kernel.cpp.j2 is given; facts: what the kernel states of itself, as a C string literal."""

    kernel: Head
    facts: str
    network: ExactNetwork


@dataclass(frozen=True)
class ExactCudaKernel:
    """What exact/kernel.cu.j2 is given; see `ExactKernel`.

    Attributes:
        network: with its comparators layer by layer.
        layers: how many.
        layer_end_lines: where each layer ends in the table of comparators, as lines of a table.
    """

    kernel: Head
    facts: str
    network: ExactNetwork
    layers: int
    layer_end_lines: tuple[str, ...]
