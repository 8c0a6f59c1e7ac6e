"""The CUDA target: a schedule to the text of kernels for NVIDIA GPUs."""

from __future__ import annotations

import json
from collections.abc import Sequence

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import records
from nsc.compiler.relaxed.final_merge import merge_layers
from nsc.compiler.relaxed.levels import TILE_COLUMNS, Levels
from nsc.compiler.relaxed.levels import levels as in_parallel
from nsc.compiler.relaxed.records import CudaKernel, KnownSpread, StraightCode, Threads
from nsc.compiler.relaxed.tables import arrays_of_weights, real_types, softened, spread_begins
from nsc.compiler.schedule import (
    SLOT_ALIGNMENT,
    WIDEST,
    Needed,
    PlacedComparator,
    Schedule,
    Shape,
    slots_of,
)
from nsc.compiler.text.lines import braced, wrapped
from nsc.compiler.text.records import Header, head_of
from nsc.contract.launch import WARP, Launch
from nsc.templates import fill
from nsc.wording import count


def lower(schedule: Schedule, relaxation: Relaxation) -> Levels:
    """Return a schedule cut for threads that run at the same time.

    Raises:
        LoweringError: a table would have too many entries; see `levels`.
    """
    # The gradient of the error-free form is taken with other weights than its value: it routes P whole.
    merge = 0 if relaxation.error_free else merge_layers(schedule)
    return in_parallel(schedule, arrays_of_weights(relaxation), merge)


def launch(levels: Levels) -> Launch:
    """Return the launch parameters, which the manifest carries."""
    return levels.launch


def render(header: Header, facts: str, levels: Levels, relaxation: Relaxation, reals: tuple[str, ...]) -> str:
    """Return the CUDA source of a kernel; the same arguments, the same text.

    Args:
        header: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        levels: what is run.
        relaxation: how comparators are softened.
        reals: names of arithmetic types, keys of REALS.
    """
    schedule = levels.schedule
    kernel = CudaKernel(
        kernel=head_of(header, schedule.network),
        facts=json.dumps(facts),
        schedule=_schedule_tables(schedule),
        straight_shapes=tuple(
            _straight_shape(index, shape) for index, shape in enumerate(schedule.straight_shapes)
        ),
        relaxation=softened(relaxation),
        reals=real_types(reals),
        cuda=_threads(levels),
    )
    return fill("relaxed/kernel.cu.j2", kernel)


def _schedule_tables(schedule: Schedule) -> records.Schedule:
    """Return the tables of codelets, their wires and their shapes, and their sums.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = spread_begins(schedule)
    first_slot = first_pair = 0
    codelets = []
    for codelet in schedule.codelets:
        fields = [number[codelet.shape], begins[codelet.spread], codelet.wires[0], first_slot]
        codelets.append(braced(fields))
        first_slot += slots_of(codelet)
    shapes = []
    for shape in schedule.shapes:
        shapes.append(braced((_wires_of(shape), first_pair, len(shape))))
        first_pair += len(shape)
    # C has no empty arrays: the tables end with an entry that is not used.
    pairs = [pair for shape in schedule.shapes for pair in shape] + [PlacedComparator(0, 0)]
    return records.Schedule(
        wires=schedule.network.n,
        slots=schedule.slots,
        widest_codelet=WIDEST,
        longest_codelet=max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        halved="true" if schedule.halved else "false",
        codelet_lines=wrapped([*codelets, "{}"]),
        spread_lines=wrapped([*(place for spread in begins for place in spread), 0]),
        shape_lines=wrapped([*shapes, "{0, 0, 0}"]),
        pair_lines=wrapped(braced((pair.a, pair.b, pair.needed.value)) for pair in pairs),
    )


def _straight_shape(index: int, shape: Shape) -> records.StraightShape:
    steps = tuple(
        records.Step(number, pair.a, pair.b, _HALVES[pair.needed]) for number, pair in enumerate(shape)
    )
    idle = {pair.b if pair.needed is Needed.FIRST else pair.a for pair in shape if pair.needed}
    wires = tuple(range(_wires_of(shape)))
    return records.StraightShape(
        index=index,
        counts=f"{count(len(wires), 'wire')}, {count(len(shape), 'comparator')}",
        length=len(shape),
        loads=len(wires),
        wires=wires,
        stored=tuple(wire for wire in wires if wire not in idle),
        comparators=steps,
        backwards=steps[::-1],
    )


_HALVES = {Needed.BOTH: "", Needed.FIRST: "First", Needed.SECOND: "Second"}


def _wires_of(shape: Sequence[PlacedComparator]) -> int:
    return 1 + max(pair.b for pair in shape)


def _threads(levels: Levels) -> Threads:
    """Return the tables of rounds, levels and light cones, and the threads that run them."""
    shapes, launch = levels.schedule.shapes, levels.launch
    begins = spread_begins(levels.schedule)
    codes = levels.straight_codes
    known = sorted({spread for code in codes for spread in code.known_spreads}, key=begins.__getitem__)
    listed: list[int] = []
    bounds = []
    for cone in levels.cones:
        ends = [len(listed)]
        for level in cone:
            listed += level
            ends.append(len(listed))
        bounds.append(braced(ends))
    comparators = []
    for turn in levels.rounds:
        comparators += [braced((c.lo, c.hi, c.slot)) for c in turn]
        comparators += ["{}"] * (launch.sample_threads - len(turn))
    # C has no empty arrays: the tables end with an entry that is not used.
    return Threads(
        level_count=len(levels.ends),
        tile_warps=launch.tile_threads // WARP,
        tile_lanes=launch.tile_lanes,
        widest_group=launch.widest_group,
        sample_threads=launch.sample_threads,
        keys_threads=launch.keys_threads,
        routing_threads=launch.routing_threads,
        forward_blocks=levels.forward_blocks,
        kept_rows_in_block=launch.kept_rows_in_block,
        rounds=len(levels.rounds),
        merge_layers=launch.merge_layers,
        front_levels=0 if levels.merge is None else levels.merge.front_levels,
        front_slots=0 if levels.merge is None else levels.merge.front_slots,
        comparator_lines=wrapped([*comparators, "{}"]),
        merge_slot_lines=wrapped([*(() if levels.merge is None else levels.merge.slots), 0]),
        cone_columns=TILE_COLUMNS,
        cones=len(levels.cones) - 1,
        listed_lines=wrapped([*listed, 0]),
        level_bound_lines=wrapped(bounds),
        known_spreads=tuple(
            KnownSpread(begins[spread], len(spread), ", ".join(map(str, spread))) for spread in known
        ),
        straight_codes=tuple(
            StraightCode(index, tuple(begins[spread] for spread in code.known_spreads), code.has_others)
            for index, code in enumerate(codes)
        ),
        all_straight=0 < len(shapes) == len(codes),
    )
