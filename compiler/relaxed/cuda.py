"""The CUDA target: a schedule to the text of kernels for NVIDIA GPUs."""

from __future__ import annotations

import json
from typing import Any

from nsc.compiler.naming import Head
from nsc.compiler.relaxed.levels import TILE_COLUMNS, Levels
from nsc.compiler.relaxed.levels import levels as in_parallel
from nsc.compiler.relaxed.tables import merge_layers, softened, spread_begins
from nsc.compiler.request import Request
from nsc.compiler.schedule import SLOT_ALIGNMENT, WIDEST, Schedule, Shape, slots_of
from nsc.compiler.text import braced, wrapped
from nsc.contract.interface import REALS
from nsc.contract.launch import WARP
from nsc.templates import fill
from nsc.wording import count


def lower(schedule: Schedule, request: Request) -> Levels:
    """Return a schedule cut for threads that run at the same time.

    Raises:
        LoweringError: a table would have too many entries; see `levels`.
    """
    error_free = request.relaxation.error_free
    # The gradient of the error-free form is taken with other weights than its value: it routes P whole.
    merge = 0 if error_free else merge_layers(schedule)
    # The keys pass leaves so many numbers for each comparator.
    arrays = 5 if error_free else 3
    return in_parallel(schedule, arrays, merge, request.straight_line)


def render(head: Head, facts: str, levels: Levels, request: Request) -> str:
    """Return the CUDA source of a kernel; the same arguments, the same text.

    Args:
        head: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        levels: what is run.
        request: how comparators are softened, and the arithmetic types.
    """
    schedule, straight = levels.schedule, levels.straight_shapes
    return fill(
        "relaxed/kernel.cu.j2",
        head=head,
        facts=json.dumps(facts),
        relaxation=softened(request.relaxation),
        reals=[REALS[real] for real in request.dtypes],
        routings=[("FORWARD", "route", "false"), ("REVERSED", "reversed", "true")],
        slots=schedule.slots,
        widest_codelet=WIDEST,
        longest_codelet=max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        straight_shapes=[_straight_shape(index, shape) for index, shape in enumerate(straight)],
        all_straight=0 < len(schedule.shapes) == len(straight),
        level_count=len(levels.ends),
        launch=levels.launch,
        tile_warps=levels.launch.tile_threads // WARP,
        forward_blocks=levels.forward_blocks,
        rounds=len(levels.rounds),
        front_levels=0 if levels.merge is None else levels.merge.front_levels,
        front_slots=0 if levels.merge is None else levels.merge.front_slots,
        cone_columns=TILE_COLUMNS,
        cones=len(levels.cones) - 1,
        **_schedule_tables(levels),
        **_thread_tables(levels),
    )


def _schedule_tables(levels: Levels) -> dict[str, object]:
    """Return the tables of codelets, their wires (a base and a spread that they share) and shapes."""
    schedule = levels.schedule
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
    pairs = [braced((a, b)) for shape in schedule.shapes for a, b, _ in shape]
    return {
        "codelet_lines": wrapped([*codelets, "{}"]),
        "spread_lines": wrapped([*(place for spread in begins for place in spread), 0]),
        "shape_lines": wrapped([*shapes, "{0, 0, 0}"]),
        "pair_lines": wrapped([*pairs, "{}"]),
    }


def _thread_tables(levels: Levels) -> dict[str, object]:
    """Return the tables of rounds, of the merge and of light cones."""
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
        comparators += ["{}"] * (levels.launch.sample_threads - len(turn))
    # C has no empty arrays: the tables end with an entry that is not used.
    return {
        "comparator_lines": wrapped([*comparators, "{}"]),
        "merge_slot_lines": wrapped([*(() if levels.merge is None else levels.merge.slots), 0]),
        "listed_lines": wrapped([*listed, 0]),
        "level_bound_lines": wrapped(bounds),
    }


def _straight_shape(index: int, shape: Shape) -> dict[str, Any]:
    """Return what the template prints of a shape: its places, and its comparators with their numbers."""
    steps = [(number, a, b) for number, (a, b, _) in enumerate(shape)]
    wires = range(_wires_of(shape))
    return {
        "index": index,
        "counts": f"{count(len(wires), 'wire')}, {count(len(shape), 'comparator')}",
        "wires": wires,
        "size": len(shape),
        "runs": [("run", steps), ("run_backwards", steps[::-1])],
    }


def _wires_of(shape: Shape) -> int:
    return 1 + max(pair.b for pair in shape)
