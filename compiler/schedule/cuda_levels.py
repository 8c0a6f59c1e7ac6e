"""The CUDA target: what a GPU kernel and those who launch it must know of a schedule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from nsc.compiler.schedule import codelets as cutting
from nsc.compiler.schedule.codelets import WIDEST, Codelet, Shape, straight_line_shapes
from nsc.compiler.schedule.ir import Schedule, in_levels, slots_of
from nsc.contract.launch import LANE_BYTES, WARP, Launch
from nsc.errors import LoweringError
from nsc.wording import argument

# Light cones are worked out for this many columns of P together. No tile is wider where there are more wires.
TILE_COLUMNS = 32
# Up to this many wires a warp has a tile of columns to itself; beyond, a block shares one, with as many
# warps as a level has codelets for, about.
WIRES_PER_WARP = 64
MOST_TILE_WARPS = 8
# Threads of a block whose warps or samples are independent, and least and most threads that share a sample.
BLOCK_THREADS = 128
LEAST_SAMPLE_THREADS = 8
MOST_SAMPLE_THREADS = 512
# Threads of a multiprocessor that the registers of the forward routing must allow: 168 registers each where
# a warp has a tile to itself, 128 beyond. With less some codelets spill. The backward routing takes what
# there is.
FORWARD_THREADS_OF_WARP_TILES = 384
FORWARD_THREADS = 512
# Shared memory that a block has at most on any device (CUDA C++ Programming Guide, compute capability 9.0).
MOST_SHARED_BYTES = 227 << 10
# Entries that a table in the text may have. A million entries take about ten seconds to compile.
MOST_ENTRIES = 1 << 21
# Limits that the compiler's report is held to: registers of a thread, and the widest network all of whose
# float32 kernels keep everything in registers.
MOST_REGISTERS = 255
WIRES_WITHOUT_SPILLS = 32


class Comparator(NamedTuple):
    """A comparator of the keys pass, which leaves the minimum on wire lo; its weights lie in a slot."""

    lo: int
    hi: int
    slot: int


@dataclass(frozen=True)
class StraightCode:
    """The straight-line code of a shape.

    Attributes:
        known_spreads: spreads of wires that have code of their own.
        has_others: whether some codelets of the shape have another spread.
    """

    known_spreads: tuple[tuple[int, ...], ...]
    has_others: bool


@dataclass(frozen=True)
class Levels:
    """A schedule cut for threads that run at the same time.

    Attributes:
        schedule: its codelets ordered by level.
        ends: where each level ends.
        cones: for each TILE_COLUMNS columns of P the codelets that they reach, level by level; then all.
        rounds: the comparators of the keys pass; those of a round share no wire, and there are at most as
            many as threads of a sample.
        launch: what a launch depends on.
    """

    schedule: Schedule
    ends: tuple[int, ...]
    cones: tuple[tuple[tuple[int, ...], ...], ...]
    rounds: tuple[tuple[Comparator, ...], ...]
    launch: Launch

    @property
    def forward_blocks(self) -> int:
        """Blocks of the forward routing that a multiprocessor must hold at a time."""
        n, launch = self.schedule.network.n, self.launch
        if n * launch.tile_lanes * LANE_BYTES > MOST_SHARED_BYTES // 2:
            return 1  # one tile takes more than half of the memory, or is narrower because it would
        has_warp_tiles = launch.tile_threads == WARP
        threads = FORWARD_THREADS_OF_WARP_TILES if has_warp_tiles else FORWARD_THREADS
        return threads // launch.routing_threads

    @cached_property
    def straight_codes(self) -> tuple[StraightCode, ...]:
        """The straight-line code of each shape that has some.

        The most frequent pairs of shape and spread have code of their own, in as many comparators again.
        """
        shapes = straight_line_shapes(self.schedule.shapes)
        counts = Counter((codelet.shape, codelet.spread) for codelet in self.schedule.codelets)
        known: dict[Shape, list[tuple[int, ...]]] = {shape: [] for shape in shapes}
        room = cutting.STRAIGHT_LINE
        for (shape, spread), _ in counts.most_common():
            if shape in known and len(shape) <= room:
                room -= len(shape)
                known[shape].append(spread)
        spreads_of = Counter(shape for shape, _ in counts)
        return tuple(
            StraightCode(tuple(known[shape]), len(known[shape]) < spreads_of[shape]) for shape in shapes
        )


def levels(schedule: Schedule, arrays: int) -> Levels:
    """Return a schedule in levels; arrays: of weights.

    Raises:
        LoweringError: a network whose tables would make more text than a compiler takes in a minute.
    """
    ordered, ends = in_levels(schedule)
    n = schedule.network.n
    sample_threads = min(MOST_SAMPLE_THREADS, max(LEAST_SAMPLE_THREADS, _power_of_two(n) // 2))
    reached_by = _columns_that_reach(n, ordered.codelets)
    entries = max(schedule.network.size, len(reached_by) + sum(map(int.bit_count, reached_by)))
    if entries > MOST_ENTRIES:
        raise LoweringError(
            f"the CUDA kernels of {schedule.network.counts} have a table of {entries:,} entries, at most "
            f"{MOST_ENTRIES:,} are compiled: use a smaller network, or {argument('targets', ('cpu',))}"
        )
    cones = light_cones(n, ordered.codelets, ends)
    tile_warps = 1 if n <= WIRES_PER_WARP else min(MOST_TILE_WARPS, _power_of_two(n) // WARP)
    launch = Launch(
        slots=schedule.slots,
        arrays=arrays,
        kept_rows=WIDEST * len(ordered.codelets),
        kept_rows_permutation=WIDEST * max(map(_length, cones[:-1])),
        tile_threads=WARP * tile_warps,
        tile_lanes=WARP if n <= TILE_COLUMNS else WARP // 2,
        widest_group=min(TILE_COLUMNS, _power_of_two(n)),
        routing_threads=max(BLOCK_THREADS, WARP * tile_warps),
        sample_threads=sample_threads,
        keys_threads=max(BLOCK_THREADS, sample_threads),
    )
    return Levels(ordered, ends, cones, rounds(n, ordered.codelets, sample_threads), launch)


def light_cones(
    n: int, codelets: Sequence[Codelet], ends: Sequence[int]
) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Return for each TILE_COLUMNS columns of P the codelets that they reach, level by level; last, all."""
    reached_by = _columns_that_reach(n, codelets)
    begins = [0, *ends]
    blocks = [1 << block for block in range(-(-n // TILE_COLUMNS))]
    return tuple(
        tuple(
            tuple(number for number in range(begin, end) if reached_by[number] & block)
            for begin, end in pairwise(begins)
        )
        for block in (*blocks, -1)
    )


def _columns_that_reach(n: int, codelets: Sequence[Codelet]) -> list[int]:
    """Return a bit for each TILE_COLUMNS columns of P, for each codelet: those that reach it.

    What reaches one of a codelet's wires reaches, behind it, all of them.
    """
    reached = [1 << (wire // TILE_COLUMNS) for wire in range(n)]
    found = []
    for codelet in codelets:
        by = 0
        for wire in codelet.wires:
            by |= reached[wire]
        for wire in codelet.wires:
            reached[wire] = by
        found.append(by)
    return found


def rounds(n: int, codelets: Sequence[Codelet], threads: int) -> tuple[tuple[Comparator, ...], ...]:
    """Return the comparators of codelets in rounds for the keys pass.

    A comparator's layer is the first behind all it takes wires from; inside a layer the order is that of
    slots, so that neighbouring threads write neighbouring weights. A layer of more comparators than threads
    takes several rounds.
    """
    free = [0] * n
    layers: list[list[Comparator]] = []
    first_slot = 0
    for codelet in codelets:
        for index, (a, b, _) in enumerate(codelet.shape):
            lo, hi = codelet.wires[a], codelet.wires[b]
            layer = max(free[lo], free[hi])
            free[lo] = free[hi] = layer + 1
            if layer == len(layers):
                layers.append([])
            ends = (hi, lo) if codelet.turned >> index & 1 else (lo, hi)
            layers[layer].append(Comparator(*ends, first_slot + index))
        first_slot += slots_of(codelet)
    return tuple(
        tuple(layer[first : first + threads]) for layer in layers for first in range(0, len(layer), threads)
    )


def _length(cone: tuple[tuple[int, ...], ...]) -> int:
    return sum(map(len, cone))


def _power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()
