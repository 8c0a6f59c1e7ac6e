"""Render: a schedule and a relaxation to C++ text, a network's name to a Python module."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.schedule.codelets import (
    CONE_COLUMNS,
    LONGEST,
    WIDEST,
    Needed,
    Pair,
    Shape,
    straight_line_shapes,
)
from nsc.compiler.schedule.cuda_levels import TILE_COLUMNS, Levels
from nsc.compiler.schedule.ir import SLOT_ALIGNMENT, Schedule, slots_of
from nsc.compiler.targets.approximations import APPROXIMATIONS
from nsc.contract.interface import REALS, Real
from nsc.contract.launch import LANE_BYTES, MOST_CHUNKS, WARP
from nsc.contract.routings import LOWEST_LOG, SURROGATE_LEAST
from nsc.templates import fill
from nsc.wording import count

# Mixes that a piece should have at least: a few microseconds, far above what its sums take.
CHUNK_MIXES = 4096
# The number that stands for 1 while P is computed. It is balanced between P and the gradients of losses,
# which begin with reciprocals of P: both stay normal float32 numbers for probabilities from e^-80 to 1.
UNIT = 2.0**72
# Bits of a word in the table of turned comparators.
_WORD = 64
# Aim for the memory of weights and their gradients that are held at a time.
SCRATCH_BYTES = 32 << 20


# The square and the fourth power. Behind x, as x^(-1/2) or x^(-1/4), they make 1 step by step: 1 / x
# alone would underflow where x is huge.
_ROOT_POWERS = {2: "power * power", 4: "(power * power) * (power * power)"}


@dataclass(frozen=True)
class Language:
    """How a target's language declares what the kernels of all targets share.

    Attributes:
        function: what stands before a function.
        table: what stands before a table.
        log, log1p: the natural logarithms of x and of 1 + x.
        log_type: the type in which they are taken.
    """

    function: str
    table: str
    log: str
    log1p: str
    log_type: str


CPP = Language("inline", "constexpr", "__builtin_log", "__builtin_log1p", "double")
CUDA = Language("__device__ inline", "__device__ const", "log", "log1p", "real")


@dataclass(frozen=True)
class Header:
    """What a generated file says of itself.

    Attributes:
        name, purpose, command, version, proof: what its head says of its purpose and origin.
        facts: of a kernel: what it answers when it is asked what it is; see `Manifest.stated`.
    """

    name: str
    purpose: str
    command: str
    version: str
    proof: str
    facts: str = ""


def render_cpp(header: Header, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...]) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text."""
    values = _kernel_values(header, schedule, relaxation, reals, CPP)
    tuning = {"most_chunks": MOST_CHUNKS, "chunk_mixes": CHUNK_MIXES, "scratch_bytes": SCRATCH_BYTES}
    return fill("cpp/kernel.cpp.j2", {**values, "schedule": _codelet_tables(schedule) | tuning})


def render_cuda(header: Header, levels: Levels, relaxation: Relaxation, reals: tuple[str, ...]) -> str:
    """Return the CUDA source of a kernel; the same arguments, the same text."""
    values = _kernel_values(header, levels.schedule, relaxation, reals, CUDA)
    return fill("cuda/kernel.cu.j2", {**values, "cuda": _level_tables(levels)})


def _kernel_values(
    header: Header, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...], language: Language
) -> dict[str, object]:
    """Return what the kernels of all targets are made from."""
    network = schedule.network
    sigmoid = SIGMOIDS[relaxation.sigmoid]
    return {
        "kernel": {
            **header.__dict__,
            "n": network.n,
            "size": network.size,
            "depth": network.depth,
            "counts": network.counts,
            "digest": network.digest,
            "relaxation": relaxation.describe(),
            "facts": json.dumps(header.facts),
        },
        "schedule": _codelet_tables(schedule),
        "straight_shapes": _straight_shapes(schedule.shapes),
        "language": language.__dict__,
        "relaxation": {
            "tail": sigmoid.tail,
            "slope": sigmoid.slope,
            "source": f"{relaxation.sigmoid}, {sigmoid.source}",
            "functions": relaxation.functions,
            "has_art": relaxation.art_lambda > 0,
            "art_lambda": repr(relaxation.art_lambda),
            **_lambda_literals(relaxation),
            "error_free": relaxation.error_free,
            "arrays": arrays_of_weights(relaxation),
        },
        "losses": {
            "unit": _literal(UNIT),
            "lowest_log": str(LOWEST_LOG),
            "least_probability": _literal(math.exp(LOWEST_LOG)),
            "surrogate_least": repr(SURROGATE_LEAST),
        },
        "approximations": [_constants(REALS[real], relaxation) for real in reals],
        "reals": [REALS[real].__dict__ for real in reals],
    }


def arrays_of_weights(relaxation: Relaxation) -> int:
    """Return how many numbers the keys pass leaves for each comparator."""
    return 5 if relaxation.error_free else 3


def _level_tables(levels: Levels) -> dict[str, object]:
    """Return the tables of rounds, levels and light cones, and the threads that run them."""
    shapes, launch = levels.schedule.shapes, levels.launch
    begins = _spread_begins(levels.schedule)
    codes = levels.straight_codes
    known = sorted({spread for code in codes for spread in code.known_spreads}, key=begins.__getitem__)
    bounds = []
    listed: list[int] = []
    for cone in levels.cones:
        ends = [len(listed)]
        for level in cone:
            listed += level
            ends.append(len(listed))
        bounds.append(f"{{{', '.join(map(str, ends))}}}")
    comparators = [f"{{{c.lo}, {c.hi}, {c.slot}}}" for turn in levels.rounds for c in turn]
    round_ends = accumulate(map(len, levels.rounds))
    return {
        "level_count": len(levels.ends),
        "tile_warps": launch.tile_threads // WARP,
        "tile_lanes": launch.tile_lanes,
        "lane_bytes": LANE_BYTES,
        "widest_group": launch.widest_group,
        "sample_threads": launch.sample_threads,
        "keys_threads": launch.keys_threads,
        "routing_threads": launch.routing_threads,
        "forward_blocks": levels.forward_blocks,
        "rounds": len(levels.rounds),
        "comparator_lines": _wrapped([*comparators, "{}"]),
        "round_end_lines": _wrapped([*map(str, round_ends), "0"]),
        "cone_columns": TILE_COLUMNS,
        "cones": len(levels.cones) - 1,
        "listed_lines": _wrapped([*map(str, listed), "0"]),
        "level_bound_lines": _wrapped(bounds),
        "known_spreads": [
            {"begin": begins[spread], "count": len(spread), "wires": ", ".join(map(str, spread))}
            for spread in known
        ],
        "straight_codes": [
            {
                "index": index,
                "known_spreads": [begins[spread] for spread in code.known_spreads],
                "has_others": code.has_others,
            }
            for index, code in enumerate(codes)
        ],
        "all_straight": 0 < len(shapes) == len(codes),
        "directions": [{"name": "route", "reversed": "false"}, {"name": "reversed", "reversed": "true"}],
    }


def _spread_begins(schedule: Schedule) -> dict[tuple[int, ...], int]:
    """Return where each spread begins in the table of spreads, which has each once."""
    begins: dict[tuple[int, ...], int] = {}
    end = 0
    for codelet in schedule.codelets:
        if codelet.spread not in begins:
            begins[codelet.spread] = end
            end += len(codelet.spread)
    return begins


def _lambda_literals(relaxation: Relaxation) -> dict[str, object]:
    """Return λ and what is made of it; its high part has 12 bits."""
    strength = relaxation.art_lambda
    high = round(strength * 4096) / 4096
    root = relaxation.root
    return {
        "lambda_literal": _literal(strength),
        "lambda_high": _literal(high),
        "lambda_low": _literal(strength - high),
        "root": str(root),
        "root_shift": {2: "1", 4: "2"}.get(root or 0, ""),
        "over_size": "/ size" if root is None else f"* {_ROOT_POWERS[root]}",
        "root_power": _ROOT_POWERS.get(root or 0, ""),
    }


def _literal(value: float) -> str:
    """Return a C++ constant that round-trips in every arithmetic type."""
    return f"real({value.hex()})"


def _constants(real: Real, relaxation: Relaxation) -> dict[str, object]:
    """Return what the functions of a relaxation need to know of an arithmetic type."""
    constants = APPROXIMATIONS[real.name]
    coefficients = {
        "small_exp": ("exp", constants.exp),
        "log": ("log", constants.log),
        "cauchy_tail": ("atan", constants.atan),
        "normal_tail": ("tail", constants.tail),
        "inverse_root": ("root", constants.root.get(relaxation.root or 0, ())),
    }
    return {
        **constants.__dict__,
        "type": real.type,
        "whole": real.whole,
        "tables": [
            (name, len(literals), ", ".join(literals))
            for function, (name, literals) in coefficients.items()
            if function in relaxation.functions
        ],
        "root_guess": constants.root_guess.get(relaxation.root or 0, ""),
    }


def _codelet_tables(schedule: Schedule) -> dict[str, object]:
    """Return the tables of codelets, their wires and their shapes, and what they add up to.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = _spread_begins(schedule)
    turns: dict[int, int] = {}
    turned, halved = any(codelet.turned for codelet in schedule.codelets), schedule.halved
    slots = 0
    codelets = []
    for codelet in schedule.codelets:
        fields = [number[codelet.shape], begins[codelet.spread], codelet.wires[0], slots]
        if turned:
            fields.append(turns.setdefault(codelet.turned, len(turns)))
        codelets.append(f"{{{', '.join(map(str, fields))}}}")
        slots += slots_of(codelet)
    pairs = 0
    shapes = []
    for shape in schedule.shapes:
        shapes.append(f"{{{_wires_of(shape)}, {pairs}, {len(shape)}}}")
        pairs += len(shape)
    # C has no empty arrays: the tables end with an entry that is not used.
    return {
        "codelet_count": len(codelets),
        "loads": schedule.loads,
        "slots": schedule.slots,
        "slot_alignment": SLOT_ALIGNMENT,
        "turned": turned,
        "turn_words": LONGEST // _WORD,
        "turn_lines": _wrapped([_words(pattern) for pattern in turns]),
        "widest_codelet": WIDEST,
        "longest_codelet": max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        "cone_columns": CONE_COLUMNS,
        "codelet_lines": _wrapped([*codelets, "{}"]),
        "spread_lines": _wrapped([*(str(place) for spread in begins for place in spread), "0"]),
        "shape_lines": _wrapped([*shapes, "{0, 0, 0}"]),
        "pair_lines": _wrapped(
            [*(_pair(pair, halved) for shape in schedule.shapes for pair in shape), _pair(Pair(0, 0), halved)]
        ),
        "halved": halved,
        "outputs": len(schedule.outputs or ()),
        "output_lines": _wrapped(list(map(str, schedule.outputs or ()))),
    }


def _straight_shapes(shapes: tuple[Shape, ...]) -> list[dict[str, object]]:
    """Return the shapes that get straight-line code, as a template prints them."""
    straight: list[dict[str, object]] = []
    for index, shape in enumerate(straight_line_shapes(shapes)):
        pairs = [
            {"index": k, "a": a, "b": b, "half": _HALF[needed], "half_backwards": _HALF_BACKWARDS[needed]}
            for k, (a, b, needed) in enumerate(shape)
        ]
        wires = range(_wires_of(shape))
        idle = {pair.b if pair.needed is Needed.FIRST else pair.a for pair in shape if pair.needed}
        straight.append(
            {
                "index": index,
                "wires": len(wires),
                "counts": f"{count(len(wires), 'wire')}, {count(len(pairs), 'comparator')}",
                "comparators": pairs,
                "backwards": pairs[::-1],
                "load_lines": [
                    f"auto {', '.join(f'w{w} = rows.load({w})' for w in four)};" for four in _fours(wires)
                ],
                "store_lines": _stores([wire for wire in wires if wire not in idle]),
                "store_lines_backwards": _stores(wires),
            }
        )
    return straight


# What a step is told of a half comparator, run forwards and backwards.
_HALF = {Needed.BOTH: "", Needed.FIRST: ", First()", Needed.SECOND: ", Second()"}
_HALF_BACKWARDS = {Needed.BOTH: "", Needed.FIRST: ", FromFirst()", Needed.SECOND: ", FromSecond()"}


def _stores(wires: Sequence[int]) -> list[str]:
    return [f"{', '.join(f'rows.store({w}, w{w})' for w in four)};" for four in _fours(wires)]


def _fours(wires: Sequence[int]) -> list[Sequence[int]]:
    return [wires[first : first + 4] for first in range(0, len(wires), 4)]


def _pair(pair: Pair, halved: bool) -> str:
    return f"{{{pair.a}, {pair.b}{f', {pair.needed.value}' if halved else ''}}}"


def _wires_of(shape: Shape) -> int:
    return 1 + max(pair.b for pair in shape)


def _words(bits: int) -> str:
    """Return LONGEST bits as an initialiser of 64-bit words, the lowest first."""
    words = [hex(bits >> shift & (1 << _WORD) - 1) for shift in range(0, LONGEST, _WORD)]
    return f"{{{', '.join(words)}}}"


def _wrapped(items: list[str]) -> list[str]:
    """Return the items of a table, comma-separated, in lines of readable length."""
    lines = [""]
    for item in items:
        if len(lines[-1]) + len(item) > 96:
            lines.append("")
        lines[-1] += f"{item}, "
    return [line.rstrip() for line in lines]
