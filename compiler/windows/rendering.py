"""The filter: a plan to the text of a kernel that selects ranks of the window around each pixel."""

from __future__ import annotations

import json

from nsc.compiler.naming import Head
from nsc.compiler.text import straight_lines, wrapped
from nsc.compiler.windows.fusing import Instance, Loop, fuse, operations
from nsc.compiler.windows.plan import Plan, Read
from nsc.templates import fill
from nsc.wording import count


def render(head: Head, facts: str, plan: Plan) -> str:
    """Return the C++ source of a filter; the same arguments, the same text.

    Args:
        head: what the kernel's first lines say.
        facts: what the kernel states of itself when it is asked.
        plan: what it runs.
    """
    loops = fuse(plan)
    kept, list_rows = _kept_lists(plan, loops)
    *lists, results = [
        {"comment": _comment(plan, loop), "reach": loop.reach, "lines": _lines(plan, loop, kept)}
        for loop in loops
    ]
    names = [f"List{number}" for number in range(len(lists))]
    work = operations(plan, loops)
    return fill(
        "windows/kernel.cpp.j2",
        head=head,
        facts=json.dumps(facts),
        work=f"{work:g} minima and maxima",
        plan=plan,
        list_rows=list_rows,
        operations=max(1, round(work)),
        places=wrapped([f"{{{plane}, {row}, {column}}}" for plane, row, column in plan.window.offsets]),
        ranks=", ".join(map(str, plan.window.ranks)),
        lists=list(zip(names, lists, strict=True)),
        list_names=", ".join(names),
        results=results,
    )


def _kept_lists(plan: Plan, loops: tuple[Loop, ...]) -> tuple[dict[int, int], int]:
    """Return the first row of memory of each stage's list, the first that is free, and how many there are."""
    last = {
        read.stage: number
        for number, loop in enumerate(loops)
        for instance in loop.instances
        for read in plan.stages[instance.stage].reads
    }
    first: dict[int, int] = {}
    held_until: list[int] = []  # for each row the last loop that reads it
    for number, loop in enumerate(loops):
        if loop.kept is not None:
            length, start = len(plan.stages[loop.kept].outputs), 0
            while any(until >= number for until in held_until[start : start + length]):
                start += 1
            held_until[start : start + length] = [last[loop.kept]] * length
            first[loop.kept] = start
    return first, len(held_until)


def _comment(plan: Plan, loop: Loop) -> str:
    operations = sum(plan.stages[instance.stage].half_operations for instance in loop.instances)
    if loop.kept is None:
        made = count(plan.step, "row") + " of results"
    else:
        stage = plan.stages[loop.kept]
        made = f"{count(len(stage.outputs), 'value')} of {len(stage.reads)} in order"
    return f"{made}, by {operations} minima and maxima."


def _lines(plan: Plan, loop: Loop, kept: dict[int, int]) -> tuple[str, ...]:
    """Return the statements of a loop: its stages one after the other, on wires of their own."""
    pairs: list[tuple[int, int]] = []
    loads: dict[int, str] = {}
    wires: dict[Instance, list[int]] = {}
    for instance in loop.instances:
        stage, base = plan.stages[instance.stage], len(loads)
        for wire, read in enumerate(stage.reads):
            source = (
                None if read.stage is None else wires.get(Instance(read.stage, instance.shift + read.shift))
            )
            loads[base + wire] = f"w{source[read.index]}" if source else _load(read, instance.shift, kept)
        pairs += [(base + lo, base + hi) for lo, hi in stage.network.comparators.tolist()]
        wires[instance] = [base + wire for wire in stage.outputs]
    if loop.kept is None:
        order = [plan.window.ascending.index(rank) for rank in plan.window.ranks]
        outputs = [wires[Instance(*result)] for result in plan.results]
        results = [[each[place] for place in order] for each in outputs]
        stores = {
            tuple(each): f"s.give({row}, x, {', '.join(f'w{wire}' for wire in each)});"
            for row, each in enumerate(results)
        }
    else:
        rows = enumerate(wires[Instance(loop.kept, 0)], start=kept[loop.kept])
        stores = {(wire,): f"s.keep({row}, x, w{wire});" for row, wire in rows}
    return straight_lines(pairs, loads, stores)


def _load(read: Read, shift: int, kept: dict[int, int]) -> str:
    at = read.shift + shift
    x = f"x + {at} * channels" if at else "x"
    if read.stage is None:
        return f"s.pixel({read.index}, {x})"
    return f"s.list({kept[read.stage] + read.index}, {x})"
