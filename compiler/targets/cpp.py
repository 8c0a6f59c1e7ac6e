"""The C++ target: a schedule to the text of a kernel for processors.

The text has the network's tables and the relaxation. The headers of nsc/library run them.
"""

from __future__ import annotations

from nsc.compiler.relaxations import Relaxation
from nsc.compiler.schedule import (
    LONGEST,
    SLOT_ALIGNMENT,
    Pattern,
    Schedule,
    Shape,
    butterflies,
    butterflies_of,
    in_butterflies,
    slots_of,
)
from nsc.compiler.targets.records import CppKernel, Header, Network
from nsc.compiler.targets.tables import braced, head, real_types, softened, spread_begins, words, wrapped
from nsc.templates import fill

# Wires of the widest network whose P is routed with a sample in each lane, which a small batch does not fill.
NARROW = 32


def lower(schedule: Schedule, relaxation: Relaxation) -> Schedule:
    """Return the schedule with the comparators of codelets joined to butterflies."""
    return in_butterflies(schedule)


def launch(schedule: Schedule) -> None:
    """Return None: a call of a C++ kernel has no launch parameters."""
    return


def render(
    header: Header, facts: str, schedule: Schedule, relaxation: Relaxation, reals: tuple[str, ...]
) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text.

    Args:
        header: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        schedule: what is run.
        relaxation: how comparators are softened.
        reals: names of arithmetic types, keys of REALS.
    """
    first = head(header, facts, schedule, relaxation)
    kernel = CppKernel(first, _network(schedule), softened(relaxation), real_types(reals))
    return fill("cpp/kernel.cpp.j2", kernel)


def _network(schedule: Schedule) -> Network:
    """Return the tables of codelets, their wires and their shapes, and their sums.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short. C has no empty
    arrays: tables that may be empty end with an entry that is not used.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = spread_begins(schedule)
    flips = {0: 0}
    codelets, first_slot = [], 0
    for codelet in schedule.codelets:
        pattern = flips.setdefault(codelet.turned, len(flips))
        fields = (number[codelet.shape], begins[codelet.spread], codelet.wires[0], first_slot, pattern)
        codelets.append(braced(fields))
        first_slot += slots_of(codelet)
    joined = {shape: tuple(butterflies_of(shape)) for shape in schedule.shapes}
    shapes, first_pair, first_butterfly = [], 0, 0
    for shape in schedule.shapes:
        shapes.append(braced((_wires_of(shape), first_pair, len(shape), first_butterfly)))
        first_pair += len(shape)
        first_butterfly += len(joined[shape])
    narrow = _narrow_butterflies(schedule)
    return Network(
        wires=schedule.network.n,
        comparators=schedule.network.size,
        levels=schedule.network.depth,
        slots=schedule.slots,
        longest_codelet=max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        codelet_count=len(codelets),
        butterfly_count=sum(len(joined[codelet.shape]) for codelet in schedule.codelets),
        narrow_count=len(narrow),
        codelet_lines=wrapped([*codelets, "{}"]),
        spread_lines=wrapped([*(place for spread in begins for place in spread), 0]),
        shape_lines=wrapped([*shapes, "{}"]),
        pair_lines=wrapped([*(braced((it.a, it.b)) for shape in schedule.shapes for it in shape), "{}"]),
        flip_lines=wrapped(braced([braced(words(pattern, LONGEST // 64))]) for pattern in flips),
        butterfly_lines=wrapped(
            [*(_initialiser(it.pattern, it.wires) for each in joined.values() for it in each), "{}"]
        ),
        narrow_lines=wrapped([*narrow, "{}"]),
    )


def _narrow_butterflies(schedule: Schedule) -> list[str]:
    """Return the butterflies of a narrow network that is sorted, as entries of a table."""
    if schedule.network.n > NARROW or schedule.outputs is not None:
        return []
    return [_initialiser(it.pattern, it.wires, it.slots) for it in butterflies(schedule.codelets)]


def _initialiser(pattern: Pattern, *places: tuple[int, ...]) -> str:
    return braced((f"nsc::{pattern.name.lower()}", *map(braced, places)))


def _wires_of(shape: Shape) -> int:
    return 1 + max(pair.b for pair in shape)
