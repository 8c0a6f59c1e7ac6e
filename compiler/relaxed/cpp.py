"""The C++ target: a schedule to the text of a kernel for processors.

The text has the network's tables and the relaxation. The headers of nsc/library run them.
"""

from __future__ import annotations

import json
from dataclasses import fields

from nsc.compiler.naming import Head
from nsc.compiler.relaxations import Relaxation
from nsc.compiler.relaxed.butterflies import in_butterflies
from nsc.compiler.relaxed.tables import merge_layers, softened, spread_begins
from nsc.compiler.request import Request
from nsc.compiler.schedule import LONGEST, SLOT_ALIGNMENT, Schedule, slots_of
from nsc.compiler.text import braced, wrapped
from nsc.contract.interface import REALS
from nsc.contract.tables import NetworkTables, PatternCode, layout_of
from nsc.templates import fill


def lower(schedule: Schedule, request: Request) -> NetworkTables:
    """Return the tables of a schedule, with the comparators of codelets joined to butterflies.

    Wires are kept as a base and a spread, which codelets share, so that tables stay short.
    """
    schedule, joined = in_butterflies(schedule)
    number = {shape: index for index, shape in enumerate(schedule.shapes)}
    begins = spread_begins(schedule)
    flips = {0: 0}
    codelets, first_slot = [], 0
    for codelet in schedule.codelets:
        pattern = flips.setdefault(codelet.flips, len(flips))
        fields = (number[codelet.shape], begins[codelet.spread], codelet.wires[0], first_slot, pattern)
        codelets.append(fields)
        first_slot += slots_of(codelet)
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
        codelets=tuple(codelets),
        spreads=tuple(place for spread in begins for place in spread),
        shapes=tuple(shapes),
        pairs=tuple((it.a, it.b) for shape in schedule.shapes for it in shape),
        flips=tuple(_words(pattern) for pattern in flips),
        shape_butterflies=tuple(
            (PatternCode[it.pattern.name], (*it.wires, 0, 0, 0)[:4])
            for shape in schedule.shapes
            for it in joined[shape]
        ),
    )


def render(head: Head, facts: str, tables: NetworkTables, request: Request) -> str:
    """Return the C++ source of a kernel; the same arguments, the same text.

    Args:
        head: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        tables: what is run.
        request: how comparators are softened, and the arithmetic types.
    """
    counts, lists = [], []
    for each in fields(tables):
        value, layout = getattr(tables, each.name), layout_of(each)
        if layout is None:
            counts.append((each.name, value))
        else:
            # C has no empty arrays: each ends with an entry that is not used.
            lists.append((layout.type, each.name, wrapped([*map(_initialiser, value), "{}"])))
    return fill(
        "relaxed/kernel.cpp.j2",
        head=head,
        facts=json.dumps(facts),
        counts=counts,
        tables=lists,
        relaxation=softened(request.relaxation),
        reals=[REALS[real] for real in request.dtypes],
    )


def engine(relaxation: Relaxation, real: str) -> str:
    """Return the C++ source of the engine of a relaxation for an arithmetic type, a key of REALS."""
    return fill("relaxed/engine.cpp.j2", relaxation=softened(relaxation), real=REALS[real])


def _words(bits: int) -> tuple[int, ...]:
    return tuple(bits >> shift & (1 << 64) - 1 for shift in range(0, LONGEST, 64))


def _initialiser(entry: object) -> str:
    if isinstance(entry, tuple):
        return braced(map(_initialiser, entry))
    if isinstance(entry, PatternCode):
        return f"nsc::{entry.name.lower()}"
    # A literal of 64 bits has to be hexadecimal.
    return hex(entry) if isinstance(entry, int) and entry >> 32 else str(entry)
