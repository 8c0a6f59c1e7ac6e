"""Fusing: which stages of a plan write their lists to memory, and which run anew wherever they are read.

That settles what a plan costs, and so which plan a window gets.

A list that is kept costs its stores, and loads in each loop that reads it. A stage that is fused into its
readers costs its minima and maxima once for each place at which they read it. On small windows that is
less.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from nsc.compiler.windows.plan import Plan, Read, plans
from nsc.contract.windows import Window

# The cost of a loop beside its operations, loads and stores, in operations.
_LOOP = 3.0


@dataclass(frozen=True)
class Instance:
    """A stage that runs in a loop, so many columns further on.

    Attributes:
        stage: its number in the plan.
        shift: columns from the loop's place.
    """

    stage: int
    shift: int


@dataclass(frozen=True)
class Loop:
    """Stages that run together, at each place of a row.

    Attributes:
        instances: in the order in which they run.
        kept: the stage whose list it writes to memory; None: it writes the results of all rows.
        reach: how many places it runs beyond a row's last one, for loops that read its list there.
    """

    instances: tuple[Instance, ...]
    kept: int | None
    reach: int


def plan(window: Window) -> Plan:
    """Return the plan of a window whose loops take fewest operations, loads and stores for a pixel.

    Cost: a second for the widest windows.

    >>> plan(Window(1, 3, 3, (4,))).half_operations, plan(Window(1, 7, 7, (24,))).half_operations
    (18.5, 177.5)
    """
    tried = plans(window)
    return min(tried, key=lambda plan: _cost(plan, _kept(plan)) / plan.step) if len(tried) > 1 else tried[0]


def fuse(plan: Plan) -> tuple[Loop, ...]:
    """Return the loops of a step: the ones found with the fewest operations, loads and stores."""
    return _loops(plan, _kept(plan))


def operations(plan: Plan, loops: Iterable[Loop]) -> float:
    """Return the minima and maxima that loops take for a pixel."""
    return (
        sum(plan.stages[each.stage].half_operations for loop in loops for each in loop.instances) / plan.step
    )


def _kept(plan: Plan) -> frozenset[int]:
    """Return the stages that keep their lists.

    The search begins with none, and fuses or keeps one stage at a time, the one that gains most, as long as
    one gains. If each list is read at its own place alone, all stages are fused: none runs twice.
    """
    kept: frozenset[int] = frozenset()
    if not any(read.shift for stage in plan.stages for read in stage.reads if read.stage is not None):
        return kept
    lists = sorted({*range(len(plan.stages))} - {stage for stage, _ in plan.results})
    while True:
        best = min((kept ^ {stage} for stage in lists), key=lambda other: _cost(plan, other), default=kept)
        if _cost(plan, best) >= _cost(plan, kept):
            return kept
        kept = best


def _cost(plan: Plan, kept: frozenset[int]) -> float:
    """Return what a step takes for a place, if these stages keep their lists."""
    cost = 0.0
    for target in (*kept, None):
        instances = _instances(plan, kept, target)
        loads = {read for read in _reads(plan, instances) if read.stage is None or read.stage in kept}
        stores = plan.step if target is None else len(plan.stages[target].outputs)
        cost += _LOOP + len(loads) + stores
        cost += sum(plan.stages[instance.stage].half_operations for instance in instances)
    return cost


def _instances(plan: Plan, kept: frozenset[int], target: int | None) -> list[Instance]:
    """Return the stages that a loop runs: the one that it keeps, or the results, and those that they read."""
    order: list[Instance] = []

    def add(instance: Instance) -> None:
        if instance not in order:
            for read in plan.stages[instance.stage].reads:
                if read.stage is not None and read.stage not in kept:
                    add(Instance(read.stage, instance.shift + read.shift))
            order.append(instance)

    for stage, shift in plan.results if target is None else [(target, 0)]:
        add(Instance(stage, shift))
    return order


def _loops(plan: Plan, kept: frozenset[int]) -> tuple[Loop, ...]:
    instances = {target: _instances(plan, kept, target) for target in (*sorted(kept), None)}
    reach: dict[int | None, int] = dict.fromkeys(instances, 0)
    for target in reversed(instances):  # those that read a list come after it
        for read in _reads(plan, instances[target]):
            if read.stage in kept:
                reach[read.stage] = max(reach[read.stage], reach[target] + read.shift)
    return tuple(Loop(tuple(instances[target]), target, reach[target]) for target in instances)


def _reads(plan: Plan, instances: Iterable[Instance]) -> Iterable[Read]:
    """Yield what instances read, as seen from the loop's place."""
    for instance in instances:
        for read in plan.stages[instance.stage].reads:
            yield Read(read.stage, read.index, read.shift + instance.shift)
