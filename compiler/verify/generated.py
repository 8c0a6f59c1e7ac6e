"""Exhaustion in generated C++: all 0-1 inputs of networks that are too wide for NumPy."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question
from nsc.templates import fill

# 2^32 inputs of a best known sorter take some seconds on one core.
MOST_GENERATED_WIRES = 32
# Inputs of a block, as a power of two, and blocks between two looks at the clock.
_BLOCK_BITS = 9
_PIECE = 1 << 18


def generated_exhaustion(question: Question) -> Answer | None:
    """Try every 0-1 input of up to 32 wires in C++ generated for the network, where it may be built.

    Cost: 2·size·2^n / 512 register operations, and about a second for the build.
    """
    n, build = question.network.n, question.budget.build
    if build is None or question.runs or n > MOST_GENERATED_WIRES:
        return None
    check = build(f"check_{question.network.digest[:12]}", checker_source(question))
    if check is None:
        return None
    blocks = 1 << max(0, n - _BLOCK_BITS)
    for first in range(0, blocks, _PIECE):
        failing = check(first, min(_PIECE, blocks - first))
        if failing is not None:
            return Answer(failing=tuple(failing >> wire & 1 for wire in range(n)))
        question.budget.check()
        question.budget.progress.count("0-1 inputs", min(first + _PIECE, blocks) << _BLOCK_BITS, 1 << n)
    outcome = "sorted" if question.is_sort else "right"
    return Answer(proved=f"all 2^{n} 0-1 inputs come out {outcome}, in generated C++")


@dataclass(frozen=True)
class OuterWire:
    """A wire that is 0 or 1 in a whole block of inputs, by a bit of the block's number."""

    wire: int
    bit: int


@dataclass(frozen=True)
class Compared:
    """A comparator: the wires that take the minimum and the maximum."""

    lo: int
    hi: int


@dataclass(frozen=True)
class Ranked:
    """A wire that must carry a rank."""

    wire: int
    rank: int


@dataclass(frozen=True)
class CheckerText:
    """What verify/checker.cpp.j2 is given.

    Attributes:
        n: wires of the network.
        inner_wires: those below _BLOCK_BITS, whose values are the same in every block of inputs.
        outer_wires: the others.
        comparators: of the network, in order.
        ranked: the wires that are asked for.
    """

    n: int
    inner_wires: tuple[int, ...]
    outer_wires: tuple[OuterWire, ...]
    comparators: tuple[Compared, ...]
    ranked: tuple[Ranked, ...]


def checker_source(question: Question) -> str:
    """Return the C++ text that tries the 0-1 inputs of a question."""
    n = question.network.n
    checker = CheckerText(
        n=n,
        inner_wires=tuple(range(min(n, _BLOCK_BITS))),
        outer_wires=tuple(OuterWire(wire, wire - _BLOCK_BITS) for wire in range(_BLOCK_BITS, n)),
        comparators=tuple(Compared(*pair) for layer in question.network.layers() for pair in layer.tolist()),
        ranked=tuple(Ranked(wire, rank) for wire, rank in question.ranks.items()),
    )
    return fill("verify/checker.cpp.j2", checker)
