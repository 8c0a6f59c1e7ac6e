"""The CUDA target: a schedule to the text of kernels for NVIDIA GPUs."""

from __future__ import annotations

from itertools import accumulate

from nsc.compiler import schedule as scheduling
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import TILE_COLUMNS, Levels, Schedule
from nsc.compiler.targets.records import CudaKernel, Direction, Header, KnownSpread, StraightCode, Threads
from nsc.compiler.targets.tables import arrays_of_weights, braced, shared_values, spread_begins, wrapped
from nsc.contract.launch import LANE_BYTES, WARP, Launch
from nsc.templates import fill


def lower(schedule: Schedule, relaxation: Relaxation) -> Levels:
    """Return a schedule cut for threads that run at the same time.

    Raises:
        LoweringError: a table would have too many entries; see `levels`.
    """
    return scheduling.levels(schedule, arrays_of_weights(relaxation))


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
    values = shared_values(header, facts, levels.schedule, relaxation, reals, "cuda/{}.cu")
    return fill("cuda/kernel.cu.j2", CudaKernel(**values, cuda=_threads(levels)))  # type: ignore[arg-type]


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
    comparators = [braced((c.lo, c.hi, c.slot)) for turn in levels.rounds for c in turn]
    # C has no empty arrays: the tables end with an entry that is not used.
    return Threads(
        level_count=len(levels.ends),
        tile_warps=launch.tile_threads // WARP,
        tile_lanes=launch.tile_lanes,
        lane_bytes=LANE_BYTES,
        widest_group=launch.widest_group,
        sample_threads=launch.sample_threads,
        keys_threads=launch.keys_threads,
        routing_threads=launch.routing_threads,
        forward_blocks=levels.forward_blocks,
        rounds=len(levels.rounds),
        comparator_lines=wrapped([*comparators, "{}"]),
        round_end_lines=wrapped([*accumulate(map(len, levels.rounds)), 0]),
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
        directions=(Direction("route", "false"), Direction("reversed", "true")),
    )
