"""Proving: that a plan selects the ranks of its window."""

from __future__ import annotations

from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Proof, Verdict, parse, verify_once
from nsc.compiler.windows.plan import Plan
from nsc.errors import UnprovedError, VerificationError


def whole_network(plan: Plan, result: int = 0) -> tuple[Network, tuple[int, ...]]:
    """Return all comparators that a window's values go through, and the wire of each selected rank.

    Wire w is value w of the window, planes first, then rows, then columns.

    Args:
        plan: of a filter.
        result: which row of results of a step.
    """
    window = plan.window
    wire_of = {offset: wire for wire, offset in enumerate(window.offsets)}
    pairs: list[tuple[int, int]] = []

    def value(row: int, column: int) -> int:
        """Return the wire of a pixel."""
        plane, line = divmod(row, plan.rows)
        return wire_of[plane, line - result, column]

    def run(stage: int, shift: int) -> list[int]:
        """Add the comparators of a stage, and return the wires of its outputs."""
        this, made = plan.stages[stage], {}
        wires = []
        for read in this.reads:
            at = shift + read.shift
            if read.stage is None:
                wires.append(value(read.index, at))
                continue
            if (read.stage, at) not in made:
                made[read.stage, at] = run(read.stage, at)
            wires.append(made[read.stage, at][read.index])
        pairs.extend((wires[lo], wires[hi]) for lo, hi in this.network.comparators.tolist())
        return [wires[wire] for wire in this.outputs]

    outputs = run(*plan.results[result])
    return Network.from_comparators(window.values, pairs), tuple(outputs)


def prove_plan(plan: Plan, budget: Budget | None = None) -> tuple[Proof, ...]:
    """Return the proofs of a plan: for each row of results of a step, that windows give the ranks.

    Args:
        plan: of a filter.
        budget: what each proof may take; None: the default.

    Raises:
        UnprovedError: no method settled one of its networks within the budget.

    Cost: a second for 49 values.
    """
    proofs, ranks = [], f"rank-{','.join(map(str, plan.window.ascending))}"
    for result in range(plan.step):
        network, outputs = whole_network(plan, result)
        proof = verify_once(network, parse(ranks, network.n, outputs), budget)
        asked = f"a filter for {plan.window.words}"
        if proof.counterexample is not None and proof.failing_input is not None:
            wrong = f"{asked}: its network does not have {proof.property}"
            raise VerificationError(wrong, proof.counterexample, proof.failing_input)
        if proof.verdict is not Verdict.PROVED:
            raise UnprovedError(f"{asked} is unproved: {proof.detail}")
        proofs.append(proof)
    return tuple(proofs)
