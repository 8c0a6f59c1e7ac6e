"""The C++ target: a schedule to the text of a kernel for processors.

The text has the network's tables and the relaxation. The headers of nsc/library run them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

from nsc.compiler.network import Network
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed import records
from nsc.compiler.relaxed.butterflies import Butterfly, Pattern, butterflies, butterflies_of, in_butterflies
from nsc.compiler.relaxed.final_merge import merge_layers
from nsc.compiler.relaxed.records import CppKernel, EngineKernel
from nsc.compiler.relaxed.tables import real_types, softened, spread_begins
from nsc.compiler.schedule import LONGEST, SLOT_ALIGNMENT, Schedule, slots_of
from nsc.compiler.text.lines import braced, wrapped
from nsc.compiler.text.records import Header, head_of
from nsc.contract.tables import NetworkTables, PatternCode, layout_of
from nsc.templates import fill

# Wires of the widest network whose P is routed with a sample in each lane, which a small batch does not fill.
NARROW = 32


@dataclass(frozen=True)
class CppPlan:
    """What a C++ kernel runs: the network, and its tables."""

    network: Network
    tables: NetworkTables


def lower(schedule: Schedule, relaxation: Relaxation) -> CppPlan:
    """Return the tables of the schedule, with the comparators of codelets joined to butterflies."""
    return CppPlan(schedule.network, tables_of(in_butterflies(schedule)))


def launch(plan: CppPlan) -> None:
    """Return None: a call of a C++ kernel has no launch parameters."""
    return


def render(header: Header, facts: str, plan: CppPlan, relaxation: Relaxation, reals: tuple[str, ...]) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text.

    Args:
        header: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        plan: what is run.
        relaxation: how comparators are softened.
        reals: names of arithmetic types, keys of REALS.
    """
    kernel = CppKernel(
        kernel=head_of(header, plan.network),
        facts=json.dumps(facts),
        network=_network(plan.tables),
        relaxation=softened(relaxation),
        reals=real_types(reals),
    )
    return fill("relaxed/kernel.cpp.j2", kernel)


def engine(relaxation: Relaxation, real: str) -> str:
    """Return the C++ source of the engine of a relaxation for an arithmetic type, a key of REALS."""
    return fill("relaxed/engine.cpp.j2", EngineKernel(softened(relaxation), *real_types((real,))))


def tables_of(schedule: Schedule) -> NetworkTables:
    """Return the tables of codelets, their wires and their shapes, and their sums.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short.
    """
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = spread_begins(schedule)
    flips = {0: 0}
    codelets, first_slot = [], 0
    for codelet in schedule.codelets:
        pattern = flips.setdefault(codelet.flips, len(flips))
        fields = (number[codelet.shape], begins[codelet.spread], codelet.wires[0], first_slot, pattern)
        codelets.append(fields)
        first_slot += slots_of(codelet)
    joined = {shape: tuple(butterflies_of(shape)) for shape in schedule.shapes}
    narrow = _narrow_butterflies(schedule)
    shapes, first_pair, first_butterfly = [], 0, 0
    for shape in schedule.shapes:
        wires = 1 + max(pair.b for pair in shape)
        shapes.append((wires, first_pair, len(shape), first_butterfly))
        first_pair += len(shape)
        first_butterfly += len(joined[shape])
    return NetworkTables(
        wires=schedule.network.n,
        comparators=schedule.network.size,
        layers=schedule.network.depth,
        merge_layers=merge_layers(schedule),
        slots=schedule.slots,
        longest_codelet=max([SLOT_ALIGNMENT, *map(slots_of, schedule.codelets)]),
        codelet_count=len(codelets),
        butterfly_count=sum(len(joined[codelet.shape]) for codelet in schedule.codelets),
        narrow_count=len(narrow),
        codelets=tuple(codelets),
        spreads=tuple(place for spread in begins for place in spread),
        shapes=tuple(shapes),
        pairs=tuple((it.a, it.b) for shape in schedule.shapes for it in shape),
        flips=tuple(_words(pattern) for pattern in flips),
        shape_butterflies=tuple(
            (_code(it.pattern), _four(it.wires)) for each in joined.values() for it in each
        ),
        narrow_butterflies=tuple((_code(it.pattern), _four(it.wires), _four(it.slots)) for it in narrow),
    )


def _narrow_butterflies(schedule: Schedule) -> tuple[Butterfly, ...]:
    """Return the butterflies of a narrow network that is sorted."""
    if schedule.network.n > NARROW or schedule.outputs is not None:
        return ()
    return butterflies(schedule.codelets)


def _code(pattern: Pattern) -> PatternCode:
    return PatternCode[pattern.name]


def _four(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return (*numbers, 0, 0, 0)[:4]


def _words(bits: int) -> tuple[int, ...]:
    return tuple(bits >> shift & (1 << 64) - 1 for shift in range(0, LONGEST, 64))


def _network(tables: NetworkTables) -> records.Network:
    """Return the tables as text."""
    counts, lists = [], []
    for each in fields(tables):
        value, layout = getattr(tables, each.name), layout_of(each)
        if layout is None:
            counts.append(records.Count(each.name, value))
        else:
            # C has no empty arrays: each ends with an entry that is not used.
            lines = wrapped([*map(_initialiser, value), "{}"])
            lists.append(records.Table(layout.type, each.name, lines))
    return records.Network(tuple(counts), tuple(lists))


def _initialiser(entry: object) -> str:
    if isinstance(entry, tuple):
        return braced(map(_initialiser, entry))
    if isinstance(entry, PatternCode):
        return f"nsc::{entry.name.lower()}"
    # A literal of 64 bits has to be hexadecimal.
    return hex(entry) if isinstance(entry, int) and entry >> 32 else str(entry)
