"""Tables: the fields that kernels of all targets share, computed from a schedule and a relaxation."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence

from nsc.compiler.relaxations import SIGMOIDS, Relaxation
from nsc.compiler.schedule import (
    LONGEST,
    SLOT_ALIGNMENT,
    WIDEST,
    Needed,
    PlacedComparator,
    Schedule,
    Shape,
    slots_of,
)
from nsc.compiler.targets import records
from nsc.compiler.targets.approximations import APPROXIMATIONS
from nsc.contract.interface import ART_EPSILON, REALS, Real
from nsc.contract.routings import LARGE, LOSSES, LOWEST_LOG, ROUTINGS, SURROGATE_LEAST, Payload, Routing
from nsc.templates import part
from nsc.wording import count

# The number that stands for 1 while P is computed. It is balanced between P and the gradients of losses,
# which begin with reciprocals of P: both stay normal float32 numbers for probabilities from e^-80 to 1. The
# gradient of a loss begins with 1 / (2^72 p); 1/n is multiplied in first, the caller's gradient last.
UNIT = 2.0**72
# Bits of a word in the table of turned comparators.
_WORD = 64


# 1 / x, given the power x^(-1/2) or x^(-1/4).
_ROOT_POWERS = {2: "power * power", 4: "(power * power) * (power * power)"}


def shared_values(
    header: records.Header,
    facts: str,
    schedule: Schedule,
    relaxation: Relaxation,
    reals: tuple[str, ...],
    losses: str,
) -> dict[str, object]:
    """Return the fields of `records.Kernel`, which the records of all targets begin with.

    Args:
        header: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run.
        relaxation: how comparators are softened.
        reals: names of arithmetic types, keys of REALS.
        losses: the pattern of the files with the losses, such as "cpp/{}.cpp".
    """
    network = schedule.network
    head = records.Head(
        **vars(header),
        counts=network.counts,
        digest=network.digest,
        relaxation=relaxation.describe(),
        facts=json.dumps(facts),
    )
    return {
        "kernel": head,
        "schedule": _schedule_tables(schedule),
        "straight_shapes": _straight_shapes(schedule.straight_shapes),
        "relaxation": _relaxation(relaxation),
        "approximations": tuple(_constants(REALS[real], relaxation) for real in reals),
        "losses": records.Losses(
            unit=_literal(UNIT),
            lowest_log=LOWEST_LOG,
            least_probability=_literal(math.exp(LOWEST_LOG)),
            surrogate_least=repr(SURROGATE_LEAST),
            large=repr(LARGE),
            each=tuple(records.Loss(name, part(losses.format(name)).rstrip("\n")) for name in LOSSES),
        ),
        "routings": tuple(records.Constant(routing.name, routing.code) for routing in ROUTINGS.values()),
        "routing_groups": _routing_groups(),
        "reals": tuple(records.Real(real, REALS[real].type, REALS[real].suffix) for real in reals),
    }


def arrays_of_weights(relaxation: Relaxation) -> int:
    """Return how many numbers the keys pass leaves for each comparator."""
    return 5 if relaxation.error_free else 3


def spread_begins(schedule: Schedule) -> dict[tuple[int, ...], int]:
    """Return where each spread begins in the table of spreads, which has each once."""
    begins: dict[tuple[int, ...], int] = {}
    end = 0
    for codelet in schedule.codelets:
        if codelet.spread not in begins:
            begins[codelet.spread] = end
            end += len(codelet.spread)
    return begins


def wrapped(items: Iterable[int | str]) -> tuple[str, ...]:
    """Return the items of a table, comma-separated, in lines of readable length."""
    lines = [""]
    for item in map(str, items):
        if len(lines[-1]) + len(item) > 96:
            lines.append("")
        lines[-1] += f"{item}, "
    return tuple(line.rstrip() for line in lines)


def braced(fields: Iterable[int | str]) -> str:
    """Return the initialiser of an entry of a table."""
    return f"{{{', '.join(map(str, fields))}}}"


def _schedule_tables(schedule: Schedule) -> records.Schedule:
    """Return the tables of codelets, their wires and their shapes, and their sums.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = spread_begins(schedule)
    turns: dict[int, int] = {}
    turned = any(codelet.turned for codelet in schedule.codelets)
    first_slot = first_pair = 0
    codelets = []
    for codelet in schedule.codelets:
        fields = [number[codelet.shape], begins[codelet.spread], codelet.wires[0], first_slot]
        if turned:
            fields.append(turns.setdefault(codelet.turned, len(turns)))
        codelets.append(braced(fields))
        first_slot += slots_of(codelet)
    shapes = []
    for shape in schedule.shapes:
        shapes.append(braced((_wires_of(shape), first_pair, len(shape))))
        first_pair += len(shape)
    # C has no empty arrays: the tables end with an entry that is not used.
    pairs = [pair for shape in schedule.shapes for pair in shape] + [PlacedComparator(0, 0)]
    halved = schedule.halved
    return records.Schedule(
        wires=schedule.network.n,
        comparators=schedule.network.size,
        levels=schedule.network.depth,
        codelet_count=len(codelets),
        slots=schedule.slots,
        slot_alignment=SLOT_ALIGNMENT,
        widest_codelet=WIDEST,
        longest_codelet=max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        turned=turned,
        turn_words=LONGEST // _WORD,
        halved=halved,
        codelet_lines=wrapped([*codelets, "{}"]),
        spread_lines=wrapped([*(place for spread in begins for place in spread), 0]),
        shape_lines=wrapped([*shapes, "{0, 0, 0}"]),
        pair_lines=wrapped(
            braced((pair.a, pair.b, pair.needed.value) if halved else (pair.a, pair.b)) for pair in pairs
        ),
        turn_lines=wrapped(braced(_words(pattern)) for pattern in turns),
    )


def _words(bits: int) -> list[str]:
    """Return LONGEST bits as 64-bit words, the lowest first."""
    return [hex(bits >> shift & (1 << _WORD) - 1) for shift in range(0, LONGEST, _WORD)]


def _straight_shapes(shapes: tuple[Shape, ...]) -> tuple[records.StraightShape, ...]:
    """Return the shapes that get straight-line code."""
    return tuple(_straight_shape(index, shape) for index, shape in enumerate(shapes))


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


def _relaxation(relaxation: Relaxation) -> records.Relaxation:
    """Return a relaxation as C++ expressions; the high part of λ has 12 bits."""
    sigmoid, strength, root = SIGMOIDS[relaxation.sigmoid], relaxation.art_lambda, relaxation.root
    high = round(strength * 4096) / 4096
    power = _ROOT_POWERS.get(root or 0, "")
    return records.Relaxation(
        tail=sigmoid.tail,
        slope=sigmoid.slope,
        source=f"{relaxation.sigmoid}, {sigmoid.source}",
        functions=tuple(sorted(relaxation.functions)),
        has_art=strength > 0,
        art_lambda=repr(strength),
        art_epsilon=repr(ART_EPSILON),
        lambda_literal=_literal(strength),
        lambda_high=_literal(high),
        lambda_low=_literal(strength - high),
        root=root or 0,
        root_shift={2: 1, 4: 2}.get(root or 0, 0),
        root_power=power,
        over_size=f"/ (size + real({ART_EPSILON!r}))" if root is None else f"* ({power})",
        rest_literal=_literal(1 - strength),
        error_free=relaxation.error_free,
        arrays=arrays_of_weights(relaxation),
    )


def _literal(value: float) -> str:
    """Return a C++ constant that round-trips in every arithmetic type."""
    return f"real({value.hex()})"


def _constants(real: Real, relaxation: Relaxation) -> records.Constants:
    """Return what the functions of a relaxation need to know of an arithmetic type."""
    constants = APPROXIMATIONS[real.name]
    coefficients = {
        "small_exp": ("exp", constants.exp),
        "log": ("log", constants.log),
        "cauchy_tail": ("atan", constants.atan),
        "normal_tail": ("tail", constants.tail),
        "inverse_root": ("root", constants.root.get(relaxation.root or 0, ())),
    }
    return records.Constants(
        type=real.type,
        whole=real.whole,
        mantissa_bits=constants.mantissa_bits,
        exponent_bias=constants.exponent_bias,
        rounding=constants.rounding,
        log2_high=constants.log2_high,
        log2_low=constants.log2_low,
        half_root=constants.half_root,
        root_guess=constants.root_guess.get(relaxation.root or 0, ""),
        newton_steps=constants.newton_steps,
        polynomials=tuple(
            records.Polynomial(name, len(literals), ", ".join(literals))
            for function, (name, literals) in coefficients.items()
            if function in relaxation.functions
        ),
    )


def _routing_groups() -> tuple[records.RoutingGroup, ...]:
    """Return what kernels ask of a routing: what it takes and which way it runs."""

    def group(function: str, condition: str, routings: Iterable[Routing]) -> records.RoutingGroup:
        return records.RoutingGroup(function, condition, tuple(routing.name for routing in routings))

    every = ROUTINGS.values()
    losses = [routing for routing in every if routing.is_loss]
    return (
        group("is_loss", "a routing gives a loss for each sample", losses),
        group(
            "routes_identity",
            "a routing's payload is the unit matrix: what is routed is P, or a loss is read off it",
            [ROUTINGS["permutation"], *losses],
        ),
        group(
            "has_columns",
            "a routing takes columns of a payload",
            (routing for routing in every if routing.payload is Payload.COLUMNS),
        ),
        group(
            "has_ranks",
            "a routing takes ranks, whose rows of P are wanted",
            (routing for routing in every if routing.payload is Payload.RANKS),
        ),
        group(
            "is_reversed",
            "a routing runs the comparators from the last to the first",
            (routing for routing in every if routing.is_reversed),
        ),
    )
