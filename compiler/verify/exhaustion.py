"""Exhaustion: all 0-1 inputs."""

from __future__ import annotations

from nsc.compiler.verify import zero_one
from nsc.compiler.verify.answer import Answer
from nsc.compiler.verify.question import Question

# 2^24 inputs of some hundred comparators take a few seconds.
MOST_WIRES = 24
# Presorted inputs times wires: these are written out before they are packed.
MOST_PRESORTED_VALUES = 1 << 24


def exhaustion(asked: Question) -> Answer | None:
    """Try every 0-1 input: n ≤ 24, or few inputs whose runs ascend. Cost: see `zero_one.exhaust`."""
    n, ranks, runs = asked.network.n, asked.ranks, asked.runs
    if runs:
        count = zero_one.count_presorted(n, runs)
        if count * n > MOST_PRESORTED_VALUES:
            return None
        found, inputs = zero_one.exhaust_presorted(asked.network, ranks, runs), f"{count:,} presorted"
    elif n <= MOST_WIRES:
        found, inputs = zero_one.exhaust(asked.network, ranks), f"2^{n}"
    else:
        return None
    for tried, failing in enumerate(found, start=1):
        if failing is not None:
            return Answer(failing=failing)
        asked.budget.check()
        asked.budget.progress.count("pieces of the 0-1 inputs", tried)
    what = "come out sorted" if asked.is_sort else "come out right"
    return Answer(proved=f"all {inputs} 0-1 inputs {what}")
