"""Levels: a schedule for threads that run at the same time, as those of a GPU do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from nsc.compiler.schedule.codelets import WIDEST, Codelet, Shape
from nsc.compiler.schedule.cones import Cone, light_cones, reaching_blocks
from nsc.compiler.schedule.ir import Schedule, slots_of
from nsc.contract.launch import LANE_BYTES, WARP, Launch
from nsc.errors import LoweringError
from nsc.wording import argument

# Light cones are worked out for this many columns of P together. Beyond this many wires a tile is no wider:
# a float32 tile, with two columns a lane, lies on half a warp. On a whole warp it would have 64 columns,
# which reach more codelets.
TILE_COLUMNS = 32
# Wires for each warp of a tile. Light cones leave a level few codelets, of which a warp takes two at a time,
# so more warps would wait: by counts of comparators two warps on 128 wires would take 1.19 times the time of
# their work, and four 1.84 times. This rule gives 1.00, 1.09, 1.17 and 1.25 on 128, 256, 512 and 1,024 wires.
WIRES_PER_WARP = 128
MOST_TILE_WARPS = 8
# Threads of a block whose warps or samples are independent, and least and most threads that share a sample.
BLOCK_THREADS = 128
LEAST_SAMPLE_THREADS = 8
MOST_SAMPLE_THREADS = 512
# Threads of a multiprocessor that the registers of the forward routing must allow: 168 registers each where
# a warp has a tile to itself, 128 beyond. With less some codelets spill. The backward routing takes
# as many as it needs.
FORWARD_THREADS_OF_WARP_TILES = 384
FORWARD_THREADS = 512
# Shared memory that a block has at most on any device (CUDA C++ Programming Guide, compute capability 9.0).
MOST_SHARED_BYTES = 227 << 10
# Entries that a table in the text may have. A million entries take about ten seconds to compile.
MOST_ENTRIES = 1 << 21


class SlottedComparator(NamedTuple):
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
    """A schedule for threads that run at the same time.

    Attributes:
        schedule: its codelets ordered by level.
        ends: where each level ends.
        cones: the light cone of each TILE_COLUMNS columns of P; then all codelets.
        rounds: the comparators of the keys pass; those of a round share no wire, and there are at most as
            many as threads of a sample.
        launch: the launch parameters.
    """

    schedule: Schedule
    ends: tuple[int, ...]
    cones: tuple[Cone, ...]
    rounds: tuple[tuple[SlottedComparator, ...], ...]
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

    @property
    def known_length(self) -> int:
        """Comparators whose code may know where its wires lie."""
        return self.schedule.straight_line

    @cached_property
    def straight_codes(self) -> tuple[StraightCode, ...]:
        """The straight-line code of each shape that has some.

        The most frequent pairs of shape and spread have code of their own, of `known_length` comparators in
        all.
        """
        shapes = self.schedule.straight_shapes
        counts = Counter((codelet.shape, codelet.spread) for codelet in self.schedule.codelets)
        known: dict[Shape, list[tuple[int, ...]]] = {shape: [] for shape in shapes}
        room = self.known_length
        for (shape, spread), _ in counts.most_common():
            if shape in known and len(shape) <= room:
                room -= len(shape)
                known[shape].append(spread)
        spreads_of = Counter(shape for shape, _ in counts)
        return tuple(
            StraightCode(tuple(known[shape]), len(known[shape]) < spreads_of[shape]) for shape in shapes
        )


def levels(schedule: Schedule, arrays: int, most_entries: int = MOST_ENTRIES) -> Levels:
    """Return a schedule in levels, with its light cones, its rounds and the launch parameters.

    Args:
        schedule: any schedule.
        arrays: arrays of weights that the keys pass leaves.
        most_entries: entries that a table in the text may have.

    Raises:
        LoweringError: a table would have more than `most_entries` entries.
    """
    ordered, ends = in_levels(schedule)
    n = schedule.network.n
    sample_threads = min(MOST_SAMPLE_THREADS, max(LEAST_SAMPLE_THREADS, _power_of_two(n) // 2))
    reached_by = reaching_blocks(n, [codelet.wires for codelet in ordered.codelets], TILE_COLUMNS)
    in_rounds = rounds(n, ordered.codelets, sample_threads)
    entries = max(len(in_rounds) * sample_threads, len(reached_by) + sum(map(int.bit_count, reached_by)))
    if entries > most_entries:
        raise LoweringError(
            f"the CUDA kernels of {schedule.network.counts} have a table of {entries:,} entries, at most "
            f"{most_entries:,} are compiled: use a smaller network, or {argument('targets', ('cpu',))}"
        )
    cones = light_cones(n, ordered.codelets, ends, TILE_COLUMNS)
    tile_warps = max(1, min(MOST_TILE_WARPS, _power_of_two(n) // WIRES_PER_WARP))
    launch = Launch(
        slots=schedule.slots,
        arrays=arrays,
        kept_rows=WIDEST * len(ordered.codelets),
        kept_rows_permutation=WIDEST * max(map(_length, cones[:-1])),
        tile_threads=WARP * tile_warps,
        tile_lanes=WARP if n <= TILE_COLUMNS else WARP // 2,
        widest_group=min(TILE_COLUMNS, _power_of_two(n)),
        routing_threads=BLOCK_THREADS if tile_warps == 1 else WARP * tile_warps,
        sample_threads=sample_threads,
        keys_threads=BLOCK_THREADS if sample_threads <= WARP else sample_threads,
    )
    return Levels(ordered, ends, cones, in_rounds, launch)


def in_levels(schedule: Schedule) -> tuple[Schedule, tuple[int, ...]]:
    """Order a schedule's codelets by level: those of a level take no wire from each other.

    A codelet's level is the first behind all it takes wires from; inside a level codelets of one shape
    stand together.

    Returns:
        The schedule in that order, and where in it each level ends.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    free = [0] * schedule.network.n
    levels: list[list[Codelet]] = []
    for codelet in schedule.codelets:
        level = max(free[wire] for wire in codelet.wires)
        if level == len(levels):
            levels.append([])
        levels[level].append(codelet)
        for wire in codelet.wires:
            free[wire] = level + 1
    for level_codelets in levels:
        level_codelets.sort(key=lambda codelet: (number[codelet.shape], codelet.wires))
    ordered = tuple(codelet for level_codelets in levels for codelet in level_codelets)
    return replace(schedule, codelets=ordered), tuple(accumulate(map(len, levels)))


def rounds(n: int, codelets: Sequence[Codelet], threads: int) -> tuple[tuple[SlottedComparator, ...], ...]:
    """Return the comparators of codelets in rounds for the keys pass.

    A comparator's layer is the first behind all it takes wires from; inside a layer the order is that of
    slots, so that neighbouring threads write neighbouring weights. A layer of more comparators than threads
    takes several rounds.
    """
    free = [0] * n
    layers: list[list[SlottedComparator]] = []
    first_slot = 0
    for codelet in codelets:
        for index, (lo, hi) in enumerate(codelet.comparators()):
            layer = max(free[lo], free[hi])
            free[lo] = free[hi] = layer + 1
            if layer == len(layers):
                layers.append([])
            layers[layer].append(SlottedComparator(lo, hi, first_slot + index))
        first_slot += slots_of(codelet)
    return tuple(
        tuple(layer[first : first + threads]) for layer in layers for first in range(0, len(layer), threads)
    )


def _length(cone: Cone) -> int:
    return sum(map(len, cone))


def _power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()
