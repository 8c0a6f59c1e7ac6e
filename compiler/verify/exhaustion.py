"""Exhaustion: all 0-1 inputs."""

from __future__ import annotations

from nsc.compiler.verify import zero_one
from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question

# 2^24 inputs take a few seconds through about a hundred comparators.
MOST_WIRES = 24
# Presorted inputs times wires; each value takes a byte until it is packed.
MOST_PRESORTED_VALUES = 1 << 24


def exhaustion(question: Question) -> Answer | None:
    """Try every 0-1 input, for n ≤ 24 or for few presorted inputs. Cost: see `zero_one.exhaust`."""
    network, n, ranks, runs = question.network, question.network.n, question.ranks, question.runs
    if runs:
        count = zero_one.count_presorted(n, runs)
        if count * n > MOST_PRESORTED_VALUES:
            return None
        pieces, inputs = zero_one.exhaust_presorted(network, ranks, runs), f"{count:,} presorted"
    elif n <= MOST_WIRES:
        pieces, inputs = zero_one.exhaust(network, ranks), f"2^{n}"
    else:
        return None
    for tried, failing in enumerate(pieces, start=1):
        if failing is not None:
            return Answer(failing=failing)
        question.budget.check()
        question.budget.progress.count("pieces of the 0-1 inputs", tried)
    verdict = "come out sorted" if question.is_sort else "come out right"
    return Answer(proved=f"all {inputs} 0-1 inputs {verdict}")
