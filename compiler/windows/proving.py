"""Proving: that a plan selects the rank of its window."""

from __future__ import annotations

from dataclasses import dataclass

from nsc.compiler.network import Network
from nsc.compiler.verify import Budget, Proof, Verdict, parse, verify_once
from nsc.compiler.windows.plan import Plan
from nsc.errors import UnprovedError, VerificationError


@dataclass(frozen=True)
class FilterProof:
    """The proofs of a plan.

    Attributes:
        windows: for each row of results of a step: its windows' comparators select the rank of any pixels.
        stages: for each stage: its network gives its ranks if the lists that it reads ascend.
    """

    windows: tuple[Proof, ...]
    stages: tuple[Proof, ...]


@dataclass(frozen=True)
class WholeNetwork:
    """All comparators that a window's values go through.

    Attributes:
        network: wire w is value w of the window, planes first, then rows, then columns.
        output: the wire that carries the result.
    """

    network: Network
    output: int


def whole_network(plan: Plan, result: int = 0) -> WholeNetwork:
    """Return the network of one window, without what it shares with others.

    Args:
        plan: of a filter.
        result: which row of results of a step.
    """
    window = plan.window
    pairs: list[tuple[int, int]] = []

    def value(row: int, column: int) -> int:
        """Return the wire of a pixel."""
        plane, line = divmod(row, plan.rows)
        return (plane * window.rows + line - result) * window.columns + column

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

    (output,) = run(plan.results[result], 0)
    return WholeNetwork(Network.from_comparators(window.values, pairs), output)


def prove_plan(plan: Plan, budget: Budget | None = None) -> FilterProof:
    """Return the proofs of a plan.

    Args:
        plan: of a filter.
        budget: what each proof may take; None: the default.

    Raises:
        UnprovedError: no method settled one of its networks within the budget.

    Cost: a second or two for 49 values.
    """
    windows = []
    for result in range(plan.step):
        whole = whole_network(plan, result)
        claim = parse(f"rank-{plan.window.rank}", plan.window.values, [whole.output])
        windows.append(_proved(plan, verify_once(whole.network, claim, budget)))
    stages = [_proved(plan, verify_once(stage.network, stage.property_, budget)) for stage in plan.stages]
    return FilterProof(tuple(windows), tuple(stages))


def _proved(plan: Plan, proof: Proof) -> Proof:
    if proof.verdict is Verdict.PROVED:
        return proof
    asked = f"a filter for {plan.window.words}"
    if proof.verdict is Verdict.REFUTED:
        assert proof.counterexample is not None
        assert proof.failing_input is not None
        raise VerificationError(
            f"{asked}: its network does not have {proof.property}", proof.counterexample, proof.failing_input
        )
    raise UnprovedError(f"{asked} is unproved: {proof.detail}")
