"""SAT: is there a 0-1 input that comes out wrong?"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import threading
import time
from typing import Any

from nsc.compiler.families import merge_exchange
from nsc.compiler.network import Network
from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import BudgetError, Question
from nsc.wording import argument

SOLVER = "glucose4"
# Without a time limit of the user's; the best known sorters up to 64 wires take below a second each.
SECONDS = 20.0
# Beyond, no network was settled within minutes.
MOST_COMPARATORS = 1 << 14


def is_installed() -> bool:
    """Say whether there is a solver: python-sat, the extra `verify`."""
    return importlib.util.find_spec("pysat") is not None


def is_for(network: Network) -> bool:
    """Say whether SAT is tried of a network: there is a solver, and the network is not too large."""
    return is_installed() and network.size <= MOST_COMPARATORS


def sat(asked: Question) -> Answer | None:
    """Let a solver look for an input that comes out wrong; None where python-sat is not installed.

    A comparator is two gates. A wire of rank r is wrong where it differs from wire r of a merge
    exchange network on the same inputs, which says whether they have at most r zeros; where all wires
    are asked for, two neighbours out of order say the same.
    """
    if not is_for(asked.network):
        return None
    solvers: Any = importlib.import_module("pysat.solvers")
    n = asked.network.n
    with solvers.Solver(name=SOLVER) as solver:
        inputs = list(range(1, n + 1))
        made = _Formula(solver, n)
        for run in asked.runs:
            for lower, higher in itertools.pairwise(run):
                solver.add_clause([-inputs[lower], inputs[higher]])
        out = made.run(asked.network, inputs)
        if asked.is_sort:
            wrong = [made.both(out[w], -out[w + 1]) for w in range(n - 1)]
        else:
            right = made.run(merge_exchange(n), inputs)
            wrong = [made.differ(out[wire], right[rank]) for wire, rank in asked.ranks.items()]
        solver.add_clause(wrong)
        found = _solve(solver, asked)
        conflicts = int(solver.accum_stats()["conflicts"])
        if not found:
            return Answer(
                proved=f"{SOLVER} finds no 0-1 input that comes out wrong, after {conflicts:,} conflicts",
                conflicts=conflicts,
            )
        model = solver.get_model()
        return Answer(failing=tuple(int(model[wire] > 0) for wire in range(n)), conflicts=conflicts)


def _solve(solver: Any, asked: Question) -> bool:
    deadline = asked.budget.deadline
    seconds = SECONDS if deadline is None else max(0.0, deadline - time.monotonic())
    seconds = min(seconds, threading.TIMEOUT_MAX)
    found: list[bool | None] = []
    ended = threading.Event()

    def solve() -> None:
        try:
            found.append(solver.solve_limited(expect_interrupt=True))
        finally:
            ended.set()

    # In a thread of its own: in this one a Ctrl-C would be heard only once the solver has ended.
    threading.Thread(target=solve, daemon=True).start()
    try:
        ended.wait(seconds)
    finally:
        solver.interrupt()
        ended.wait()  # the solver must not be deleted before
    if found[0] is None:
        raise BudgetError(f"{seconds:.0f} s: {argument('time_limit')} sets another limit")
    return found[0]


class _Formula:
    """Clauses that are added to a solver; a literal is a variable or its negative."""

    def __init__(self, solver: Any, variables: int) -> None:
        self.solver = solver
        self.variables = variables

    def both(self, a: int, b: int) -> int:
        """Return the literal of a and b."""
        self.variables += 1
        c = self.variables
        for clause in ([-c, a], [-c, b], [c, -a, -b]):
            self.solver.add_clause(clause)
        return c

    def differ(self, a: int, b: int) -> int:
        """Return the literal of exactly one of a and b."""
        return -self.both(-self.both(a, -b), -self.both(-a, b))

    def run(self, network: Network, inputs: list[int]) -> list[int]:
        """Return the literals of a network's outputs."""
        wires = list(inputs)
        for lo, hi in network.comparators.tolist():
            a, b = wires[lo], wires[hi]
            wires[lo], wires[hi] = self.both(a, b), -self.both(-a, -b)
        return wires
