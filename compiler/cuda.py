"""The CUDA target: what a GPU kernel and those who launch it must know of a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nsc.compiler.codelets import Codelet, Shape
from nsc.compiler.schedule import Schedule, in_levels

# Threads of a warp; as many columns of P have their light cone taken as one.
WARP = 32
# Comparators of a codelet that may run at once on the keys, each in a thread: a codelet has 16 wires.
STEP_WIDTH = 8
# Up to this many wires a warp has a tile of columns to itself; beyond, a block shares one, with as many
# warps as a level has codelets for, about.
WIRES_PER_WARP = 64
MOST_TILE_WARPS = 16
# Threads of a block whose warps or samples are independent, and most threads that share a sample.
BLOCK_THREADS = 128
MOST_SAMPLE_THREADS = 512
# Limits that the compiler's report is held to: registers of a thread, and the widest network all of whose
# float32 kernels keep everything in registers.
MOST_REGISTERS = 255
WIRES_WITHOUT_SPILLS = 32


@dataclass(frozen=True)
class Launch:
    """What a launch depends on; the manifest carries it.

    Attributes:
        slots: places for weights, per sample and array.
        arrays: arrays of weights.
        cones: lists of codelets that light cones need.
        kept_rows: rows that all codelets load, which the backward routing keeps.
        kept_rows_permutation: the same for a tile of P, at most.
        tile_threads: threads that share a tile of columns.
        widest_group: threads that a sample of more than one column takes in a tile, at most.
        routing_threads: threads of a block of the routing.
        sample_threads: threads that share a sample's keys.
        keys_threads: threads of a block of the keys pass.
    """

    slots: int
    arrays: int
    cones: int
    kept_rows: int
    kept_rows_permutation: int
    tile_threads: int
    widest_group: int
    routing_threads: int
    sample_threads: int
    keys_threads: int


@dataclass(frozen=True)
class Levels:
    """A schedule cut for threads that run at the same time.

    Attributes:
        schedule: its codelets ordered by level.
        ends: where each level ends.
        launch: what a launch depends on.
    """

    schedule: Schedule
    ends: tuple[int, ...]
    launch: Launch


def levels(schedule: Schedule, arrays: int) -> Levels:
    """Return a schedule in levels; arrays: of weights."""
    ordered, ends = in_levels(schedule)
    n = schedule.network.n
    tile_warps = 1 if n <= WIRES_PER_WARP else min(MOST_TILE_WARPS, _power_of_two(n) // WARP)
    sample_threads = min(MOST_SAMPLE_THREADS, max(STEP_WIDTH, _power_of_two(n) // 2))
    launch = Launch(
        slots=schedule.slots,
        arrays=arrays,
        cones=-(-n // WARP),
        kept_rows=schedule.loads,
        kept_rows_permutation=most_rows_in_a_cone(n, ordered.codelets),
        tile_threads=WARP * tile_warps,
        widest_group=min(WARP, _power_of_two(n)),
        routing_threads=max(BLOCK_THREADS, WARP * tile_warps),
        sample_threads=sample_threads,
        keys_threads=max(BLOCK_THREADS, sample_threads),
    )
    return Levels(ordered, ends, launch)


def most_rows_in_a_cone(n: int, codelets: Sequence[Codelet]) -> int:
    """Return how many rows the codelets load that WARP columns of P reach, at most."""
    reached = [1 << (wire // WARP) for wire in range(n)]
    rows = [0] * -(-n // WARP)
    for codelet in codelets:
        by = 0
        for wire in codelet.wires:
            by |= reached[wire]
        for wire in codelet.wires:
            reached[wire] = by
        while by:
            lowest = by & -by
            rows[lowest.bit_length() - 1] += len(codelet.wires)
            by ^= lowest
    return max(rows)


def steps(shape: Shape) -> tuple[int, ...]:
    """Return where each step of a shape ends: at most STEP_WIDTH comparators that share no wire."""
    ends: list[int] = []
    busy: set[int] = set()
    begin = 0
    for index, pair in enumerate(shape):
        if busy & {pair.a, pair.b} or index - begin == STEP_WIDTH:
            ends.append(index)
            busy, begin = set(), index
        busy |= {pair.a, pair.b}
    return (*ends, len(shape))


def _power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()
