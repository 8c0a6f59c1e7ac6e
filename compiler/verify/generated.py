"""Exhaustion in generated C++: all 0-1 inputs of networks that are too wide for NumPy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question
from nsc.templates import fill

# 2^32 inputs of a best known sorter take some seconds on one core.
MOST_GENERATED_WIRES = 32
# Inputs in a row of the generated code, as a power of two, and rows between two looks at the clock.
_ROW_BITS = 9
_PIECE = 1 << 18


def generated_exhaustion(asked: Question) -> Answer | None:
    """Try every 0-1 input of up to 32 wires in C++ made for the network, where it may be built.

    Cost: 2·size·2^n / 512 register operations, and about a second for the build.
    """
    n, build = asked.network.n, asked.budget.build
    if build is None or asked.runs or n > MOST_GENERATED_WIRES:
        return None
    library = build(f"check_{asked.network.digest[:12]}", checker_source(asked))
    if library is None:
        return None
    check = ctypes.CDLL(str(library)).nsc_check
    check.argtypes, check.restype = [ctypes.c_int64, ctypes.c_int64], ctypes.c_int64
    blocks = 1 << max(0, n - _ROW_BITS)
    for first in range(0, blocks, _PIECE):
        failing = check(first, min(_PIECE, blocks - first))
        if failing >= 0:
            return Answer(failing=tuple(failing >> wire & 1 for wire in range(n)))
        asked.budget.check()
        asked.budget.progress.count("0-1 inputs", min(first + _PIECE, blocks) << _ROW_BITS, 1 << n)
    what = "come out sorted" if asked.is_sort else "come out right"
    return Answer(proved=f"all 2^{n} 0-1 inputs {what}, in generated C++")


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
class Checker:
    """What cpp/checker.cpp.j2 is given.

    Attributes:
        n: wires of the network.
        inner_wires, outer_wires: those below _ROW_BITS, and the others.
        comparators: of the network, in order.
        ranked: the wires that are asked for.
    """

    n: int
    inner_wires: tuple[int, ...]
    outer_wires: tuple[OuterWire, ...]
    comparators: tuple[Compared, ...]
    ranked: tuple[Ranked, ...]


def checker_source(asked: Question) -> str:
    """Return the C++ text that tries the 0-1 inputs of a question."""
    n = asked.network.n
    checker = Checker(
        n=n,
        inner_wires=tuple(range(min(n, _ROW_BITS))),
        outer_wires=tuple(OuterWire(wire, wire - _ROW_BITS) for wire in range(_ROW_BITS, n)),
        comparators=tuple(Compared(lo, hi) for layer in asked.network.layers() for lo, hi in layer.tolist()),
        ranked=tuple(Ranked(wire, rank) for wire, rank in asked.ranks.items()),
    )
    return fill("cpp/checker.cpp.j2", checker)
