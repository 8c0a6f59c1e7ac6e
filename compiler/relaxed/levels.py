"""Levels: a schedule for threads that run at the same time, as the threads of a GPU do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, chain, pairwise
from operator import attrgetter
from typing import NamedTuple

from nsc.compiler.network import layered
from nsc.compiler.schedule import WIDEST, Codelet, Schedule, Shape, cut, reaching_blocks, slots_of
from nsc.compiler.schedule.cutting import STRAIGHT_LINE, straight_line_shapes
from nsc.contract.launch import LANE_BYTES, WARP, Launch
from nsc.errors import LoweringError
from nsc.wording import argument

# Columns of P whose light cone is taken as one, and columns of a float32 tile on more wires than this. Such a
# tile has two columns a lane, so it lies on half a warp. On a whole warp it would have 64 columns, which
# reach more codelets.
TILE_COLUMNS = 32
# Wires for each warp of a tile. Light cones leave a level few codelets, of which a warp takes two at a time,
# so more warps would wait: on 128 wires two would take 1.23 times the time of their work, four 1.96 times.
WIRES_PER_WARP = 128
MOST_TILE_WARPS = 8
# The fewest and the most wires of a network whose merge is taken apart. On 64 wires P would load a quarter
# more rows, for codelets end in front of the merge; beyond 2,048 a lane has too few registers for a column.
FEWEST_PARTED, MOST_PARTED = 128, 2048
# Threads of a block whose warps or samples are independent, and least and most threads that share a sample.
BLOCK_THREADS = 128
LEAST_SAMPLE_THREADS = 8
MOST_SAMPLE_THREADS = 512
# Threads of a multiprocessor that the registers of the forward routing must allow: 168 registers each where
# a warp has a tile to itself, 128 beyond. With less some codelets spill. The backward routing takes
# as many as it needs.
FORWARD_THREADS_OF_WARP_TILES = 384
FORWARD_THREADS = 512
# Most shared memory of a block on any device (CUDA C++ Programming Guide, compute capability 9.0).
MOST_SHARED_BYTES = 227 << 10
# A tile and its kept rows may take this much of the shared memory, so that a multiprocessor holds as many
# warps as its registers allow, eight.
MOST_TILE_BYTES = MOST_SHARED_BYTES // 8
# Entries that a table in the text may have. A million entries take about ten seconds to compile.
MOST_ENTRIES = 1 << 21

# For each level the codelets that a block of columns of P reaches, by their number in the schedule.
Cone = tuple[tuple[int, ...], ...]


class SlottedComparator(NamedTuple):
    """A comparator of the keys pass, which leaves the minimum on wire lo; its weights lie in a slot."""

    lo: int
    hi: int
    slot: int


@dataclass(frozen=True)
class Merge:
    """The merge that a network ends in, which a loss that asks for one entry of each column takes apart.

    Attributes:
        front_levels, front_slots: levels of codelets, and slots, in front of it.
        slots: the slots of its comparators, by level and then from wire 0 on.
    """

    front_levels: int
    front_slots: int
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Levels:
    """A schedule for threads that run at the same time.

    Attributes:
        schedule: its codelets ordered by level.
        straight_line: comparators that get straight-line code, at most; the others run from a table.
        ends: where each level ends.
        cones: the light cone of each TILE_COLUMNS columns of P; then all codelets.
        rounds: the comparators of the keys pass. Comparators of one round share no wire, and are no more
            than the threads of a sample.
        merge: the merge that is taken apart.
        launch: the launch parameters.
    """

    schedule: Schedule
    straight_line: int
    ends: tuple[int, ...]
    cones: tuple[Cone, ...]
    rounds: tuple[tuple[SlottedComparator, ...], ...]
    merge: Merge | None
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
    def straight_shapes(self) -> tuple[Shape, ...]:
        """The first of the schedule's shapes, those that get straight-line code."""
        return straight_line_shapes(self.schedule.shapes, self.straight_line)


def levels(
    schedule: Schedule,
    arrays: int,
    merge_layers: int = 0,
    straight_line: int = STRAIGHT_LINE,
    most_entries: int = MOST_ENTRIES,
) -> Levels:
    """Return a schedule in levels, with its light cones, its rounds and the launch parameters.

    Args:
        schedule: any schedule.
        arrays: arrays of weights that the keys pass leaves.
        merge_layers: layers of the merge that the network ends in, or 0; see `tables.merge_layers`.
        straight_line: comparators that get straight-line code, at most.
        most_entries: entries that a table in the text may have.

    Raises:
        LoweringError: a table would have more than `most_entries` entries.
    """
    n = schedule.network.n
    if not FEWEST_PARTED <= n <= MOST_PARTED:
        merge_layers = 0
    in_front = 0
    if merge_layers:
        schedule, in_front = split_before(schedule, merge_layers)
    ordered, ends = in_levels(schedule, in_front)
    sample_threads = min(MOST_SAMPLE_THREADS, max(LEAST_SAMPLE_THREADS, _power_of_two(n) // 2))
    reached_by = reaching_blocks(n, [codelet.wires for codelet in ordered.codelets], TILE_COLUMNS)
    in_rounds = rounds(n, ordered.codelets, sample_threads)
    entries = max(len(in_rounds) * sample_threads, len(reached_by) + sum(map(int.bit_count, reached_by)))
    if entries > most_entries:
        raise LoweringError(
            f"the CUDA kernels of {schedule.network.counts} have a table of {entries:,} entries, at most "
            f"{most_entries:,} are compiled: use a smaller network, or {argument('targets', ('cpu',))}"
        )
    cones = _light_cones(reached_by, ends, -(-n // TILE_COLUMNS))
    tile_warps = max(1, min(MOST_TILE_WARPS, _power_of_two(n) // WIRES_PER_WARP))
    merge = _merge(ordered, ends, in_front) if merge_layers else None
    tile_lanes = WARP if n <= TILE_COLUMNS else WARP // 2
    kept_rows, row_bytes = WIDEST * len(ordered.codelets), tile_lanes * LANE_BYTES
    launch = Launch(
        slots=schedule.slots,
        arrays=arrays,
        kept_rows=kept_rows,
        kept_rows_permutation=WIDEST * max(map(_length, cones[:-1])),
        kept_rows_front=WIDEST * max(_length(cone[: merge.front_levels]) for cone in cones[:-1])
        if merge
        else 0,
        kept_rows_in_block=kept_rows if (n + kept_rows) * row_bytes <= MOST_TILE_BYTES else 0,
        merge_layers=merge_layers,
        tile_threads=WARP * tile_warps,
        tile_lanes=tile_lanes,
        widest_group=min(TILE_COLUMNS, _power_of_two(n)),
        routing_threads=BLOCK_THREADS if tile_warps == 1 else WARP * tile_warps,
        sample_threads=sample_threads,
        keys_threads=BLOCK_THREADS if sample_threads <= WARP else sample_threads,
    )
    return Levels(ordered, straight_line, ends, cones, in_rounds, merge, launch)


def split_before(schedule: Schedule, last: int) -> tuple[Schedule, int]:
    """Cut a network anew, so that no codelet is on both sides of its last layers, which are a merge.

    A codelet of 2^k wires takes k layers of a merge. The layers are shared out, so that no level has codelets
    of few wires, which would be many.

    Returns:
        The schedule, and how many codelets it has in front of these layers.
    """
    network, most = schedule.network, WIDEST.bit_length() - 1
    pieces = -(-last // most)
    ends = [network.depth - last + last * piece // pieces for piece in range(pieces + 1)]
    parts = [network[begin:end] for begin, end in pairwise([0, *ends])]
    front, *behind = map(cut, parts)
    return replace(schedule, codelets=(*front, *chain.from_iterable(behind))), len(front)


def in_levels(schedule: Schedule, in_front: int = 0) -> tuple[Schedule, tuple[int, ...]]:
    """Order a schedule's codelets by level: codelets of one level take no wire from each other.

    Inside a level codelets of one shape stand together. The first `in_front` codelets have levels of their
    own, in front of all others.

    Returns:
        The schedule in that order, and where in it each level ends.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    levels: list[list[Codelet]] = []
    for part in (schedule.codelets[:in_front], schedule.codelets[in_front:]):
        levels += layered(schedule.network.n, part, attrgetter("wires"))
    for level in levels:
        level.sort(key=lambda codelet: (number[codelet.shape], codelet.wires))
    ordered = tuple(chain.from_iterable(levels))
    return replace(schedule, codelets=ordered), tuple(accumulate(map(len, levels)))


def _light_cones(reached_by: Sequence[int], ends: Sequence[int], blocks: int) -> tuple[Cone, ...]:
    """Return the light cone of each block of columns of P, then all codelets as one more."""
    return tuple(
        tuple(
            tuple(number for number in range(begin, end) if reached_by[number] & block)
            for begin, end in pairwise([0, *ends])
        )
        for block in (*(1 << number for number in range(blocks)), -1)
    )


def _merge(ordered: Schedule, ends: tuple[int, ...], in_front: int) -> Merge:
    """Return the merge behind a number of codelets."""
    front_slots = sum(map(slots_of, ordered.codelets[:in_front]))
    placed, first_slot = [], front_slots
    for codelet in ordered.codelets[in_front:]:
        for index, wires in enumerate(codelet.comparators()):
            placed.append((-abs(wires[0] - wires[1]), min(wires), first_slot + index))
        first_slot += slots_of(codelet)
    return Merge(ends.index(in_front) + 1, front_slots, tuple(slot for *_, slot in sorted(placed)))


def rounds(n: int, codelets: Sequence[Codelet], threads: int) -> tuple[tuple[SlottedComparator, ...], ...]:
    """Return the comparators of codelets in rounds for the keys pass.

    Inside a layer comparators are in the order of their slots, so that neighbouring threads write
    neighbouring weights. A layer of more comparators than threads takes several rounds.
    """
    slotted, first_slot = list[SlottedComparator](), 0
    for codelet in codelets:
        for slot, (lo, hi) in enumerate(codelet.comparators(), start=first_slot):
            slotted.append(SlottedComparator(lo, hi, slot))
        first_slot += slots_of(codelet)
    layers = layered(n, slotted, attrgetter("lo", "hi"))
    return tuple(
        tuple(layer[first : first + threads]) for layer in layers for first in range(0, len(layer), threads)
    )


def _length(cone: Cone) -> int:
    return sum(map(len, cone))


def _power_of_two(n: int) -> int:
    """Return the least power of two that is at least n."""
    return 1 << (n - 1).bit_length()
