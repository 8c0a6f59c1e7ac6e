"""SAT: is there a 0-1 input that comes out wrong?"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

from nsc.compiler.families import merge_exchange
from nsc.compiler.network import Network
from nsc.compiler.verify.question import Answer, BudgetError, Clause, Question
from nsc.wording import argument

SOLVER = "glucose4"
# The limit without a time limit: about 20 seconds, whatever the network. The best known sorters up to 64
# wires take at most two millions.
MOST_PROPAGATIONS = 1 << 26
# The limit of a trial, where another network may do as well: about half a second.
FEW_PROPAGATIONS = 1 << 21
# No larger network was settled within minutes.
MOST_COMPARATORS = 1 << 14


def is_for(network: Network) -> bool:
    """Return whether SAT is tried on a network: whether it is not too large."""
    return network.size <= MOST_COMPARATORS


def sat(question: Question) -> Answer | None:
    """Let a solver search for an input that comes out wrong; None if `is_for` is false.

    Certificates hold proofs of sorts only.

    A comparator is two gates. Wire r of a merge exchange network is 1 iff the inputs have at most r zeros,
    so a wire is wrong iff it is 0 where the wire of its lowest rank is 1, or 1 where the wire of its highest
    rank is 0. To refute a sort, two neighbours out of order suffice.
    """
    certify = question.budget.certify
    if not is_for(question.network) or (certify and not question.is_sort):
        return None
    from pysat import solvers  # takes a tenth of a second, and most proofs need no solver

    n = question.network.n
    with solvers.Solver(name=SOLVER, with_proof=certify) as solver:
        inputs = list(range(1, n + 1))
        formula = _Formula(solver, n)
        for run in question.runs:
            for lower, higher in itertools.pairwise(run):
                solver.add_clause([-inputs[lower], inputs[higher]])
        out = formula.run(question.network, inputs)
        if question.is_sort:
            wrong = [formula.both(out[w], -out[w + 1]) for w in range(n - 1)]
        else:
            right = formula.run(merge_exchange(n), inputs)
            spans = question.ranks.items()
            wrong = [formula.both(right[span[0]], -out[wire]) for wire, span in spans if span[0] >= 0]
            wrong += [formula.both(out[wire], -right[span[-1]]) for wire, span in spans if span[-1] < n]
        solver.add_clause(wrong)
        satisfiable = _solve(solver, question)
        conflicts = int(solver.accum_stats()["conflicts"])
        if not satisfiable:
            return Answer(
                proved=f"{SOLVER} finds no 0-1 input that comes out wrong, after {conflicts:,} conflicts",
                conflicts=conflicts,
                steps=tuple(_learned(solver)) if certify else (),
            )
        model = solver.get_model()
        return Answer(failing=tuple(int(model[wire] > 0) for wire in range(n)), conflicts=conflicts)


def _learned(solver: Any) -> Iterator[Clause]:
    """Yield the clauses that a solver learned, the empty one last. Those that it deletes are kept."""
    lines = [line for line in solver.get_proof() if not line.startswith("d")]
    # Where the formula itself has no solution by unit propagation, the solver learns nothing.
    for line in lines if lines[-1:] == ["0"] else [*lines, "0"]:
        *literals, end = map(int, line.split())
        assert end == 0
        yield Clause(tuple(literals))


def _solve(solver: Any, question: Question) -> bool:
    deadline, most = question.budget.deadline, question.budget.propagations
    seconds = None
    if deadline is not None:
        seconds = min(max(0.0, deadline - time.monotonic()), threading.TIMEOUT_MAX)
    elif most is None:
        most = MOST_PROPAGATIONS
    if most is not None:
        solver.prop_budget(most)
    results: list[bool | None] = []
    ended = threading.Event()

    def solve() -> None:
        try:
            results.append(solver.solve_limited(expect_interrupt=True))
        finally:
            ended.set()

    # The solver has a thread of its own: in this thread, Ctrl-C would wait until it ends.
    threading.Thread(target=solve, daemon=True).start()
    try:
        ended.wait(seconds)
    finally:
        solver.interrupt()
        ended.wait()  # a running solver must not be deleted
    if results[0] is None:
        question.budget.check()
        raise BudgetError(f"{most:,} propagations: {argument('time_limit')} sets another limit")
    return results[0]


class _Formula:
    """Adds clauses to a solver; a literal is a variable or its negative."""

    def __init__(self, solver: Any, variables: int) -> None:
        self.solver = solver
        self.variables = variables

    def both(self, a: int, b: int) -> int:
        """Return a literal that is true iff a and b are true."""
        self.variables += 1
        c = self.variables
        for clause in ([-c, a], [-c, b], [c, -a, -b]):
            self.solver.add_clause(clause)
        return c

    def run(self, network: Network, inputs: list[int]) -> list[int]:
        """Return the literals of a network's outputs."""
        wires = list(inputs)
        for lo, hi in network.comparators.tolist():
            a, b = wires[lo], wires[hi]
            wires[lo], wires[hi] = self.both(a, b), -self.both(-a, -b)
        return wires
